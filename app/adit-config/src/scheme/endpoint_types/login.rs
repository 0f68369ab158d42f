//! Users with passwords, as in SOCKS and HTTP.

use crate::text::Secret;

/// A user with a password.
#[derive(Debug, PartialEq, Eq)]
pub struct UserPassword {
    /// The user; not empty.
    pub user: String,
    /// The password; not empty.
    pub password: Secret,
}

impl UserPassword {
    /// True if both parts have 1 to 255 bytes (RFC 1929).
    #[must_use]
    pub fn fits_socks5(&self) -> bool {
        let fits = |text: &str| (1..=255).contains(&text.len());
        fits(&self.user) && fits(self.password.expose())
    }
}
