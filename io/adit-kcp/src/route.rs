//! What a listener learns from a datagram before it knows whose it is.

use adit_fec::Packet;
use adit_kcp_proto::{Cmd, HEADER_LEN, Header};

/// A datagram, decrypted, by its outermost header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// KCP without correction.
    Bare(&'a [u8], Opening),
    /// A data shard, and the KCP datagram in it.
    Data(&'a [u8], Option<Opening>),
    /// Parity, which names no conversation.
    Parity,
    /// Beside the stream: the conversation, and what was sent.
    Oob(u32, &'a [u8]),
    /// Nothing that anybody sends.
    Unknown,
}

/// What the first segment of a KCP datagram says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening {
    /// The conversation.
    pub(super) conv: u32,
    /// The number of the segment, if it has data.
    pub(super) data: Option<u32>,
}

impl<'a> Route<'a> {
    pub(super) fn of(packet: &'a [u8]) -> Self {
        match Packet::parse(packet) {
            Some(Packet::Data { datagram, .. }) => Self::Data(datagram, Opening::of(datagram)),
            Some(Packet::Parity { .. }) => Self::Parity,
            Some(Packet::Oob { conv, payload }) => Self::Oob(conv, payload),
            None => match Opening::of(packet) {
                Some(opening) => Self::Bare(packet, opening),
                None => Self::Unknown,
            },
        }
    }
}

impl Opening {
    fn of(datagram: &[u8]) -> Option<Self> {
        let header = Header::parse(datagram).ok()?;
        let first = header.cmd == Cmd::Push && datagram.len() > HEADER_LEN;
        Some(Self {
            conv: header.conv,
            data: first.then_some(header.sn),
        })
    }

    /// Whether it may begin a session: it is the first data. Anything else belongs to a session
    /// that is no more, whose peer is to notice that; or the first data were lost, and come again.
    pub(super) fn begins(&self) -> bool {
        self.data == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(cmd: Cmd, sn: u32) -> Vec<u8> {
        let header = Header {
            conv: 7,
            cmd,
            frg: 0,
            wnd: 1,
            ts: 2,
            sn,
            una: 0,
            len: 1,
        };
        [&header.bytes()[..], b"x"].concat()
    }

    #[test]
    fn only_the_first_data_begin() {
        let begins = |cmd, sn| match Route::of(&segment(cmd, sn)) {
            Route::Bare(_, opening) => opening.conv == 7 && opening.begins(),
            _ => false,
        };
        assert!(begins(Cmd::Push, 0));
        assert!(!begins(Cmd::Push, 1) && !begins(Cmd::Ack, 0) && !begins(Cmd::Wask, 0));
    }

    #[test]
    fn kinds_are_told_apart() {
        let inner = segment(Cmd::Push, 0);
        let size = u16::try_from(inner.len() + 2).unwrap().to_le_bytes();
        let shard = |kind| [&[9, 0, 0, 0, kind, 0][..], &size, &inner].concat();
        let data = shard(0xf1);
        assert!(matches!(Route::of(&data), Route::Data(bytes, Some(_)) if bytes == inner));
        assert_eq!(Route::of(&shard(0xf2)), Route::Parity);
        let oob = shard(0xf3);
        assert_eq!(Route::of(&oob), Route::Oob(7, &inner[4..]));
        for rubbish in [&[][..], &[0; 12], &[0; 24], &[0xff; 1500]] {
            assert_eq!(Route::of(rubbish), Route::Unknown);
        }
    }
}
