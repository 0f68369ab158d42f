//! User names and passwords, compared in constant time.

use std::sync::{Arc, PoisonError, RwLock};

use adit_config::UserPassword;
use adit_crypto::{CredentialDigest, CredentialHasher};
use adit_net::system::SystemRng;
use adit_wire::Entropy;

use crate::fleet::FleetLogins;

/// The users of a proxy listener.
///
/// Only keyed digests are stored. Every attempt is compared with all users, so that neither the duration
/// nor the order of lookups reveals if a name exists.
pub(crate) struct ListenerCredentials {
    hasher: CredentialHasher,
    digests: RwLock<Vec<CredentialDigest>>,
    /// The users of the fleet, who are accepted too.
    fleet: Option<Arc<FleetLogins>>,
}

impl ListenerCredentials {
    pub(crate) fn new(users: &[UserPassword]) -> Self {
        let mut key = [0; 32];
        SystemRng.fill(&mut key);
        let credentials = Self {
            hasher: CredentialHasher::new(key),
            digests: RwLock::default(),
            fleet: None,
        };
        credentials.replace(users);
        credentials
    }

    /// Accepts the users of the fleet too, and no one without a password.
    pub(crate) fn with_fleet(self, users: Arc<FleetLogins>) -> Self {
        Self {
            fleet: Some(users),
            ..self
        }
    }

    /// Replaces the users. Requests that were accepted are not affected.
    pub(crate) fn replace<'a>(&self, users: impl IntoIterator<Item = &'a UserPassword>) {
        let digest = |login: &UserPassword| {
            let password = login.password.expose().as_bytes();
            self.hasher.digest_parts(&[login.user.as_bytes(), password])
        };
        let digests = users.into_iter().map(digest).collect();
        *self.digests.write().unwrap_or_else(PoisonError::into_inner) = digests;
    }

    fn read_digests(&self) -> impl std::ops::Deref<Target = Vec<CredentialDigest>> {
        self.digests.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if users are configured.
    pub(crate) fn required(&self) -> bool {
        self.fleet.is_some() || !self.read_digests().is_empty()
    }

    /// Returns true if the pair belongs to a user.
    pub(crate) fn matches(&self, user: &[u8], password: &[u8]) -> bool {
        let attempt = self.hasher.digest_parts(&[user, password]);
        let found = self
            .read_digests()
            .iter()
            .fold(false, |found, digest| found | (*digest == attempt));
        let fleet = self.fleet.as_ref();
        found | fleet.is_some_and(|fleet| fleet.matches(user, password))
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
    fn replaced_users_are_others() {
        let users = ListenerCredentials::new(&[login("a", "1"), login("b", "2")]);
        users.replace(&[login("b", "3")]);
        assert!(users.matches(b"b", b"3"));
        assert!(!users.matches(b"b", b"2") && !users.matches(b"a", b"1"));
    }

    #[test]
    fn without_users_anyone_may_come() {
        let open = ListenerCredentials::new(&[]);
        assert!(!open.required() && adit_socks::Credentials::check_password(&open, b"x", b"y"));
    }
}
