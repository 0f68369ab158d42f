//! User names and passwords in memory.

use std::fmt;

use adit_http::server::BasicAuth;
use adit_socks::server::Credentials;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The users of a server, with their passwords; cleared on drop.
pub struct Users(Option<Vec<User>>);

struct User {
    name: Zeroizing<String>,
    password: Zeroizing<String>,
}

impl Users {
    /// Creates a list of names and passwords. No one can log in if it is empty.
    pub fn new<N, P>(users: impl IntoIterator<Item = (N, P)>) -> Self
    where
        N: Into<String>,
        P: Into<String>,
    {
        let users = users.into_iter().map(|(name, password)| User {
            name: Zeroizing::new(name.into()),
            password: Zeroizing::new(password.into()),
        });
        Self(Some(users.collect()))
    }

    /// Accepts everyone without a login.
    #[must_use]
    pub const fn anyone() -> Self {
        Self(None)
    }
}

impl Credentials for Users {
    fn is_required(&self) -> bool {
        self.0.is_some()
    }

    /// Compares with all users, in a time that depends only on the lengths.
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
        let users = self.0.as_deref().unwrap_or_default();
        let found = users.iter().fold(0, |found, known| {
            let name = known.name.as_bytes().ct_eq(user);
            found | (name & known.password.as_bytes().ct_eq(password)).unwrap_u8()
        });
        found == 1
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().flatten().map(|user| &*user.name);
        f.debug_tuple("Users")
            .field(&names.collect::<Vec<_>>())
            .finish()
    }
}

/// The credentials of a server for HTTP clients.
pub(crate) struct HttpCredentials<'c>(pub(crate) &'c dyn Credentials);

impl BasicAuth for HttpCredentials<'_> {
    fn is_required(&self) -> bool {
        self.0.is_required()
    }

    fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
        self.0.check_password(user, password)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pairs_match() {
        let users = Users::new([("ann", "secret"), ("bob", "")]);
        let check =
            |user: &str, password: &str| users.check_password(user.as_bytes(), password.as_bytes());
        assert!(users.is_required());
        assert!(check("ann", "secret") && check("bob", ""));
        for (user, password) in [
            ("ann", ""),
            ("ann", "secre"),
            ("bob", "secret"),
            ("", ""),
            ("eve", "secret"),
        ] {
            assert!(!check(user, password), "{user} {password}");
        }
        assert!(!format!("{users:?}").contains("secret"));
    }

    #[test]
    fn an_empty_list_is_not_open() {
        let nobody = Users::new([("", ""); 0]);
        assert!(nobody.is_required() && !nobody.check_password(b"", b""));
        assert!(!Users::anyone().is_required());
    }
}
