//! What follows the head of a direction, opened alike by both roles: chunks or raw bytes.

use adit_wire::{Broken, Opened};

use super::chunk::ChunkOpen;

/// What follows the head of a direction.
pub(super) enum Body {
    Chunks(ChunkOpen),
    /// Method `none`.
    Raw,
}

impl Body {
    pub(super) fn open(&mut self, wire: &mut [u8]) -> Result<Opened, Broken> {
        match self {
            Self::Chunks(chunks) => chunks.open(wire),
            Self::Raw if wire.is_empty() => Ok(Opened::NeedMore { total: 1 }),
            Self::Raw => Ok(Opened::Record {
                consumed: wire.len(),
                payload: 0..wire.len(),
            }),
        }
    }

    pub(super) const fn at_boundary(&self, unread: usize) -> bool {
        match self {
            Self::Chunks(chunks) => unread == 0 && chunks.at_boundary(),
            Self::Raw => unread == 0,
        }
    }
}
