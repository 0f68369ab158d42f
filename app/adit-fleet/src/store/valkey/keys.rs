//! The keys of a realm. All have the same hash tag, so that a cluster keeps them on one server.

use std::fmt::Display;

/// Makes the keys of a realm.
#[derive(Debug, Clone)]
pub(super) struct Keys(String);

impl Keys {
    pub(super) fn new(realm: &str) -> Self {
        Self(format!("adit:{{{realm}}}:"))
    }

    /// Returns the key with this name.
    pub(super) fn of(&self, name: &str) -> String {
        format!("{}{name}", self.0)
    }

    /// Returns the key with this name and part.
    pub(super) fn part(&self, name: &str, part: impl Display) -> String {
        format!("{}{name}:{part}", self.0)
    }

    /// Returns the pattern of all keys.
    pub(super) fn pattern(&self) -> String {
        self.of("*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_hash_tag_of_the_realm() {
        let keys = Keys::new("main");
        assert_eq!(keys.of("ver"), "adit:{main}:ver");
        assert_eq!(keys.part("use", "2026-11"), "adit:{main}:use:2026-11");
        assert_eq!(keys.pattern(), "adit:{main}:*");
    }
}
