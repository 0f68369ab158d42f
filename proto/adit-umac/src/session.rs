//! A key for nonces in increasing order.

use core::fmt;

use crate::pad::CachedPad;
use crate::{Hasher, Nonce, SimdLevel, Tag, Umac, WrongTag};

/// One direction of a connection: a key, and the last AES block of pads.
///
/// The nonces `2k` and `2k + 1` of UMAC-64 (`4k` to `4k + 3` of UMAC-32) share a block, so a
/// counter requires AES only for every second (fourth) message. The tags are the same as those of
/// [`Umac`], in any order of the nonces.
///
/// # Examples
///
/// ```
/// use adit_umac::{Nonce, UmacSession};
///
/// let (mut near, mut far) = (
///     UmacSession::<8>::new(b"abcdefghijklmnop"),
///     UmacSession::<8>::new(b"abcdefghijklmnop"),
/// );
/// for number in 0u64..4 {
///     let tag = near.compute_tag(Nonce::from(number), b"packet");
///     assert!(far.verify_tag(Nonce::from(number), b"packet", tag.as_ref()).is_ok());
/// }
/// ```
#[derive(Clone)]
pub struct UmacSession<const TAG: usize> {
    umac: Umac<TAG>,
    last: CachedPad,
}

impl<const TAG: usize> UmacSession<TAG> {
    /// Expands `key`.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Umac::new(key).into()
    }

    /// Returns the tag of `message`, like [`Umac::compute_tag`].
    #[must_use]
    pub fn compute_tag(&mut self, nonce: Nonce, message: &[u8]) -> Tag<TAG> {
        self.umac.tag_after(Some(&mut self.last), nonce, message)
    }

    /// Verifies `tag`, like [`Umac::verify_tag`].
    ///
    /// # Errors
    ///
    /// [`WrongTag`] if the tag does not match `message` and `nonce`, or does not have `TAG` bytes.
    pub fn verify_tag(&mut self, nonce: Nonce, message: &[u8], tag: &[u8]) -> Result<(), WrongTag> {
        self.compute_tag(nonce, message).expect_equal(tag)
    }

    /// Returns a hasher for a message in parts.
    #[must_use]
    pub const fn new_hasher(&mut self) -> Hasher<'_, TAG> {
        self.umac.hasher_after(Some(&mut self.last))
    }

    /// Returns the level of instructions in use.
    #[must_use]
    pub const fn level(&self) -> SimdLevel {
        self.umac.level()
    }
}

impl<const TAG: usize> From<Umac<TAG>> for UmacSession<TAG> {
    fn from(umac: Umac<TAG>) -> Self {
        Self {
            umac,
            last: CachedPad::empty(),
        }
    }
}

impl<const TAG: usize> fmt::Debug for UmacSession<TAG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UmacSession<{TAG}>(***, {})", self.level().name())
    }
}
