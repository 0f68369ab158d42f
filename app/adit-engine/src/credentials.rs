//! User names and passwords, compared in constant time.

use adit_config::Login;
use adit_crypto::{CredentialDigest, CredentialHasher};
use adit_net::ambient::SystemChance;
use adit_wire::Entropy;

/// The users of a proxy listener.
///
/// Only keyed digests are stored. Every attempt is compared with all users, so that neither the duration
/// nor the order of lookups reveals if a name exists.
pub(crate) struct Credentials {
    hasher: CredentialHasher,
    digests: Vec<CredentialDigest>,
}

impl Credentials {
    pub(crate) fn new(users: &[Login]) -> Self {
        let mut key = [0; 32];
        SystemChance.fill(&mut key);
        let hasher = CredentialHasher::new(key);
        let digests = users
            .iter()
            .map(|l| hasher.digest(&[l.user.as_bytes(), l.password.expose().as_bytes()]))
            .collect();
        Self { hasher, digests }
    }

    /// Returns true if users are configured.
    pub(crate) fn required(&self) -> bool {
        !self.digests.is_empty()
    }

    /// Returns true if the pair belongs to a user.
    pub(crate) fn known(&self, user: &[u8], password: &[u8]) -> bool {
        let attempt = self.hasher.digest(&[user, password]);
        self.digests
            .iter()
            .fold(false, |found, digest| found | (*digest == attempt))
    }
}

impl adit_socks::Credentials for Credentials {
    fn required(&self) -> bool {
        self.required()
    }
    /// Accepts any pair if there are no users: some clients can only offer a stored password.
    fn check(&self, user: &[u8], password: &[u8]) -> bool {
        !self.required() || self.known(user, password)
    }
}

impl adit_http::server::BasicAuth for Credentials {
    fn required(&self) -> bool {
        self.required()
    }
    fn check(&self, user: &[u8], password: &[u8]) -> bool {
        self.known(user, password)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_config::Secret;

    fn login(user: &str, password: &str) -> Login {
        Login {
            user: user.to_owned(),
            password: Secret::new(password.to_owned()),
        }
    }

    #[test]
    fn pairs_are_exact() {
        let users = Credentials::new(&[login("a", "1"), login("b", "2")]);
        assert!(users.known(b"a", b"1") && users.known(b"b", b"2"));
        for (user, password) in [("a", "2"), ("a", ""), ("", "1"), ("A", "1"), ("a1", "")] {
            assert!(
                !users.known(user.as_bytes(), password.as_bytes()),
                "{user}:{password}"
            );
        }
    }

    #[test]
    fn without_users_anyone_may_come() {
        let open = Credentials::new(&[]);
        assert!(!open.required() && adit_socks::Credentials::check(&open, b"x", b"y"));
    }
}
