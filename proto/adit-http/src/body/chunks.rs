//! Follows the chunked transfer coding (RFC 9112 section 7.1) without decoding it.
//!
//! Stricter than the RFC: no blanks around the size, at most 16 digits, and lines end in CRLF.

use adit_wire::{ProtocolError, subslice, u64_from};

use crate::head::{is_text, is_token_byte};

/// Maximum length of the line with a chunk's size and extensions, in bytes, including its CRLF.
const MAX_SIZE_LINE: usize = 1 << 10;
/// Maximum length of the trailer section in bytes.
const MAX_TRAILER: usize = 8 << 10;
/// Sixteen hexadecimal digits fill a `u64`.
const MAX_DIGITS: usize = 16;

/// The position of the next byte in the coding.
#[derive(Debug)]
pub(super) struct ChunkScanner {
    at: ChunkState,
    /// Number of bytes of the current size line or trailer section.
    line: usize,
}

#[derive(Debug, Clone, Copy)]
enum ChunkState {
    Size { size: u64 },
    Extension { size: u64 },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
    End,
}

impl Default for ChunkScanner {
    fn default() -> Self {
        Self {
            at: ChunkState::Size { size: 0 },
            line: 0,
        }
    }
}

impl ChunkScanner {
    /// Returns the number of `bytes` that belong to the body; fewer than all only if the body has
    /// ended.
    pub(super) fn take_body(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let mut rest = bytes;
        loop {
            match (self.at, rest) {
                (ChunkState::End, _) | (_, []) => return Ok(bytes.len() - rest.len()),
                (ChunkState::Data { left }, _) => {
                    let n = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                    let left = left.saturating_sub(u64_from(n));
                    self.at = match left {
                        0 => ChunkState::DataCr,
                        _ => ChunkState::Data { left },
                    };
                    rest = subslice(rest, n..);
                }
                (at, [byte, after @ ..]) => {
                    self.at = self.step_byte(at, *byte)?;
                    rest = after;
                }
            }
        }
    }

    pub(super) const fn is_ended(&self) -> bool {
        matches!(self.at, ChunkState::End)
    }

    /// Handles one byte of the framing.
    fn step_byte(&mut self, at: ChunkState, byte: u8) -> Result<ChunkState, ProtocolError> {
        self.line += 1;
        let limit = match at {
            ChunkState::Size { .. } | ChunkState::Extension { .. } | ChunkState::SizeLf { .. } => {
                MAX_SIZE_LINE
            }
            _ => MAX_TRAILER,
        };
        if self.line > limit {
            let what = "chunk-size line or trailer section";
            return Err(ProtocolError::TooLong { what, limit });
        }
        let next = match (at, byte) {
            (ChunkState::Size { size }, _)
                if byte.is_ascii_hexdigit() && self.line <= MAX_DIGITS =>
            {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                ChunkState::Size {
                    size: size << 4 | digit,
                }
            }
            // The first byte of the line was a digit.
            (ChunkState::Size { size }, b'\r') if self.line > 1 => ChunkState::SizeLf { size },
            (ChunkState::Size { size }, b';') if self.line > 1 => ChunkState::Extension { size },
            (ChunkState::Extension { size }, b'\r') => ChunkState::SizeLf { size },
            (ChunkState::Extension { .. }, _) if is_text(byte) => at,
            (ChunkState::SizeLf { size }, b'\n') => {
                self.line = 0;
                match size {
                    0 => ChunkState::TrailerStart,
                    left => ChunkState::Data { left },
                }
            }
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => {
                self.line = 0;
                ChunkState::Size { size: 0 }
            }
            (ChunkState::TrailerStart, b'\r') => ChunkState::LastLf,
            (ChunkState::TrailerStart | ChunkState::TrailerName, _) if is_token_byte(byte) => {
                ChunkState::TrailerName
            }
            (ChunkState::TrailerName, b':') => ChunkState::TrailerValue,
            (ChunkState::TrailerValue, b'\r') => ChunkState::TrailerLf,
            (ChunkState::TrailerValue, _) if is_text(byte) => at,
            (ChunkState::TrailerLf, b'\n') => ChunkState::TrailerStart,
            (ChunkState::LastLf, b'\n') => ChunkState::End,
            _ => return Err(ProtocolError::Malformed("chunked body")),
        };
        Ok(next)
    }
}
