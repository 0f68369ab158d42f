//! The position in a framed body.

use adit_wire::{ProtocolError, u64_from};

use super::chunks::ChunkScanner;
use crate::Framing;

/// Counts the bytes of a body, for any framing.
#[derive(Debug)]
pub(super) enum BodyProgress {
    Left(u64),
    Chunks(ChunkScanner),
    UntilClose,
}

impl BodyProgress {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Left(0),
            Framing::Length(n) => Self::Left(n),
            Framing::Chunked => Self::Chunks(ChunkScanner::default()),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Returns the number of `bytes` that belong to the body.
    pub(super) fn take_body(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        match self {
            Self::Left(left) => {
                // A length that does not fit into a usize exceeds the buffer anyway.
                let n = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left = left.saturating_sub(u64_from(n));
                Ok(n)
            }
            Self::Chunks(chunks) => chunks.take_body(bytes),
            Self::UntilClose => Ok(bytes.len()),
        }
    }

    /// True if the body is complete according to its framing.
    pub(super) const fn is_ended(&self) -> bool {
        match self {
            Self::Left(left) => *left == 0,
            Self::Chunks(chunks) => chunks.is_ended(),
            Self::UntilClose => false,
        }
    }

    /// True if the stream may end here.
    pub(super) const fn may_close(&self) -> bool {
        self.is_ended() || matches!(self, Self::UntilClose)
    }
}
