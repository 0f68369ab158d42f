//! Control messages that wait to be sent, in one buffer.

use adit_wire::subslice;

use crate::wire::{Put, Reader};

/// What an empty box may keep allocated, octets.
const KEPT: usize = 4096;

/// Messages one behind the other, each with its length in front.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Where the first one that was not taken begins.
    head: usize,
}

impl Outbox {
    /// Adds the message that `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.put_nested(write);
    }

    /// Appends the oldest message to `out`; false if there is none.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> bool {
        let rest = subslice(&self.bytes, self.head..);
        let Ok(message) = Reader::new(rest, "message of our own").string() else {
            return false;
        };
        out.extend_from_slice(message);
        self.head += 4 + message.len();
        if self.is_empty() {
            self.head = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
        } else if self.head > KEPT && self.head > self.bytes.len() / 2 {
            // Moves fewer octets than were taken since the last time.
            self.bytes.drain(..self.head);
            self.head = 0;
        }
        true
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.head == self.bytes.len()
    }

    /// Octets that wait.
    pub(super) const fn octets(&self) -> usize {
        self.bytes.len() - self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_order_and_the_buffer_stays_small() {
        let mut outbox = Outbox::default();
        let (mut written, mut read) = (0u32, 0u32);
        for round in 0..2000u32 {
            for _ in 0..round % 7 {
                outbox.push(|out| out.put_u32(written));
                written += 1;
            }
            for _ in 0..3 {
                let mut out = vec![9];
                if outbox.pop(&mut out) {
                    assert_eq!(out, [&[9][..], &read.to_be_bytes()].concat());
                    read += 1;
                }
            }
            assert_eq!(
                outbox.octets(),
                8 * usize::try_from(written - read).unwrap()
            );
            assert!(outbox.bytes.len() <= 2 * outbox.octets() + KEPT + 8);
        }
        while outbox.pop(&mut Vec::new()) {
            read += 1;
        }
        assert!(outbox.is_empty() && outbox.bytes.capacity() <= KEPT);
        assert_eq!(read, written);
    }
}
