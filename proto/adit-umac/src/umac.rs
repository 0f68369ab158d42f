//! The key, one-shot tags, and messages that come in pieces.

use core::fmt;

use aes::Aes128Enc;

use crate::Level;
use crate::kdf::{self, HashKeys};
use crate::pad::{LastBlock, Nonce, pad};
use crate::simd::Kernel;
use crate::tag::{Tag, WrongTag};
use crate::uhash::{State, uhash};

/// A key of UMAC with tags of `TAG` octets: 4, 8, 12 or 16.
///
/// It is expanded once (some two microseconds, 2.5 KiB) and cleared on drop. One key belongs to one
/// direction of one connection and to one tag length.
pub struct Umac<const TAG: usize> {
    hash: HashKeys,
    pad: Aes128Enc,
    kernel: Kernel,
}

impl<const TAG: usize> Umac<TAG> {
    /// Expands `key`.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self::with_kernel(key, Kernel::best())
    }

    /// Expands `key` for the instructions of `level`, `None` if this CPU has them not. The tags are
    /// the same.
    #[must_use]
    pub fn with_level(key: &[u8; 16], level: Level) -> Option<Self> {
        Kernel::of(level).map(|kernel| Self::with_kernel(key, kernel))
    }

    fn with_kernel(key: &[u8; 16], kernel: Kernel) -> Self {
        const {
            assert!(
                matches!(TAG, 4 | 8 | 12 | 16),
                "tags have 4, 8, 12 or 16 octets"
            );
        };
        let (hash, pad) = kdf::expand(key);
        Self { hash, pad, kernel }
    }

    /// The instructions in use.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.kernel.level()
    }

    /// The tag of `message`. No other message may get one under the same `nonce`.
    #[must_use]
    pub fn tag(&self, nonce: Nonce, message: &[u8]) -> Tag<TAG> {
        self.tag_after(None, nonce, message)
    }

    /// Whether `tag` belongs to `message` and `nonce`, in a time that does not tell how much of it
    /// is right.
    ///
    /// # Errors
    ///
    /// [`WrongTag`] if it does not, or is not of `TAG` octets.
    pub fn verify(&self, nonce: Nonce, message: &[u8], tag: &[u8]) -> Result<(), WrongTag> {
        self.tag(nonce, message).expect(tag)
    }

    /// For a message that comes in pieces.
    #[must_use]
    pub const fn hasher(&self) -> Hasher<'_, TAG> {
        self.hasher_after(None)
    }

    #[inline(always)]
    pub(crate) fn tag_after(
        &self,
        last: Option<&mut LastBlock>,
        nonce: Nonce,
        message: &[u8],
    ) -> Tag<TAG> {
        // The pad first: AES and the hash run side by side in the CPU.
        let pad = pad::<TAG>(&self.pad, nonce, last);
        Tag::from_upper(pad ^ uhash::<TAG>(&self.hash, self.kernel, message))
    }

    pub(crate) const fn hasher_after<'a>(
        &'a self,
        last: Option<&'a mut LastBlock>,
    ) -> Hasher<'a, TAG> {
        Hasher {
            umac: self,
            last,
            state: State::new(),
        }
    }
}

impl<const TAG: usize> fmt::Debug for Umac<TAG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Umac<{TAG}>(***, {})", self.level().name())
    }
}

/// A message that comes in pieces, of whatever lengths. Whole groups of 32 octets are hashed where
/// they lie; only what is left of a piece is copied.
pub struct Hasher<'a, const TAG: usize> {
    umac: &'a Umac<TAG>,
    last: Option<&'a mut LastBlock>,
    state: State<TAG>,
}

impl<const TAG: usize> Hasher<'_, TAG> {
    /// The next piece of the message.
    pub fn update(&mut self, piece: &[u8]) {
        self.state.update(&self.umac.hash, self.umac.kernel, piece);
    }

    /// The tag of all pieces. No other message may get one under the same `nonce`.
    #[must_use]
    pub fn finish(mut self, nonce: Nonce) -> Tag<TAG> {
        let pad = pad::<TAG>(&self.umac.pad, nonce, self.last.take());
        Tag::from_upper(pad ^ self.state.finish(&self.umac.hash, self.umac.kernel))
    }

    /// Whether `tag` belongs to all pieces and `nonce`, as [`Umac::verify`].
    ///
    /// # Errors
    ///
    /// [`WrongTag`] if it does not, or is not of `TAG` octets.
    pub fn verify(self, nonce: Nonce, tag: &[u8]) -> Result<(), WrongTag> {
        self.finish(nonce).expect(tag)
    }
}

impl<const TAG: usize> fmt::Debug for Hasher<'_, TAG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hasher<{TAG}>(***)")
    }
}
