//! Acknowledgements owed to the peer: one for each data segment, including repeated ones.

use crate::Compat;
use crate::seq::Sn;

/// Maximum number of pending acknowledgements, more than any window fills between two flushes. The
/// peer sends the segments again whose acknowledgements were dropped.
const MOST: usize = 8192;

/// Data segments to acknowledge, with the peer's time stamps.
#[derive(Debug)]
pub(crate) struct Acks {
    list: Vec<(Sn, u32)>,
    /// Index of the first one that is not written yet.
    at: usize,
}

impl Acks {
    pub(crate) const fn new() -> Self {
        Self {
            list: Vec::new(),
            at: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.list.len() - self.at
    }

    pub(crate) fn push(&mut self, sn: Sn, ts: u32) {
        if self.list.len() < MOST {
            self.list.push((sn, ts));
        }
    }

    /// Returns the next one to write. kcp-go omits those that `received` already implies, except
    /// the last.
    pub(crate) fn next(&mut self, compat: Compat, received: Sn) -> Option<(Sn, u32)> {
        let last = self.list.len().saturating_sub(1);
        while let Some((sn, ts)) = self.list.get(self.at) {
            let told = compat == Compat::Go && sn.before(received) && self.at < last;
            if !told {
                return Some((*sn, *ts));
            }
            self.at += 1;
        }
        None
    }

    /// Removes the next one after it has been written.
    pub(crate) fn pop(&mut self) {
        self.at += 1;
        if self.at >= self.list.len() {
            self.list.clear();
            self.at = 0;
        }
    }

    pub(crate) const fn heap(&self) -> usize {
        self.list.capacity() * size_of::<(Sn, u32)>()
    }

    /// Frees the memory of an empty list.
    pub(crate) fn release(&mut self) {
        if self.list.is_empty() {
            self.list = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(compat: Compat) -> Vec<u32> {
        let mut acks = Acks::new();
        for sn in [0, 7, 3, 9, 2] {
            acks.push(Sn(sn), 40 + sn);
        }
        let mut out = Vec::new();
        while let Some((sn, ts)) = acks.next(compat, Sn(4)) {
            assert_eq!(ts, 40 + sn.0);
            out.push(sn.0);
            acks.pop();
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
