//! Key, one-shot tags, and messages in parts.

use core::fmt;

use aes::Aes128Enc;

use crate::SimdLevel;
use crate::kdf::{self, HashKeys};
use crate::pad::{CachedPad, Nonce, compute_pad};
use crate::simd::NhKernel;
use crate::tag::{Tag, WrongTag};
use crate::uhash::{UhashState, uhash};

/// A UMAC key for tags of `TAG` bytes: 4, 8, 12 or 16.
///
/// It is expanded once (about 2 µs, 2.5 KiB) and cleared on drop. Use one key for one direction of
/// one connection and one tag length.
///
/// # Examples
///
/// ```
/// use adit_umac::{Nonce, Umac};
///
/// let umac = Umac::<16>::new(b"abcdefghijklmnop"); // UMAC-128
/// let tag = umac.compute_tag(Nonce::from(1), b"message");
/// assert_eq!(tag.as_ref().len(), 16);
/// assert!(umac.verify_tag(Nonce::from(1), b"message", tag.as_ref()).is_ok());
/// assert!(umac.verify_tag(Nonce::from(2), b"message", tag.as_ref()).is_err());
/// ```
#[derive(Clone)]
pub struct Umac<const TAG: usize> {
    hash: HashKeys,
    pad: Aes128Enc,
    kernel: NhKernel,
}

impl<const TAG: usize> Umac<TAG> {
    /// Expands `key`.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self::with_kernel(key, NhKernel::best_available())
    }

    /// Expands `key` for the instructions of `level`; returns `None` if this CPU does not support
    /// them. The tags do not depend on the level.
    #[must_use]
    pub fn with_level(key: &[u8; 16], level: SimdLevel) -> Option<Self> {
        NhKernel::for_level(level).map(|kernel| Self::with_kernel(key, kernel))
    }

    fn with_kernel(key: &[u8; 16], kernel: NhKernel) -> Self {
        const {
            assert!(
                matches!(TAG, 4 | 8 | 12 | 16),
                "tags must have 4, 8, 12 or 16 bytes"
            );
        };
        let (hash, pad) = kdf::expand_key(key);
        Self { hash, pad, kernel }
    }

    /// Returns the level of instructions in use.
    #[must_use]
    pub const fn level(&self) -> SimdLevel {
        self.kernel.level()
    }

    /// Returns the tag of `message`. Never use the same `nonce` for another message.
    #[must_use]
    pub fn compute_tag(&self, nonce: Nonce, message: &[u8]) -> Tag<TAG> {
        self.tag_after(None, nonce, message)
    }

    /// Verifies `tag` for `message` and `nonce`. The time does not reveal how much of the tag is
    /// correct.
    ///
    /// # Errors
    ///
    /// [`WrongTag`] if the tag does not match or does not have `TAG` bytes.
    pub fn verify_tag(&self, nonce: Nonce, message: &[u8], tag: &[u8]) -> Result<(), WrongTag> {
        self.compute_tag(nonce, message).expect_equal(tag)
    }

    /// Returns a hasher for a message in parts.
    #[must_use]
    pub const fn new_hasher(&self) -> Hasher<'_, TAG> {
        self.hasher_after(None)
    }

    #[inline(always)]
    pub(crate) fn tag_after(
        &self,
        last: Option<&mut CachedPad>,
        nonce: Nonce,
        message: &[u8],
    ) -> Tag<TAG> {
        // The pad is first, because the CPU overlaps AES with the hash.
        let pad = compute_pad::<TAG>(&self.pad, nonce, last);
        Tag::from_upper(pad ^ uhash::<TAG>(&self.hash, self.kernel, message))
    }

    /// Adds the next part of a message to its state.
    pub(crate) fn absorb_part(&self, state: &mut UhashState<TAG>, part: &[u8]) {
        state.update(&self.hash, self.kernel, part);
    }

    /// Returns the tag. The state must not be used afterwards.
    pub(crate) fn finish_state(
        &self,
        last: Option<&mut CachedPad>,
        nonce: Nonce,
        state: &mut UhashState<TAG>,
    ) -> Tag<TAG> {
        let pad = compute_pad::<TAG>(&self.pad, nonce, last);
        Tag::from_upper(pad ^ state.finish_hash(&self.hash, self.kernel))
    }

    pub(crate) const fn hasher_after<'a>(
        &'a self,
        last: Option<&'a mut CachedPad>,
    ) -> Hasher<'a, TAG> {
        Hasher {
            umac: self,
            last,
            state: UhashState::new(),
        }
    }
}

impl<const TAG: usize> fmt::Debug for Umac<TAG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Umac<{TAG}>(***, {})", self.level().name())
    }
}

/// Computes the tag of a message in parts of any length. Whole groups of 32 bytes are hashed in
/// place; only the rest of a part is copied.
///
/// # Examples
///
/// ```
/// use adit_umac::{Nonce, Umac};
///
/// let umac = Umac::<8>::new(b"abcdefghijklmnop");
/// let mut hasher = umac.new_hasher();
/// hasher.update(b"mess");
/// hasher.update(b"age");
/// let tag = hasher.finish_tag(Nonce::from(7));
/// assert!(umac.verify_tag(Nonce::from(7), b"message", tag.as_ref()).is_ok());
/// ```
pub struct Hasher<'a, const TAG: usize> {
    umac: &'a Umac<TAG>,
    last: Option<&'a mut CachedPad>,
    state: UhashState<TAG>,
}

impl<const TAG: usize> Hasher<'_, TAG> {
    /// Adds the next part of the message.
    pub fn update(&mut self, piece: &[u8]) {
        self.umac.absorb_part(&mut self.state, piece);
    }

    /// Returns the tag of all parts. Never use the same `nonce` for another message.
    #[must_use]
    pub fn finish_tag(mut self, nonce: Nonce) -> Tag<TAG> {
        let last = self.last.take();
        self.umac.finish_state(last, nonce, &mut self.state)
    }

    /// Verifies `tag` for all parts and `nonce`, like [`Umac::verify_tag`].
    ///
    /// # Errors
    ///
    /// [`WrongTag`] if the tag does not match or does not have `TAG` bytes.
    pub fn verify_tag(self, nonce: Nonce, tag: &[u8]) -> Result<(), WrongTag> {
        self.finish_tag(nonce).expect_equal(tag)
    }
}

impl<const TAG: usize> fmt::Debug for Hasher<'_, TAG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hasher<{TAG}>(***)")
    }
}
