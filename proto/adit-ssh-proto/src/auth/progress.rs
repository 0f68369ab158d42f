//! Methods that a user has completed, and those that may come next.

use super::config::ServerAuthConfig;
use super::message::AuthMethod;
use crate::key::AnyKey;

/// Progress of one user and service; it restarts when the user name changes.
#[derive(Debug, Default)]
pub(super) struct AuthProgress {
    pub(super) user: String,
    pub(super) done: Vec<AuthMethod>,
    /// Keys that have signed, the latest one last.
    pub(super) keys: Vec<AnyKey>,
}

impl AuthProgress {
    pub(super) fn for_user(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the methods that may come next.
    pub(super) fn next_methods(&self, config: &ServerAuthConfig) -> Vec<AuthMethod> {
        let fits = |method: &AuthMethod| {
            let behind = |list: &[AuthMethod]| {
                list.strip_prefix(&*self.done)
                    .is_some_and(|rest| rest.first() == Some(method))
            };
            match config.require.is_empty() {
                true => self.done.is_empty(),
                false => config.require.iter().any(|list| behind(list)),
            }
        };
        config.methods.iter().copied().filter(fits).collect()
    }

    /// Records that a method succeeded; returns true if the user is authenticated.
    pub(super) fn record_success(&mut self, method: AuthMethod, config: &ServerAuthConfig) -> bool {
        self.done.push(method);
        config.require.is_empty() || config.require.contains(&self.done)
    }

    /// True if the key has already signed: the same key does not count twice.
    pub(super) fn has_used(&self, key: &AnyKey) -> bool {
        self.keys.iter().any(|used| used.key() == key.key())
    }
}
