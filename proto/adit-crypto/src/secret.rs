//! Values that are cleared on drop, never printed and compared in constant time.

use core::fmt;

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// A value that must not leak: cleared on drop, no `Display`, no `Clone`, `Debug` prints `***`.
///
/// Reading it is explicit: [`Secret::expose`]. Only the final allocation is cleared; a `String` or `Vec`
/// that grew has left copies behind, so build it with its full capacity.
///
/// # Examples
///
/// ```
/// use adit_crypto::Secret;
///
/// let password = Secret::new(String::from("hunter2"));
/// assert_eq!(password.expose(), "hunter2");
/// assert!(!format!("{password:?}").contains("hunter2"));
/// ```
pub struct Secret<T: Zeroize>(Zeroizing<T>);

impl<T: Zeroize> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(Zeroizing::new(value))
    }

    /// Returns the value, for the one place that needs it.
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// Returns the value, to be written once.
    pub fn expose_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Zeroize> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T: Zeroize + AsRef<[u8]>> PartialEq for Secret<T> {
    fn eq(&self, other: &Self) -> bool {
        ct_eq((*self.0).as_ref(), (*other.0).as_ref())
    }
}

impl<T: Zeroize + AsRef<[u8]>> Eq for Secret<T> {}

/// Returns true if two byte strings are equal, in a time that depends on their lengths alone.
#[must_use]
pub fn ct_eq(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_no_secret() {
        let secret = Secret::new(String::from("barfoo!"));
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(secret.expose(), "barfoo!");
    }

    #[test]
    fn equality_is_of_bytes_and_lengths() {
        assert!(ct_eq(b"abc", b"abc"));
        assert!(!ct_eq(b"abc", b"abd") && !ct_eq(b"abc", b"ab") && !ct_eq(b"", b"a"));
        assert!(Secret::new([1u8, 2]) == Secret::new([1, 2]));
        assert!(Secret::new([1u8, 2]) != Secret::new([1, 3]));
    }
}
