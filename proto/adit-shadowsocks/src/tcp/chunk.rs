//! Chunks: `AEAD(length) ‖ AEAD(payload)`, sealed and opened in place.

use core::ops::Range;

use adit_crypto::{AeadKey, NonceCounter, TAG_LEN};
use adit_wire::{Opened, Overhead, ProtocolError};

/// Maximum number of consecutive empty chunks. They cause work without payload, so there must be a
/// limit; a UDP-over-TCP server sends one for each empty datagram.
pub(super) const MAX_EMPTY_CHUNKS: usize = 64;

/// Length of the length field with its tag, in bytes.
pub(super) const LENGTH_LEN: usize = 2 + TAG_LEN;

/// Checks that `record` has the required overhead around `payload`, before a nonce is spent.
pub(super) fn check_overhead(
    room: Overhead,
    record: &[u8],
    payload: &Range<usize>,
) -> Result<(), ProtocolError> {
    if payload.len() > room.max_payload {
        return Err(ProtocolError::TooLong {
            what: "a record's payload",
            limit: room.max_payload,
        });
    }
    let behind = record.len().checked_sub(payload.end);
    if payload.start < room.head
        || payload.start > payload.end
        || behind.is_none_or(|b| b < room.tail)
    {
        return Err(ProtocolError::NoRoom("a record's header and tag"));
    }
    Ok(())
}

/// The sealing side of one direction.
pub(super) struct ChunkSeal {
    key: AeadKey,
    nonce: NonceCounter,
}

impl ChunkSeal {
    pub(super) fn new(key: AeadKey) -> Self {
        let nonce = NonceCounter::new(key.kind());
        Self { key, nonce }
    }

    pub(super) const fn seal_overhead(max: usize) -> Overhead {
        Overhead {
            head: LENGTH_LEN,
            tail: TAG_LEN,
            max_payload: max,
        }
    }

    /// Seals `buf[at]` and writes the tag after it.
    pub(super) fn seal_block(
        &mut self,
        buf: &mut [u8],
        at: Range<usize>,
    ) -> Result<(), ProtocolError> {
        let len = at.len();
        let both = at.end.checked_add(TAG_LEN).map(|end| at.start..end);
        let both = both.and_then(|range| buf.get_mut(range));
        let (plain, tag) = both
            .and_then(|b| b.split_at_mut_checked(len))
            .ok_or(ProtocolError::NoRoom("a tag"))?;
        let nonce = self.nonce.next_nonce()?;
        tag.copy_from_slice(&self.key.seal_in_place(&nonce, plain)?);
        Ok(())
    }

    /// Seals `record[payload]` as a chunk and returns the range to send. The caller has checked the
    /// overhead and that the payload is not empty: empty chunks are never sent.
    pub(super) fn seal_chunk(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let no_room = ProtocolError::NoRoom("a length");
        let start = payload.start.checked_sub(LENGTH_LEN).ok_or(no_room)?;
        let len = u16::try_from(payload.len()).map_err(|_| no_room)?;
        let field = record.get_mut(start..start + 2).ok_or(no_room)?;
        field.copy_from_slice(&len.to_be_bytes());
        self.seal_block(record, start..start + 2)?;
        self.seal_block(record, payload.clone())?;
        Ok(start..payload.end + TAG_LEN)
    }
}

/// The opening side of one direction.
pub(super) struct ChunkOpen {
    key: AeadKey,
    nonce: NonceCounter,
    max: usize,
    /// Number of empty chunks since the last payload.
    empty: usize,
    /// The range of the next sealed payload, once its length is known. The caller's buffer contains
    /// the opened length, which must not be opened again.
    payload: Option<Range<usize>>,
}

impl ChunkOpen {
    pub(super) fn new(key: AeadKey, max: usize) -> Self {
        Self {
            nonce: NonceCounter::new(key.kind()),
            key,
            max,
            empty: 0,
            payload: None,
        }
    }

    /// Opens `wire[at]`, which its tag follows.
    pub(super) fn open_block(
        &mut self,
        wire: &mut [u8],
        at: Range<usize>,
    ) -> Result<(), ProtocolError> {
        let len = at.len();
        let both = at.end.checked_add(TAG_LEN).map(|end| at.start..end);
        let both = both.and_then(|range| wire.get_mut(range));
        let (ct, tag) = both
            .and_then(|b| b.split_at_mut_checked(len))
            .ok_or(ProtocolError::Truncated("a sealed block"))?;
        let nonce = self.nonce.next_nonce()?;
        Ok(self.key.open_in_place(&nonce, ct, tag)?)
    }

    /// Opens the length at `wire[at..]`; its payload follows.
    pub(super) fn open_length(&mut self, wire: &mut [u8], at: usize) -> Result<(), ProtocolError> {
        self.open_block(wire, at..at + 2)?;
        let field = wire.get(at..).and_then(|f| f.first_chunk());
        let len = field.map_or(0, |f| u16::from_be_bytes(*f));
        self.expect_payload(at + LENGTH_LEN, len)
    }

    /// Records that a sealed payload of `len` bytes begins at `at`. Empty payloads are skipped, up
    /// to [`MAX_EMPTY_CHUNKS`] in a row. adit never sends them, but Xray's client of the AEAD edition does
    /// when its application is silent for 100 ms, and the servers of mihomo and sing-box do for
    /// empty datagrams in a stream. SIP022 forbids empty payloads, and shadowsocks-go and
    /// shadowsocks-libev fail on them; shadowsocks-rust, sing-box and Xray skip them in both
    /// editions, as adit does.
    pub(super) fn expect_payload(&mut self, at: usize, len: u16) -> Result<(), ProtocolError> {
        let len = usize::from(len);
        self.empty = if len == 0 { self.empty + 1 } else { 0 };
        if self.empty > MAX_EMPTY_CHUNKS {
            return Err(ProtocolError::Malformed(
                "chunk: more than 64 empty ones in a row",
            ));
        }
        if len > self.max {
            return Err(ProtocolError::TooLong {
                what: "a chunk",
                limit: self.max,
            });
        }
        self.payload = Some(at..at + len);
        Ok(())
    }

    /// Opens the chunk at the front of `wire`; its payload may be empty.
    pub(super) fn open_chunk(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        let payload = match self.payload.clone() {
            Some(payload) => payload,
            None if wire.len() < LENGTH_LEN => return Ok(Opened::NeedMore { total: LENGTH_LEN }),
            None => {
                self.open_length(wire, 0)?;
                self.payload.clone().unwrap_or_default()
            }
        };
        let total = payload.end + TAG_LEN;
        if wire.len() < total {
            return Ok(Opened::NeedMore { total });
        }
        self.open_block(wire, payload.clone())?;
        self.payload = None;
        Ok(Opened::Record {
            consumed: total,
            payload,
        })
    }

    /// True if no chunk is partially read.
    pub(super) const fn at_boundary(&self) -> bool {
        self.payload.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_crypto::AeadKind;

    fn pair(max: usize) -> (ChunkSeal, ChunkOpen) {
        let key = || AeadKey::new(AeadKind::Aes128Gcm, &[1; 16]).unwrap();
        (ChunkSeal::new(key()), ChunkOpen::new(key(), max))
    }

    fn chunk(seal: &mut ChunkSeal, payload: &[u8]) -> Vec<u8> {
        let mut record = [&[0; LENGTH_LEN][..], payload, &[0; TAG_LEN]].concat();
        let range = seal.seal_chunk(&mut record, LENGTH_LEN..LENGTH_LEN + payload.len());
        assert_eq!(range, Ok(0..record.len()));
        record
    }

    #[test]
    fn lengths_above_the_maximum_are_refused() {
        let (mut seal, mut open) = pair(0x3fff);
        let mut wire = chunk(&mut seal, &[0; 0x4000]);
        let limit = 0x3fff;
        let what = "a chunk";
        assert_eq!(
            open.open_chunk(&mut wire),
            Err(ProtocolError::TooLong { what, limit })
        );
        let (mut seal, mut open) = pair(0x3fff);
        let mut wire = chunk(&mut seal, &[0; 0x3fff]);
        assert!(matches!(
            open.open_chunk(&mut wire),
            Ok(Opened::Record { .. })
        ));
    }

    #[test]
    fn inside_a_chunk_is_no_boundary() {
        let (mut seal, mut open) = pair(0xffff);
        let mut wire = chunk(&mut seal, b"abc");
        assert!(open.at_boundary());
        let first = open.open_chunk(&mut wire[..LENGTH_LEN]);
        assert_eq!(
            first,
            Ok(Opened::NeedMore {
                total: LENGTH_LEN + 3 + TAG_LEN
            })
        );
        assert!(!open.at_boundary());
        let payload = LENGTH_LEN..LENGTH_LEN + 3;
        let consumed = wire.len();
        assert_eq!(
            open.open_chunk(&mut wire),
            Ok(Opened::Record { consumed, payload })
        );
        assert!(open.at_boundary());
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn too_little_room_spends_no_nonce() {
        let room = ChunkSeal::seal_overhead(100);
        let record = [0; 18 + 10 + 16];
        assert_eq!(check_overhead(room, &record, &(18..28)), Ok(()));
        for bad in [17..28, 18..29, 18..usize::MAX, 29..28] {
            assert!(check_overhead(room, &record, &bad).is_err(), "{bad:?}");
        }
    }
}
