//! The position in a framed body.

use adit_wire::{Broken, u64_from};

use super::chunks::Chunks;
use crate::Framing;

/// Counts the bytes of a body, for any framing.
#[derive(Debug)]
pub(super) enum Progress {
    Left(u64),
    Chunks(Chunks),
    UntilClose,
}

impl Progress {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Left(0),
            Framing::Length(n) => Self::Left(n),
            Framing::Chunked => Self::Chunks(Chunks::default()),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Returns the number of `bytes` that belong to the body.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        match self {
            Self::Left(left) => {
                // A length that does not fit into a usize exceeds the buffer anyway.
                let n = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left = left.saturating_sub(u64_from(n));
                Ok(n)
            }
            Self::Chunks(chunks) => chunks.take(bytes),
            Self::UntilClose => Ok(bytes.len()),
        }
    }

    /// True if the body is complete according to its framing.
    pub(super) const fn ended(&self) -> bool {
        match self {
            Self::Left(left) => *left == 0,
            Self::Chunks(chunks) => chunks.ended(),
            Self::UntilClose => false,
        }
    }

    /// True if the stream may end here.
    pub(super) const fn may_close(&self) -> bool {
        self.ended() || matches!(self, Self::UntilClose)
    }
}
