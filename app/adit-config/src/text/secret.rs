//! Secrets: zeroized on drop, never printed, compared in constant time.

use core::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A password or key as text; empty by default. Clones share the text, which is zeroized when the
/// last one is dropped. `Debug` shows nothing of it.
#[derive(Clone, Default)]
pub struct Secret(Arc<Zeroizing<String>>);

impl Secret {
    /// Takes ownership of a secret.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Arc::new(Zeroizing::new(text)))
    }

    /// Returns the text itself. The name makes every use of the plain secret easy to find.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text.to_owned())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// The secret of a URL as it was written: the secret itself, or a reference to it.
#[derive(Debug, PartialEq, Eq)]
pub enum SecretText {
    /// The secret itself.
    Literal(Secret),
    /// `@path`: the content of a file, without the line break at its end.
    File(String),
    /// `$NAME`: the value of an environment variable.
    Variable(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        let secret = SecretText::Literal(Secret::from("hunter2"));
        assert_eq!(format!("{secret:?}"), "Literal(Secret(***))");
    }

    #[test]
    fn equality_is_by_content() {
        assert_eq!(Secret::from("a"), Secret::from("a"));
        assert_ne!(Secret::from("a"), Secret::from("b"));
        assert_ne!(Secret::from("a"), Secret::from("ab"));
    }
}
