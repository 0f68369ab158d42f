//! Acknowledgements owed to the peer: one for each data segment, including repeated ones.

use alloc::vec::Vec;

use crate::Compat;
use crate::seq::SeqNum;

/// Maximum number of pending acknowledgements, more than any window fills between two flushes. The
/// peer sends the segments again whose acknowledgements were dropped.
const MAX_PENDING: usize = 8192;

/// Data segments to acknowledge, with the peer's time stamps.
#[derive(Debug)]
pub(crate) struct PendingAcks {
    list: Vec<(SeqNum, u32)>,
    /// Index of the first one that is not written yet.
    next_index: usize,
}

impl PendingAcks {
    pub(crate) const fn new() -> Self {
        Self {
            list: Vec::new(),
            next_index: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.list.len() - self.next_index
    }

    pub(crate) fn push(&mut self, sn: SeqNum, ts: u32) {
        if self.list.len() < MAX_PENDING {
            self.list.push((sn, ts));
        }
    }

    /// Returns the next one to write. kcp-go omits those that `received` already implies, except
    /// the last.
    pub(crate) fn next_unwritten(
        &mut self,
        compat: Compat,
        received: SeqNum,
    ) -> Option<(SeqNum, u32)> {
        let last = self.list.len().saturating_sub(1);
        while let Some((sn, ts)) = self.list.get(self.next_index) {
            let told = compat == Compat::Go && sn.is_before(received) && self.next_index < last;
            if !told {
                return Some((*sn, *ts));
            }
            self.next_index += 1;
        }
        None
    }

    /// Removes the next one after it has been written.
    pub(crate) fn pop_written(&mut self) {
        self.next_index += 1;
        if self.next_index >= self.list.len() {
            self.list.clear();
            self.next_index = 0;
        }
    }

    pub(crate) const fn heap_size(&self) -> usize {
        self.list.capacity() * size_of::<(SeqNum, u32)>()
    }

    /// Frees the memory of an empty list.
    pub(crate) fn release_if_empty(&mut self) {
        if self.list.is_empty() {
            self.list = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(compat: Compat) -> Vec<u32> {
        let mut acks = PendingAcks::new();
        for sn in [0, 7, 3, 9, 2] {
            acks.push(SeqNum(sn), 40 + sn);
        }
        let mut out = Vec::new();
        while let Some((sn, ts)) = acks.next_unwritten(compat, SeqNum(4)) {
            assert_eq!(ts, 40 + sn.0);
            out.push(sn.0);
            acks.pop_written();
        }
        assert_eq!(acks.len(), 0);
        out
    }

    #[test]
    fn needless_ones_are_left_out_as_kcp_go_does() {
        assert_eq!(drain(Compat::C), [0, 7, 3, 9, 2]);
        assert_eq!(drain(Compat::Go), [7, 9, 2]);
    }
}
