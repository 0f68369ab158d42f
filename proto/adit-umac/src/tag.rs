//! Tags and their comparison in constant time.

use core::fmt;

use subtle::ConstantTimeEq;

/// A tag of `TAG` bytes in its wire format. Equality takes constant time.
#[derive(Clone, Copy, Debug)]
pub struct Tag<const TAG: usize>([u8; TAG]);

impl<const TAG: usize> Tag<TAG> {
    /// Takes the upper bits of `value`.
    #[inline(always)]
    pub(crate) fn from_upper(value: u128) -> Self {
        let octets = value.to_be_bytes();
        let mut tag = [0; TAG];
        for (to, from) in tag.iter_mut().zip(octets) {
            *to = from;
        }
        Self(tag)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn into_array(self) -> [u8; TAG] {
        self.0
    }

    /// Compares the whole tag with a received one.
    ///
    /// # Errors
    ///
    /// [`WrongTag`] if a byte or the length differs.
    #[inline]
    pub(crate) fn expect_equal(&self, received: &[u8]) -> Result<(), WrongTag> {
        let same: bool = self.0.ct_eq(received).into();
        same.then_some(()).ok_or(WrongTag)
    }
}

impl<const TAG: usize> AsRef<[u8]> for Tag<TAG> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<const TAG: usize> From<Tag<TAG>> for [u8; TAG] {
    fn from(tag: Tag<TAG>) -> Self {
        tag.0
    }
}

impl<const TAG: usize> PartialEq for Tag<TAG> {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl<const TAG: usize> Eq for Tag<TAG> {}

/// The tag does not match the message: the peer does not have the key, or bytes were altered in
/// transit. Respond by closing the connection, not with a second attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongTag;

impl fmt::Display for WrongTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the authentication tag is wrong")
    }
}

impl core::error::Error for WrongTag {}
