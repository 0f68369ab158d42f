//! Equal datagrams for one peer that wait for the rest of their batch.

use std::cell::RefCell;
use std::net::SocketAddr;

use crate::packet::MAX_PAYLOAD;

/// Datagrams that leave by one call.
#[derive(Debug, Default)]
pub(super) struct Run {
    bytes: Vec<u8>,
    to: Option<SocketAddr>,
    /// Size of each but the last, which may be shorter.
    segment: usize,
    count: usize,
}

thread_local! {
    /// The buffer of the last run that was sent.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Run {
    /// Whether a datagram may join: equal ones, the last one may be shorter.
    pub(super) fn takes(&self, bytes: &[u8], to: SocketAddr, segments: usize) -> bool {
        match self.to {
            None => true,
            Some(peer) => {
                peer == to
                    && self.count < segments
                    && self.segment > 0
                    && !bytes.is_empty()
                    && bytes.len() <= self.segment
                    && self.bytes.len() == self.segment * self.count
                    && self.bytes.len() + bytes.len() <= MAX_PAYLOAD
            }
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8], to: SocketAddr) {
        if self.to.is_none() {
            self.segment = bytes.len();
            if self.bytes.capacity() == 0 {
                self.bytes = SPARE.with_borrow_mut(std::mem::take);
            }
        }
        self.to = Some(to);
        self.count += 1;
        self.bytes.extend_from_slice(bytes);
    }

    /// Gives what was pushed to `send`, with the size of each but the last; nothing if nothing was.
    pub(super) fn leave<E>(
        &mut self,
        send: impl FnOnce(&[u8], usize, SocketAddr) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(destination) = self.to.take() else {
            return Ok(());
        };
        let sent = send(&self.bytes, self.segment, destination);
        self.count = 0;
        self.bytes.clear();
        if self.bytes.capacity() > 0 {
            // Nobody waits with a buffer in hand.
            SPARE.with_borrow_mut(|spare| {
                let bytes = std::mem::take(&mut self.bytes);
                if spare.capacity() < bytes.capacity() {
                    *spare = bytes;
                }
            });
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_equal_ones_and_one_shorter_last() {
        let (to, other) = ("1.2.3.4:5".parse().unwrap(), "1.2.3.4:6".parse().unwrap());
        let mut run = Run::default();
        assert!(run.takes(&[1; 9], to, 64));
        run.push(&[1; 9], to);
        assert!(run.takes(&[1; 9], to, 64) && !run.takes(&[1; 9], to, 1));
        assert!(!run.takes(&[1; 10], to, 64) && !run.takes(&[1; 9], other, 64));
        assert!(!run.takes(&[], to, 64), "an empty datagram is no segment");
        run.push(&[1; 4], to);
        assert!(!run.takes(&[1; 4], to, 64), "the shorter one was the last");
    }
}
