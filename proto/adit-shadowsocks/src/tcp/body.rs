//! The body of a direction, the same for both roles: chunks, a cipher's stream or raw bytes.

use core::ops::Range;

use adit_wire::{Opened, Overhead, ProtocolError};

use super::chunk::{ChunkOpen, ChunkSeal};
use super::{MAX_RAW, max_chunk};
use crate::Method;
use crate::stream_cipher::StreamCipher;

/// Seals the data after the header of a direction.
pub(super) enum BodySeal {
    Chunks(ChunkSeal),
    /// Boxed: unboxed, connections of all methods would be half a KiB larger.
    Stream(Box<StreamCipher>),
    /// Method `none`.
    Raw,
}

impl BodySeal {
    pub(super) const fn seal_overhead(&self, method: Method) -> Overhead {
        match self {
            Self::Chunks(_) => ChunkSeal::seal_overhead(max_chunk(method)),
            Self::Stream(_) | Self::Raw => Overhead {
                head: 0,
                tail: 0,
                max_payload: MAX_RAW,
            },
        }
    }

    /// Seals `record[payload]`, whose overhead was checked, and returns the range to send. An empty
    /// payload results in an empty range.
    pub(super) fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        match self {
            _ if payload.is_empty() => Ok(payload),
            Self::Chunks(chunks) => chunks.seal_chunk(record, payload),
            Self::Stream(cipher) => {
                let data = record.get_mut(payload.clone());
                cipher.apply(data.ok_or(ProtocolError::NoRoom("a payload"))?);
                Ok(payload)
            }
            Self::Raw => Ok(payload),
        }
    }
}

/// Opens the data after the header of a direction.
pub(super) enum BodyOpen {
    Chunks(ChunkOpen),
    Stream {
        cipher: Box<StreamCipher>,
        /// Bytes of IV that still precede the data.
        iv: usize,
    },
    /// Method `none`.
    Raw,
}

impl BodyOpen {
    pub(super) fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        let start = match self {
            Self::Chunks(chunks) => return chunks.open_chunk(wire),
            _ if wire.is_empty() => return Ok(Opened::NeedMore { total: 1 }),
            Self::Stream { cipher, iv } => {
                let start = core::mem::take(iv);
                let data = wire.get_mut(start..);
                cipher.apply(data.ok_or(ProtocolError::Truncated("an IV"))?);
                start
            }
            Self::Raw => 0,
        };
        Ok(Opened::Record {
            consumed: wire.len(),
            payload: start..wire.len(),
        })
    }

    pub(super) const fn at_boundary(&self, unread: usize) -> bool {
        match self {
            Self::Chunks(chunks) => unread == 0 && chunks.at_boundary(),
            Self::Stream { .. } | Self::Raw => unread == 0,
        }
    }
}
