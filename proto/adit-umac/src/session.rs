//! A key whose nonces come in order.

use core::fmt;

use crate::pad::LastBlock;
use crate::{Hasher, Level, Nonce, Tag, Umac, WrongTag};

/// One direction of a connection: a key, and the last block of pads that AES made.
///
/// The nonces `2k` and `2k + 1` of UMAC-64 (`4k` to `4k + 3` of UMAC-32) share a block, so that a
/// counter needs AES for every second (fourth) message only. The tags are those of [`Umac`], in
/// whatever order the nonces come.
pub struct Session<const TAG: usize> {
    umac: Umac<TAG>,
    last: LastBlock,
}

impl<const TAG: usize> Session<TAG> {
    /// Expands `key`.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Umac::new(key).into()
    }

    /// As [`Umac::tag`].
    #[must_use]
    pub fn tag(&mut self, nonce: Nonce, message: &[u8]) -> Tag<TAG> {
        self.umac.tag_after(Some(&mut self.last), nonce, message)
    }

    /// As [`Umac::verify`].
    ///
    /// # Errors
    ///
    /// [`WrongTag`] if the tag does not belong to `message` and `nonce`, or is not of `TAG` octets.
    pub fn verify(&mut self, nonce: Nonce, message: &[u8], tag: &[u8]) -> Result<(), WrongTag> {
        self.tag(nonce, message).expect(tag)
    }

    /// For a message that comes in pieces.
    #[must_use]
    pub const fn hasher(&mut self) -> Hasher<'_, TAG> {
        self.umac.hasher_after(Some(&mut self.last))
    }

    /// The instructions in use.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.umac.level()
    }
}

impl<const TAG: usize> From<Umac<TAG>> for Session<TAG> {
    fn from(umac: Umac<TAG>) -> Self {
        Self {
            umac,
            last: LastBlock::none(),
        }
    }
}

impl<const TAG: usize> fmt::Debug for Session<TAG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session<{TAG}>(***, {})", self.level().name())
    }
}
