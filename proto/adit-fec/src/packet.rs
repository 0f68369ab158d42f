//! The header of a shard, and the kinds of packets. All numbers are little-endian.
//!
//! ```text
//! seqid u32 | type u16 | payload
//!             0x00f1     data: size u16, datagram (size = 2 + its length)
//!             0x00f2     parity: of the data payloads of the group, zero-padded to the longest
//!             0x00f3     out of band: size u16, conv u32, bytes (size = 6 + their number)
//! ```

use adit_wire::narrow_int;

use crate::CodeError;

/// Length of sequence number and type, in bytes.
pub(crate) const SHARD_HEADER: usize = 6;
/// Length of the size field at the start of a data payload, in bytes.
pub(crate) const SIZE: usize = 2;
/// Number of bytes before a datagram in a data shard.
pub const HEADER: usize = SHARD_HEADER + SIZE;
/// Number of bytes before the payload of an out-of-band packet.
pub const OOB_HEADER: usize = HEADER + 4;

pub(crate) const DATA: u16 = 0x00f1;
pub(crate) const PARITY: u16 = 0x00f2;
const OOB: u16 = 0x00f3;

/// A packet with a header of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A data shard with one datagram
    Data {
        /// Number of the shard.
        seqid: u32,
        /// Size and datagram: the input of the parity.
        payload: &'a [u8],
        /// The datagram alone; may be empty.
        datagram: &'a [u8],
    },
    /// A parity shard
    Parity {
        /// Number of the shard.
        seqid: u32,
        /// As long as the longest data payload of the group, at least the two bytes of its size.
        payload: &'a [u8],
    },
    /// An out-of-band packet: unreliable, unordered, not protected
    Oob {
        /// Identifier of the conversation.
        conv: u32,
        /// The bytes sent.
        payload: &'a [u8],
    },
}

impl<'a> Packet<'a> {
    /// Parses a packet. Returns `None` if it has no such header (it is a bare KCP datagram then, whose
    /// command byte cannot be mistaken for a type), is truncated, or has a wrong size.
    #[must_use]
    pub fn parse(packet: &'a [u8]) -> Option<Self> {
        let (seqid, rest) = packet.split_first_chunk()?;
        let (kind, payload) = rest.split_first_chunk()?;
        let (size, body) = payload.split_first_chunk()?;
        let seqid = u32::from_le_bytes(*seqid);
        let whole = usize::from(u16::from_le_bytes(*size)) == payload.len();
        match u16::from_le_bytes(*kind) {
            DATA if whole => Some(Self::Data {
                seqid,
                payload,
                datagram: body,
            }),
            PARITY => Some(Self::Parity { seqid, payload }),
            OOB if whole => {
                let (conv, payload) = body.split_first_chunk()?;
                let conv = u32::from_le_bytes(*conv);
                Some(Self::Oob { conv, payload })
            }
            _ => None,
        }
    }
}

/// Writes an out-of-band packet to the front of `out` and returns its length. Returns `None` if it does not
/// fit there or the payload is longer than 65,529 bytes.
pub fn encode_oob(conv: u32, payload: &[u8], out: &mut [u8]) -> Option<usize> {
    let size = u16::try_from(payload.len().checked_add(OOB_HEADER - SHARD_HEADER)?).ok()?;
    let (header, rest) = out.split_first_chunk_mut::<OOB_HEADER>()?;
    let [.., conv0, conv1, conv2, conv3] = header;
    [*conv0, *conv1, *conv2, *conv3] = conv.to_le_bytes();
    rest.get_mut(..payload.len())?.copy_from_slice(payload);
    write_header(header, u32::MAX, OOB, size)?;
    Some(OOB_HEADER + payload.len())
}

/// Writes the header of a shard and the size that follows it.
pub(crate) fn write_header(out: &mut [u8], seqid: u32, kind: u16, size: u16) -> Option<()> {
    let [s0, s1, s2, s3] = seqid.to_le_bytes();
    let ([k0, k1], [z0, z1]) = (kind.to_le_bytes(), size.to_le_bytes());
    *out.first_chunk_mut()? = [s0, s1, s2, s3, k0, k1, z0, z1];
    Some(())
}

/// The numbers of shards: all whole groups below 2³².
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardNumbers {
    group: u32,
    end: u32,
}

impl ShardNumbers {
    /// Creates the numbers of groups of `shards`, 1 to 256.
    pub(crate) fn new(shards: usize) -> Result<Self, CodeError> {
        let group = narrow_int::<u32>(shards);
        let groups = u32::MAX.checked_div(group).ok_or(CodeError::Shards)?;
        let end = groups * group;
        Ok(Self { group, end })
    }

    /// Returns the first number that no shard has.
    #[cfg(test)]
    pub(crate) const fn end_number(self) -> u32 {
        self.end
    }

    /// Returns the number of groups before the numbers wrap around.
    pub(crate) const fn group_count(self) -> u32 {
        self.end / self.group
    }

    /// Returns the group of a shard and its index in the group; `None` for a number that no shard has.
    pub(crate) fn locate(self, seqid: u32) -> Option<(u32, usize)> {
        let place = usize::try_from(seqid % self.group).ok()?;
        (seqid < self.end).then_some((seqid / self.group, place))
    }

    /// Returns the number that is `steps` (at most one group) further.
    pub(crate) const fn advance(self, seqid: u32, steps: u32) -> u32 {
        let left = self.end - seqid;
        if steps < left {
            seqid + steps
        } else {
            steps - left
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_that_lie_are_refused() {
        let good = [9, 0, 0, 0, 0xf1, 0, 4, 0, 7, 8];
        assert!(matches!(
            Packet::parse(&good),
            Some(Packet::Data {
                seqid: 9,
                payload: [4, 0, 7, 8],
                datagram: [7, 8]
            })
        ));
        for cut in 0..good.len() {
            assert_eq!(Packet::parse(&good[..cut]), None);
        }
        for size in [0, 1, 3, 5, 0xff] {
            let mut bad = good;
            bad[6] = size;
            assert_eq!(Packet::parse(&bad), None);
        }
        let empty = [0, 0, 0, 0, 0xf1, 0, 2, 0];
        assert!(matches!(
            Packet::parse(&empty),
            Some(Packet::Data { datagram: [], .. })
        ));
    }

    #[test]
    fn kcp_is_not_taken_for_a_shard() {
        for command in 81..=84 {
            let mut segment = [0; 24];
            segment[4] = command;
            assert_eq!(Packet::parse(&segment), None);
        }
    }

    #[test]
    fn numbers_wrap_behind_whole_groups() {
        let numbers = ShardNumbers::new(13).unwrap();
        assert_eq!(numbers.end_number() % 13, 0);
        assert!(numbers.end_number() > u32::MAX - 13);
        assert_eq!(numbers.advance(numbers.end_number() - 3, 3), 0);
        assert_eq!(
            numbers.advance(numbers.end_number() - 3, 2),
            numbers.end_number() - 1
        );
        assert_eq!(numbers.locate(numbers.end_number()), None);
        assert_eq!(
            numbers.locate(numbers.end_number() - 1),
            Some((numbers.group_count() - 1, 12))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_handled(bytes in proptest::collection::vec(any::<u8>(), 0..40), kind in 0xf0u8..0xf5) {
            let mut bytes = bytes;
            if let Some(byte) = bytes.get_mut(4) { *byte = kind; }
            if let Some(byte) = bytes.get_mut(5) { *byte = 0; }
            if let Some(Packet::Oob { conv, payload }) = Packet::parse(&bytes) {
                let mut again = [0; 64];
                let len = encode_oob(conv, payload, &mut again).unwrap();
                prop_assert_eq!(&again[4..len], &bytes[4..]);
            }
        }
    }
}
