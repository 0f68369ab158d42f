//! The framing format of Snappy: blocks of at most 64 KiB, each with a checksum.
//!
//! `type u8 | length u24 | body`, little-endian. A stream starts with `ff 06 00 00 sNaPpY`; type 0
//! is a compressed block, 1 a stored one, each after its masked CRC-32C; 0x80..=0xfe are skipped.
//! (google/snappy, framing_format.txt.)

use core::ops::Range;

/// The identifier at the start of a stream.
pub(super) const STREAM_IDENTIFIER: [u8; 10] = *b"\xff\x06\x00\x00sNaPpY";
/// Maximum plaintext of a block in bytes.
pub(super) const MAX_BLOCK: usize = 64 << 10;

const HEADER: usize = 4;
const CHECKSUM: usize = 4;
/// Maximum length of a body: a block that became longer by compression.
const MAX_BODY: usize = CHECKSUM + 32 + MAX_BLOCK + MAX_BLOCK / 6;

/// Error of a Snappy stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnappyError {
    /// The stream identifier is missing.
    #[error("not a Snappy stream: the stream identifier is missing")]
    Stream,
    /// A chunk type that must not be skipped.
    #[error("unknown Snappy chunk type {0:#04x}")]
    Chunk(u8),
    /// An invalid length for the chunk type.
    #[error("invalid length of a Snappy chunk")]
    Length,
    /// A block that cannot be decompressed.
    #[error("corrupt Snappy block")]
    Block,
    /// A block with a wrong checksum.
    #[error("wrong checksum of a Snappy block")]
    Checksum,
}

/// Writes blocks.
pub(super) struct SnappyEncoder {
    snap: snap::raw::Encoder,
    begun: bool,
}

impl SnappyEncoder {
    pub(super) fn new() -> Self {
        Self {
            snap: snap::raw::Encoder::new(),
            begun: false,
        }
    }

    /// Returns the maximum length of the output for `len` bytes of plaintext.
    pub(super) fn max_encoded_len(len: usize) -> usize {
        STREAM_IDENTIFIER.len() + HEADER + CHECKSUM + snap::raw::max_compress_len(len)
    }

    /// Writes one block of at most [`MAX_BLOCK`] bytes to the front of `out`, which needs
    /// [space](Self::max_encoded_len) for it. Returns its length.
    pub(super) fn encode_block(&mut self, plain: &[u8], out: &mut [u8]) -> Option<usize> {
        let start = if self.begun {
            0
        } else {
            STREAM_IDENTIFIER.len()
        };
        let (front, out) = out.split_at_mut_checked(start)?;
        front.copy_from_slice(STREAM_IDENTIFIER.get(..start)?);
        let (header, body) = out.split_first_chunk_mut::<HEADER>()?;
        let (checksum, block) = body.split_first_chunk_mut::<CHECKSUM>()?;
        let packed = self.snap.compress(plain, block).ok()?;
        // Saving less than an eighth is not worth the peer's work.
        let (kind, len) = if packed < plain.len() - plain.len() / 8 {
            (0, packed)
        } else {
            block.get_mut(..plain.len())?.copy_from_slice(plain);
            (1, plain.len())
        };
        let [l0, l1, l2, _] = u32::try_from(CHECKSUM + len).ok()?.to_le_bytes();
        *header = [kind, l0, l1, l2];
        *checksum = masked_crc32c(plain).to_le_bytes();
        self.begun = true;
        Some(start + HEADER + CHECKSUM + len)
    }
}

/// The front of a Snappy stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SnappyChunk {
    /// An incomplete chunk: this total number of bytes is needed.
    NeedMore(usize),
    /// A chunk of this length without plaintext.
    Skip(usize),
    /// A chunk of this length with a block.
    Block(usize, SnappyBlock),
}

/// The position of a block, and the length of its plaintext.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SnappyBlock {
    is_compressed: bool,
    body: Range<usize>,
    pub(super) len: usize,
    checksum: u32,
}

/// Reads chunks.
#[derive(Default)]
pub(super) struct SnappyDecoder {
    begun: bool,
}

impl SnappyDecoder {
    /// True if the stream identifier was received.
    pub(super) const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Parses the front of the received bytes.
    pub(super) fn parse_front(&mut self, wire: &[u8]) -> Result<SnappyChunk, SnappyError> {
        let Some(([kind, l0, l1, l2], rest)) = wire.split_first_chunk::<HEADER>() else {
            return Ok(SnappyChunk::NeedMore(HEADER));
        };
        if !self.begun && *kind != 0xff {
            return Err(SnappyError::Stream);
        }
        let len = usize::try_from(u32::from_le_bytes([*l0, *l1, *l2, 0]));
        let len = len.map_err(|_| SnappyError::Length)?;
        if len > MAX_BODY {
            return Err(SnappyError::Length);
        }
        let whole = HEADER + len;
        let Some(body) = rest.get(..len) else {
            return Ok(SnappyChunk::NeedMore(whole));
        };
        match kind {
            0xff if wire.get(..whole) == Some(&STREAM_IDENTIFIER) => {
                self.begun = true;
                Ok(SnappyChunk::Skip(whole))
            }
            0xff => Err(SnappyError::Stream),
            0 | 1 => {
                let split = body.split_first_chunk::<CHECKSUM>();
                let (checksum, block) = split.ok_or(SnappyError::Length)?;
                let packed = *kind == 0;
                let len = if packed {
                    snap::raw::decompress_len(block).map_err(|_| SnappyError::Block)?
                } else {
                    block.len()
                };
                if len > MAX_BLOCK {
                    return Err(SnappyError::Length);
                }
                let block = SnappyBlock {
                    is_compressed: packed,
                    body: HEADER + CHECKSUM..whole,
                    len,
                    checksum: u32::from_le_bytes(*checksum),
                };
                Ok(SnappyChunk::Block(whole, block))
            }
            0x80..=0xfe => Ok(SnappyChunk::Skip(whole)),
            other => Err(SnappyError::Chunk(*other)),
        }
    }

    /// Decompresses a block at the front of `wire` to the front of `out`, which needs at least
    /// [`SnappyBlock::len`] bytes.
    pub(super) fn open_block(
        block: &SnappyBlock,
        wire: &[u8],
        out: &mut [u8],
    ) -> Result<(), SnappyError> {
        let body = wire.get(block.body.clone()).ok_or(SnappyError::Length)?;
        let out = out.get_mut(..block.len).ok_or(SnappyError::Length)?;
        if block.is_compressed {
            let done = snap::raw::Decoder::new().decompress(body, out);
            let len = done.map_err(|_| SnappyError::Block)?;
            if len != out.len() {
                return Err(SnappyError::Block);
            }
        } else {
            out.copy_from_slice(body);
        }
        if masked_crc32c(out) == block.checksum {
            Ok(())
        } else {
            Err(SnappyError::Checksum)
        }
    }
}

fn masked_crc32c(plain: &[u8]) -> u32 {
    crc32c::crc32c(plain)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(pieces: &[&[u8]]) -> Vec<u8> {
        let mut encoder = SnappyEncoder::new();
        let mut wire = Vec::new();
        for piece in pieces {
            let mut out = vec![0; SnappyEncoder::max_encoded_len(piece.len())];
            let len = encoder.encode_block(piece, &mut out).unwrap();
            wire.extend_from_slice(&out[..len]);
        }
        wire
    }

    fn decoded(wire: &[u8]) -> Result<Vec<u8>, SnappyError> {
        let (mut decoder, mut rest, mut plain) = (SnappyDecoder::default(), wire, Vec::new());
        loop {
            match decoder.parse_front(rest)? {
                SnappyChunk::NeedMore(total) => {
                    assert!(total > rest.len());
                    return Ok(plain);
                }
                SnappyChunk::Skip(used) => rest = &rest[used..],
                SnappyChunk::Block(used, block) => {
                    let mut out = vec![0; block.len];
                    SnappyDecoder::open_block(&block, rest, &mut out)?;
                    plain.extend_from_slice(&out);
                    rest = &rest[used..];
                }
            }
        }
    }

    /// As golang/snappy writes them, with one flush for each write.
    #[test]
    fn golden_streams() {
        let text = include_str!("../vectors/kcptun.json");
        let all: serde_json::Value = serde_json::from_str(text).unwrap();
        let hex = |value: &serde_json::Value| -> Vec<u8> {
            let text = value.as_str().unwrap();
            let pairs = text.as_bytes().chunks(2);
            let byte =
                |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            pairs.map(byte).collect()
        };
        let cases = all["snappy_framing_flush_per_write"].as_array().unwrap();
        assert!(cases.len() >= 3);
        for case in cases {
            if case["note"].is_string() {
                let mut state = 12345_u32;
                let noise: [u8; 3000] = std::array::from_fn(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state.to_be_bytes()[0]
                });
                let stored = encoded(&[&noise]);
                assert_eq!(stored.len() as u64, case["stream_len"].as_u64().unwrap());
                assert!(stored.starts_with(&hex(&case["stream_head64"])));
                continue;
            }
            let (first, stream) = (hex(&case["first_write"]), hex(&case["stream"]));
            let plain = decoded(&stream).unwrap();
            let writes = case["writes"].as_array().unwrap().len();
            assert_eq!(plain, first.repeat(writes));
        }
        let stack = &all["kcptun_stack"];
        let frames = [
            &[2, 0, 0, 0, 3, 0, 0, 0][..],
            &[2, 2, 5, 0, 3, 0, 0, 0, b'h', b'e', b'l', b'l', b'o'],
        ];
        assert_eq!(encoded(&frames), hex(&stack["snappy_stream"]));
    }

    #[test]
    fn what_is_no_snappy_is_refused() {
        let good = encoded(&[&[7; 1000]]);
        assert_eq!(decoded(&good[10..]), Err(SnappyError::Stream));
        let mut bad = good.clone();
        let literal = 10 + HEADER + CHECKSUM + 3;
        for at in [15, literal] {
            bad.clone_from(&good);
            bad[at] ^= 1;
            assert_eq!(decoded(&bad), Err(SnappyError::Checksum));
        }
        bad.clone_from(&good);
        bad[10] = 2;
        assert_eq!(decoded(&bad), Err(SnappyError::Chunk(2)));
        bad[10] = 0x80;
        assert_eq!(decoded(&bad), Ok(Vec::new()));
        let long = [&STREAM_IDENTIFIER[..], &[0, 0xff, 0xff, 0xff]].concat();
        assert_eq!(decoded(&long), Err(SnappyError::Length));
        // A block that claims to be 4 GiB.
        let bomb = [
            &STREAM_IDENTIFIER[..],
            &[0, 9, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f],
        ]
        .concat();
        assert_eq!(decoded(&bomb), Err(SnappyError::Length));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(pieces in proptest::collection::vec((any::<u8>(), 1..3000usize, any::<bool>()), 1..6)) {
            let pieces: Vec<Vec<u8>> = pieces.into_iter().map(|(seed, len, dull)| {
                if dull { vec![seed; len] } else { adit_interop::BytePattern::new(seed.into()).next_bytes(len) }
            }).collect();
            let all: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(decoded(&encoded(&all)).unwrap(), pieces.concat());
        }

        #[test]
        fn any_bytes_are_handled(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decoded(&[&STREAM_IDENTIFIER[..], &bytes].concat());
            let _ = decoded(&bytes);
        }
    }
}
