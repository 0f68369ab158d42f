//! Follows the chunked transfer coding (RFC 9112 section 7.1) without decoding it.
//!
//! Stricter than the RFC: no blanks around the size, at most 16 digits, and lines end in CRLF.

use adit_wire::{Broken, held, u64_from};

use crate::head::{is_text, is_token_byte};

/// Maximum length of the line with a chunk's size and extensions, in bytes, including its CRLF.
const MAX_SIZE_LINE: usize = 1 << 10;
/// Maximum length of the trailer section in bytes.
const MAX_TRAILER: usize = 8 << 10;
/// Sixteen hexadecimal digits fill a `u64`.
const MAX_DIGITS: usize = 16;

/// The position of the next byte in the coding.
#[derive(Debug)]
pub(super) struct Chunks {
    at: At,
    /// Number of bytes of the current size line or trailer section.
    line: usize,
}

#[derive(Debug, Clone, Copy)]
enum At {
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

impl Default for Chunks {
    fn default() -> Self {
        Self {
            at: At::Size { size: 0 },
            line: 0,
        }
    }
}

impl Chunks {
    /// Returns the number of `bytes` that belong to the body; fewer than all only if the body has
    /// ended.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let mut rest = bytes;
        loop {
            match (self.at, rest) {
                (At::End, _) | (_, []) => return Ok(bytes.len() - rest.len()),
                (At::Data { left }, _) => {
                    let n = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                    let left = left.saturating_sub(u64_from(n));
                    self.at = match left {
                        0 => At::DataCr,
                        _ => At::Data { left },
                    };
                    rest = held(rest, n..);
                }
                (at, [byte, after @ ..]) => {
                    self.at = self.step(at, *byte)?;
                    rest = after;
                }
            }
        }
    }

    pub(super) const fn ended(&self) -> bool {
        matches!(self.at, At::End)
    }

    /// Handles one byte of the framing.
    fn step(&mut self, at: At, byte: u8) -> Result<At, Broken> {
        self.line += 1;
        let limit = match at {
            At::Size { .. } | At::Extension { .. } | At::SizeLf { .. } => MAX_SIZE_LINE,
            _ => MAX_TRAILER,
        };
        if self.line > limit {
            let what = "chunk-size line or trailer section";
            return Err(Broken::TooLong { what, limit });
        }
        let next = match (at, byte) {
            (At::Size { size }, _) if byte.is_ascii_hexdigit() && self.line <= MAX_DIGITS => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                At::Size {
                    size: size << 4 | digit,
                }
            }
            // The first byte of the line was a digit.
            (At::Size { size }, b'\r') if self.line > 1 => At::SizeLf { size },
            (At::Size { size }, b';') if self.line > 1 => At::Extension { size },
            (At::Extension { size }, b'\r') => At::SizeLf { size },
            (At::Extension { .. }, _) if is_text(byte) => at,
            (At::SizeLf { size }, b'\n') => {
                self.line = 0;
                match size {
                    0 => At::TrailerStart,
                    left => At::Data { left },
                }
            }
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => {
                self.line = 0;
                At::Size { size: 0 }
            }
            (At::TrailerStart, b'\r') => At::LastLf,
            (At::TrailerStart | At::TrailerName, _) if is_token_byte(byte) => At::TrailerName,
            (At::TrailerName, b':') => At::TrailerValue,
            (At::TrailerValue, b'\r') => At::TrailerLf,
            (At::TrailerValue, _) if is_text(byte) => at,
            (At::TrailerLf, b'\n') => At::TrailerStart,
            (At::LastLf, b'\n') => At::End,
            _ => return Err(Broken::Malformed("chunked body")),
        };
        Ok(next)
    }
}
