//! How much of a framed body has passed.

use adit_wire::{ProtocolError, u64_from};

use super::chunks::Chunks;
use crate::Framing;

/// Counts a body's bytes as they pass, whatever its framing.
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

    /// How many of `bytes` belong to the body.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        match self {
            Self::Left(left) => {
                // What does not fit a usize is more than there is.
                let n = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left = left.saturating_sub(u64_from(n));
                Ok(n)
            }
            Self::Chunks(chunks) => chunks.take(bytes),
            Self::UntilClose => Ok(bytes.len()),
        }
    }

    /// Whether the body is complete by its framing.
    pub(super) const fn ended(&self) -> bool {
        match self {
            Self::Left(left) => *left == 0,
            Self::Chunks(chunks) => chunks.ended(),
            Self::UntilClose => false,
        }
    }

    /// Whether the stream may end here.
    pub(super) const fn may_close(&self) -> bool {
        self.ended() || matches!(self, Self::UntilClose)
    }
}
