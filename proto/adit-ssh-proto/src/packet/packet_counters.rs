//! Counters of one direction: sequence number, and use of the current keys.

use crate::SshError;

/// Maximum number of packets under one set of keys: with one more, a sequence number and thus a
/// nonce would repeat. Without encryption, the limit ends a first key exchange that uses up all
/// sequence numbers.
const MOST_PACKETS: u64 = 1 << 32;

/// Packets and bytes of one direction.
#[derive(Debug)]
pub(super) struct PacketCounters {
    /// Sequence number of the next packet.
    pub(super) sequence: u32,
    /// Number of packets since the last change of keys.
    pub(super) packets: u64,
    /// Bytes of these packets on the wire.
    pub(super) bytes: u64,
}

impl PacketCounters {
    pub(super) const fn new() -> Self {
        Self {
            sequence: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// Returns an error when the keys are exhausted.
    #[inline]
    pub(super) const fn check_has_next(&self) -> Result<(), SshError> {
        if self.packets < MOST_PACKETS {
            Ok(())
        } else {
            Err(SshError::Crypto("keys are exhausted"))
        }
    }

    /// Counts a packet of `octets` bytes.
    #[inline]
    pub(super) const fn count_packet(&mut self, octets: usize) {
        self.sequence = self.sequence.wrapping_add(1);
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(octets as u64);
    }

    /// Resets the counters for new keys, and with strict kex (`reset`) the sequence number, too.
    pub(super) const fn reset_for_new_keys(&mut self, reset: bool) {
        let sequence = if reset { 0 } else { self.sequence };
        *self = Self::new();
        self.sequence = sequence;
    }
}
