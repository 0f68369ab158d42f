//! Control messages waiting to be sent, in one buffer.

use adit_wire::subslice;

use crate::wire::{MessageReader, SshBufMut};

/// Capacity that an empty outbox may keep, in bytes.
const KEPT: usize = 4096;

/// Queue of messages, each with its length in front.
#[derive(Debug, Default)]
pub(super) struct ControlOutbox {
    bytes: Vec<u8>,
    /// Position of the first message that was not removed.
    head: usize,
}

impl ControlOutbox {
    /// Adds the message that `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.put_nested(write);
    }

    /// Appends the oldest message to `out`; returns false if there is none.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> bool {
        let rest = subslice(&self.bytes, self.head..);
        let Ok(message) = MessageReader::new(rest, "queued message").read_string() else {
            return false;
        };
        out.extend_from_slice(message);
        self.head += 4 + message.len();
        if self.is_empty() {
            self.head = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
        } else if self.head > KEPT && self.head > self.bytes.len() / 2 {
            // Moves fewer bytes than were removed since the last time.
            self.bytes.drain(..self.head);
            self.head = 0;
        }
        true
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.head == self.bytes.len()
    }

    /// Returns the number of bytes in the queue.
    pub(super) const fn byte_len(&self) -> usize {
        self.bytes.len() - self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_order_and_the_buffer_stays_small() {
        let mut outbox = ControlOutbox::default();
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
                outbox.byte_len(),
                8 * usize::try_from(written - read).unwrap()
            );
            assert!(outbox.bytes.len() <= 2 * outbox.byte_len() + KEPT + 8);
        }
        while outbox.pop(&mut Vec::new()) {
            read += 1;
        }
        assert!(outbox.is_empty() && outbox.bytes.capacity() <= KEPT);
        assert_eq!(read, written);
    }
}
