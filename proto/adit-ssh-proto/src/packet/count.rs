//! The numbers of one direction: of its packets, and of what its keys have been used for.

use crate::SshError;

/// Packets under one set of keys: with one more a sequence number, and so a nonce, would come
/// twice. In the clear it ends a first key exchange that runs through all numbers.
const MOST_PACKETS: u64 = 1 << 32;

/// What went through.
#[derive(Debug)]
pub(super) struct Count {
    /// The number of the next packet.
    pub(super) sequence: u32,
    /// Packets since the last keys.
    pub(super) packets: u64,
    /// Their octets on the wire.
    pub(super) bytes: u64,
}

impl Count {
    pub(super) const fn new() -> Self {
        Self {
            sequence: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// Fails when the keys are used up.
    #[inline]
    pub(super) const fn has_next(&self) -> Result<(), SshError> {
        if self.packets < MOST_PACKETS {
            Ok(())
        } else {
            Err(SshError::Crypto("keys are used up"))
        }
    }

    /// A packet of so many octets.
    #[inline]
    pub(super) const fn packet(&mut self, octets: usize) {
        self.sequence = self.sequence.wrapping_add(1);
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(octets as u64);
    }

    /// New keys; with strict kex (`reset`) new numbers too.
    pub(super) const fn new_keys(&mut self, reset: bool) {
        let sequence = if reset { 0 } else { self.sequence };
        *self = Self::new();
        self.sequence = sequence;
    }
}
