//! Which methods a user has behind him, and which may come next.

use super::config::ServerConfig;
use super::message::Method;
use crate::key::AnyKey;

/// The state of one user and service; another user starts anew.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) user: String,
    pub(super) done: Vec<Method>,
    /// Keys that have signed, the last one last.
    pub(super) keys: Vec<AnyKey>,
}

impl Progress {
    pub(super) fn of(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            ..Self::default()
        }
    }

    /// The methods that may come next.
    pub(super) fn next(&self, config: &ServerConfig) -> Vec<Method> {
        let fits = |method: &Method| {
            let behind = |list: &[Method]| {
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

    /// Notes that a method succeeded; tells whether the user is in.
    pub(super) fn succeed(&mut self, method: Method, config: &ServerConfig) -> bool {
        self.done.push(method);
        config.require.is_empty() || config.require.contains(&self.done)
    }

    /// Whether the key has signed already: the same key is not two.
    pub(super) fn has_used(&self, key: &AnyKey) -> bool {
        self.keys.iter().any(|used| used.key() == key.key())
    }
}
