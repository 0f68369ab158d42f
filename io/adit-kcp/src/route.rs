//! Classification of a datagram before its session is known.

use adit_fec::Packet;
use adit_kcp_proto::{Command, HEADER_LEN, SegmentHeader};

/// A decrypted datagram, by its outermost header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatagramRoute<'a> {
    /// KCP without correction.
    Bare(&'a [u8], FirstSegment),
    /// A data shard, and the KCP datagram in it.
    Data(&'a [u8], Option<FirstSegment>),
    /// Parity, which has no conversation number.
    Parity,
    /// Out of band: the conversation number, and the payload.
    Oob(u32, &'a [u8]),
    /// Not a valid datagram.
    Unknown,
}

/// The first segment of a KCP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstSegment {
    /// The conversation number.
    pub(super) conv: u32,
    /// The number of the segment, if it has data.
    pub(super) data: Option<u32>,
}

impl<'a> DatagramRoute<'a> {
    pub(super) fn classify(packet: &'a [u8]) -> Self {
        match Packet::parse(packet) {
            Some(Packet::Data { datagram, .. }) => {
                Self::Data(datagram, FirstSegment::parse(datagram))
            }
            Some(Packet::Parity { .. }) => Self::Parity,
            Some(Packet::Oob { conv, payload }) => Self::Oob(conv, payload),
            None => match FirstSegment::parse(packet) {
                Some(opening) => Self::Bare(packet, opening),
                None => Self::Unknown,
            },
        }
    }
}

impl FirstSegment {
    fn parse(datagram: &[u8]) -> Option<Self> {
        let header = SegmentHeader::parse(datagram).ok()?;
        let first = header.cmd == Command::Push && datagram.len() > HEADER_LEN;
        Some(Self {
            conv: header.conv,
            data: first.then_some(header.sn),
        })
    }

    /// True if the segment may start a session: it is the first data. Any other belongs to a
    /// session that has ended, which its peer will notice; or the first data was lost, and will be
    /// sent again.
    pub(super) fn may_begin_session(&self) -> bool {
        self.data == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(cmd: Command, sn: u32) -> Vec<u8> {
        let header = SegmentHeader {
            conv: 7,
            cmd,
            frg: 0,
            wnd: 1,
            ts: 2,
            sn,
            una: 0,
            len: 1,
        };
        [&header.encode()[..], b"x"].concat()
    }

    #[test]
    fn only_the_first_data_begin() {
        let begins = |cmd, sn| match DatagramRoute::classify(&segment(cmd, sn)) {
            DatagramRoute::Bare(_, opening) => opening.conv == 7 && opening.may_begin_session(),
            _ => false,
        };
        assert!(begins(Command::Push, 0));
        assert!(
            !begins(Command::Push, 1)
                && !begins(Command::Ack, 0)
                && !begins(Command::WindowProbe, 0)
        );
    }

    #[test]
    fn kinds_are_told_apart() {
        let inner = segment(Command::Push, 0);
        let size = u16::try_from(inner.len() + 2).unwrap().to_le_bytes();
        let shard = |kind| [&[9, 0, 0, 0, kind, 0][..], &size, &inner].concat();
        let data = shard(0xf1);
        assert!(
            matches!(DatagramRoute::classify(&data), DatagramRoute::Data(bytes, Some(_)) if bytes == inner)
        );
        assert_eq!(DatagramRoute::classify(&shard(0xf2)), DatagramRoute::Parity);
        let oob = shard(0xf3);
        assert_eq!(
            DatagramRoute::classify(&oob),
            DatagramRoute::Oob(7, &inner[4..])
        );
        for rubbish in [&[][..], &[0; 12], &[0; 24], &[0xff; 1500]] {
            assert_eq!(DatagramRoute::classify(rubbish), DatagramRoute::Unknown);
        }
    }
}
