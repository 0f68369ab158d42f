//! The padding block in front of a frame's data: its own length, then random bytes.

use adit_wire::{Entropy, ProtocolError};

use crate::field::{len_16, part, put};

/// The encoding of a block's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// One byte, 1 to 255.
    Byte,
    /// One byte up to 254, or 255 and two bytes, big-endian.
    Big,
    /// The same, little-endian.
    Little,
}

/// A block to write: its total length, and the form of its length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pad {
    len: usize,
    long: bool,
}

/// The first byte of the long form.
const LONG: u8 = 255;

impl Pad {
    /// A block without random bytes.
    pub(crate) const NONE: Self = Self {
        len: 1,
        long: false,
    };

    /// Returns the maximum length of a block with `n` random bytes.
    pub(crate) const fn longest(n: usize) -> usize {
        n + 3
    }

    /// Creates a block with `n` random bytes, in the form that peers use.
    pub(crate) const fn random(n: usize) -> Self {
        if n < 128 {
            Self {
                len: n + 1,
                long: false,
            }
        } else {
            Self {
                len: n + 3,
                long: true,
            }
        }
    }

    pub(crate) const fn len(self) -> usize {
        self.len
    }

    /// Writes the block at `frame[at..]`.
    pub(crate) fn write(
        self,
        frame: &mut [u8],
        at: usize,
        style: Style,
        chance: &mut dyn Entropy,
    ) -> Result<(), ProtocolError> {
        let whole = len_16(self.len)?;
        let head = if self.long {
            put(frame, at, &[LONG])?;
            let field = match style {
                Style::Little => whole.to_le_bytes(),
                _ => whole.to_be_bytes(),
            };
            put(frame, at + 1, &field)?;
            3
        } else {
            let short = u8::try_from(whole).map_err(|_| ProtocolError::Malformed("padding"))?;
            put(frame, at, &[short])?;
            1
        };
        if self.len > head {
            chance.fill(part(frame, at + head..at + self.len)?);
        }
        Ok(())
    }

    /// Returns the length of the block at the front of `bytes`, which may exceed the available
    /// bytes.
    pub(crate) fn read(bytes: &[u8], style: Style) -> Result<usize, ProtocolError> {
        let (len, low) = match (bytes, style) {
            ([LONG, a, b, ..], Style::Big) => (u16::from_be_bytes([*a, *b]), 3),
            ([LONG, a, b, ..], Style::Little) => (u16::from_le_bytes([*a, *b]), 3),
            ([LONG, ..], Style::Big | Style::Little) | ([], _) => {
                return Err(ProtocolError::Malformed("padding: truncated"));
            }
            ([len, ..], _) => (u16::from(*len), 1),
        };
        if len < low {
            return Err(ProtocolError::Malformed(
                "padding: shorter than its length field",
            ));
        }
        Ok(usize::from(len))
    }
}

#[cfg(test)]
impl Pad {
    /// Returns the received block, to be written again with its random bytes.
    pub(crate) fn again(block: &[u8], style: Style) -> (Self, adit_wire::FixedEntropy) {
        let long = style != Style::Byte && block[0] == LONG;
        let pad = Self {
            len: block.len(),
            long,
        };
        let head = if long { 3 } else { 1 };
        (pad, adit_wire::FixedEntropy::new(&block[head..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    #[test]
    fn blocks_round_trip() {
        for style in [Style::Big, Style::Little] {
            for n in [0, 1, 127, 128, 252, 253, 300, 1000] {
                let pad = Pad::random(n);
                assert!(pad.len() <= Pad::longest(n));
                let mut frame = vec![0; pad.len() + 2];
                let mut chance = FixedEntropy::new(vec![7; n]);
                pad.write(&mut frame, 1, style, &mut chance).unwrap();
                assert_eq!(Pad::read(&frame[1..], style), Ok(pad.len()));
                assert_eq!(frame.iter().filter(|b| **b == 7).count(), n);
            }
        }
    }

    #[test]
    fn lengths_that_lie() {
        for bytes in [&[][..], &[0], &[255], &[255, 0], &[255, 0, 0], &[255, 0, 2]] {
            assert!(Pad::read(bytes, Style::Big).is_err(), "{bytes:?}");
        }
        assert_eq!(Pad::read(&[255, 0, 0], Style::Byte), Ok(255));
        assert_eq!(Pad::read(&[255, 4, 0], Style::Little), Ok(4));
    }
}
