//! User names and passwords, compared in constant time.

use adit_config::UserPassword;
use adit_crypto::{CredentialDigest, CredentialHasher};
use adit_net::system::SystemRng;
use adit_wire::Entropy;

/// The users of a proxy listener.
///
/// Only keyed digests are stored. Every attempt is compared with all users, so that neither the duration
/// nor the order of lookups reveals if a name exists.
pub(crate) struct ListenerCredentials {
    hasher: CredentialHasher,
    digests: Vec<CredentialDigest>,
}

impl ListenerCredentials {
    pub(crate) fn new(users: &[UserPassword]) -> Self {
        let mut key = [0; 32];
        SystemRng.fill(&mut key);
        let hasher = CredentialHasher::new(key);
        let digests = users
            .iter()
            .map(|l| hasher.digest_parts(&[l.user.as_bytes(), l.password.expose().as_bytes()]))
            .collect();
        Self { hasher, digests }
    }

    /// Returns true if users are configured.
    pub(crate) fn required(&self) -> bool {
        !self.digests.is_empty()
    }

    /// Returns true if the pair belongs to a user.
    pub(crate) fn matches(&self, user: &[u8], password: &[u8]) -> bool {
        let attempt = self.hasher.digest_parts(&[user, password]);
        self.digests
            .iter()
            .fold(false, |found, digest| found | (*digest == attempt))
    }
}

impl adit_socks::Credentials for ListenerCredentials {
    fn is_required(&self) -> bool {
        self.required()
    }
    /// Accepts any pair if there are no users: some clients can only offer a stored password.
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
        !self.required() || self.matches(user, password)
    }
}

impl adit_http::server::BasicAuth for ListenerCredentials {
    fn is_required(&self) -> bool {
        self.required()
    }
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
        self.matches(user, password)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_config::Secret;

    fn login(user: &str, password: &str) -> UserPassword {
        UserPassword {
            user: user.to_owned(),
            password: Secret::new(password.to_owned()),
        }
    }

    #[test]
    fn pairs_are_exact() {
        let users = ListenerCredentials::new(&[login("a", "1"), login("b", "2")]);
        assert!(users.matches(b"a", b"1") && users.matches(b"b", b"2"));
        for (user, password) in [("a", "2"), ("a", ""), ("", "1"), ("A", "1"), ("a1", "")] {
            assert!(
                !users.matches(user.as_bytes(), password.as_bytes()),
                "{user}:{password}"
            );
        }
    }

    #[test]
    fn without_users_anyone_may_come() {
        let open = ListenerCredentials::new(&[]);
        assert!(!open.required() && adit_socks::Credentials::check_password(&open, b"x", b"y"));
    }
}
