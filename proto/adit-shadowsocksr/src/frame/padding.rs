//! The padding block in front of a frame's data: its own length, then random bytes.

use adit_wire::{Entropy, ProtocolError};

use crate::field::{length_field, put_field, range_mut};

/// The encoding of a block's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LengthEncoding {
    /// One byte, 1 to 255.
    Byte,
    /// One byte up to 254, or 255 and two bytes, big-endian.
    Big,
    /// The same, little-endian.
    Little,
}

/// A block to write: its total length, and the form of its length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaddingBlock {
    len: usize,
    long: bool,
}

/// The first byte of the long form.
const LONG: u8 = 255;

impl PaddingBlock {
    /// A block without random bytes.
    pub(crate) const NONE: Self = Self {
        len: 1,
        long: false,
    };

    /// Returns the maximum length of a block with `n` random bytes.
    pub(crate) const fn max_len(n: usize) -> usize {
        n + 3
    }

    /// Creates a block with `n` random bytes, in the form that peers use.
    pub(crate) const fn with_random(n: usize) -> Self {
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
    pub(crate) fn write_block(
        self,
        frame: &mut [u8],
        at: usize,
        style: LengthEncoding,
        rng: &mut dyn Entropy,
    ) -> Result<(), ProtocolError> {
        let whole = length_field(self.len)?;
        let head = if self.long {
            put_field(frame, at, &[LONG])?;
            let field = match style {
                LengthEncoding::Little => whole.to_le_bytes(),
                _ => whole.to_be_bytes(),
            };
            put_field(frame, at + 1, &field)?;
            3
        } else {
            let short = u8::try_from(whole).map_err(|_| ProtocolError::Malformed("padding"))?;
            put_field(frame, at, &[short])?;
            1
        };
        if self.len > head {
            rng.fill(range_mut(frame, at + head..at + self.len)?);
        }
        Ok(())
    }

    /// Returns the length of the block at the front of `bytes`, which may exceed the available
    /// bytes.
    pub(crate) fn read_len(bytes: &[u8], style: LengthEncoding) -> Result<usize, ProtocolError> {
        let (len, low) = match (bytes, style) {
            ([LONG, a, b, ..], LengthEncoding::Big) => (u16::from_be_bytes([*a, *b]), 3),
            ([LONG, a, b, ..], LengthEncoding::Little) => (u16::from_le_bytes([*a, *b]), 3),
            ([LONG, ..], LengthEncoding::Big | LengthEncoding::Little) | ([], _) => {
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
impl PaddingBlock {
    /// Returns the received block, to be written again with its random bytes.
    pub(crate) fn again(block: &[u8], style: LengthEncoding) -> (Self, adit_wire::FixedEntropy) {
        let long = style != LengthEncoding::Byte && block[0] == LONG;
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
        for style in [LengthEncoding::Big, LengthEncoding::Little] {
            for n in [0, 1, 127, 128, 252, 253, 300, 1000] {
                let pad = PaddingBlock::with_random(n);
                assert!(pad.len() <= PaddingBlock::max_len(n));
                let mut frame = vec![0; pad.len() + 2];
                let mut rng = FixedEntropy::new(vec![7; n]);
                pad.write_block(&mut frame, 1, style, &mut rng).unwrap();
                assert_eq!(PaddingBlock::read_len(&frame[1..], style), Ok(pad.len()));
                assert_eq!(frame.iter().filter(|b| **b == 7).count(), n);
            }
        }
    }

    #[test]
    fn lengths_that_lie() {
        for bytes in [&[][..], &[0], &[255], &[255, 0], &[255, 0, 0], &[255, 0, 2]] {
            assert!(
                PaddingBlock::read_len(bytes, LengthEncoding::Big).is_err(),
                "{bytes:?}"
            );
        }
        assert_eq!(
            PaddingBlock::read_len(&[255, 0, 0], LengthEncoding::Byte),
            Ok(255)
        );
        assert_eq!(
            PaddingBlock::read_len(&[255, 4, 0], LengthEncoding::Little),
            Ok(4)
        );
    }
}
