//! Finds the end of a head as its bytes arrive, examining each byte once.

use crate::{MAX_FIELDS, MAX_HEAD, MAX_RESPONSE_FIELDS, MAX_RESPONSE_HEAD, MAX_START_LINE};

/// The reason bytes are not a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// The bytes violate the grammar.
    Malformed(&'static str),
    /// The head exceeds a limit.
    TooLarge(&'static str),
}

/// An incremental scan of a head.
///
/// Lines end in CRLF. A lone CR, a lone LF and NUL are refused immediately. RFC 9112 section 2.2
/// allows a lone LF, but requests are smuggled through parsers that differ there.
#[derive(Debug)]
pub(crate) struct HeadScan {
    max_head: usize,
    max_fields: usize,
    seen: usize,
    line_start: usize,
    lines: usize,
    after_cr: bool,
}

impl HeadScan {
    const fn with_limits(max_head: usize, max_fields: usize) -> Self {
        Self {
            max_head,
            max_fields,
            seen: 0,
            line_start: 0,
            lines: 0,
            after_cr: false,
        }
    }

    /// Creates a scan of a request's head.
    pub(crate) const fn for_request() -> Self {
        Self::with_limits(MAX_HEAD, MAX_FIELDS)
    }

    /// Creates a scan of a response's head.
    pub(crate) const fn for_response() -> Self {
        Self::with_limits(MAX_RESPONSE_HEAD, MAX_RESPONSE_FIELDS)
    }

    /// Scans the new bytes of `bytes`, which must begin with the first byte of the head in every
    /// call. Returns the length of the head, including its empty line, once it is complete.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Result<Option<usize>, HeadError> {
        for byte in bytes.iter().skip(self.seen) {
            let at = self.seen;
            self.seen += 1;
            if self.lines == 0 && at > MAX_START_LINE + 1 {
                return Err(HeadError::TooLarge("start line"));
            }
            match (byte, self.after_cr) {
                (b'\n', true) => {
                    self.after_cr = false;
                    // Only the CR precedes this LF in its line.
                    if at == self.line_start + 1 {
                        return match self.lines {
                            0 => Err(HeadError::Malformed("start line")),
                            _ => Ok(Some(self.seen)),
                        };
                    }
                    self.lines += 1;
                    self.line_start = self.seen;
                    if self.lines > 1 + self.max_fields {
                        return Err(HeadError::TooLarge("number of header lines"));
                    }
                }
                (b'\r', false) => self.after_cr = true,
                (b'\n', false) | (_, true) => return Err(HeadError::Malformed("line end")),
                (0, false) => return Err(HeadError::Malformed("byte in the head")),
                _ => {}
            }
            if self.seen >= self.max_head {
                return Err(HeadError::TooLarge("head"));
            }
        }
        Ok(None)
    }
}
