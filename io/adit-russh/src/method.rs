//! Authentication methods and their results.

use std::ops::Deref;
use std::str::FromStr;

use adit_ssh_proto::auth::AuthMethod;

/// An authentication method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// No authentication.
    None,
    /// A password.
    Password,
    /// A public key or a certificate.
    PublicKey,
    /// The key of the client's host. Known by name, not supported.
    HostBased,
    /// Keyboard-interactive.
    KeyboardInteractive,
}

const METHOD_NAMES: [(MethodKind, &str); 5] = [
    (MethodKind::None, "none"),
    (MethodKind::Password, "password"),
    (MethodKind::PublicKey, "publickey"),
    (MethodKind::HostBased, "hostbased"),
    (MethodKind::KeyboardInteractive, "keyboard-interactive"),
];

impl From<&MethodKind> for &'static str {
    fn from(kind: &MethodKind) -> Self {
        let found = METHOD_NAMES.iter().find(|(other, _)| other == kind);
        found.map_or("", |(_, name)| name)
    }
}

impl From<&MethodKind> for String {
    fn from(kind: &MethodKind) -> Self {
        <&str>::from(kind).to_owned()
    }
}

impl FromStr for MethodKind {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let found = METHOD_NAMES.iter().find(|(_, other)| *other == name);
        found.map(|(kind, _)| *kind).ok_or(())
    }
}

/// An ordered set of methods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodSet(Vec<MethodKind>);

impl MethodSet {
    /// Returns an empty set.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Vec::new())
    }

    /// Returns all methods, the assumption of a client that has no list from the server yet.
    #[must_use]
    pub fn all() -> Self {
        Self(METHOD_NAMES.iter().map(|(kind, _)| *kind).collect())
    }

    /// Returns the methods that the server supports: none, password, public key, keyboard-interactive.
    #[must_use]
    pub fn server_supported() -> Self {
        let mut all = Self::all();
        all.remove(MethodKind::HostBased);
        all
    }

    /// Returns the methods that the client supports.
    #[must_use]
    pub fn client_supported() -> Self {
        Self::server_supported()
    }

    /// Removes a method.
    pub fn remove(&mut self, method: MethodKind) {
        self.0.retain(|other| *other != method);
    }

    /// Moves or adds a method to the end.
    pub fn push(&mut self, method: MethodKind) {
        self.remove(method);
        self.0.push(method);
    }

    /// Returns the methods that the protocol implementation offers.
    pub(crate) fn to_methods(&self) -> Vec<AuthMethod> {
        let known = |kind: &MethodKind| AuthMethod::by_name(kind.into());
        self.0.iter().filter_map(known).collect()
    }

    /// Converts a server's list, without unknown names.
    pub(crate) fn from_names(names: &[String]) -> Self {
        let mut set = Self::empty();
        for kind in names.iter().filter_map(|name| name.parse().ok()) {
            set.push(kind);
        }
        set
    }
}

impl Deref for MethodSet {
    type Target = [MethodKind];

    fn deref(&self) -> &[MethodKind] {
        &self.0
    }
}

impl From<&[MethodKind]> for MethodSet {
    fn from(kinds: &[MethodKind]) -> Self {
        let mut set = Self::empty();
        for kind in kinds {
            set.push(*kind);
        }
        set
    }
}

/// The result of an authentication attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum AuthResult {
    /// The user is authenticated.
    Success,
    /// The attempt failed.
    Failure {
        /// The methods that the server would accept next.
        remaining_methods: MethodSet,
        /// True if the attempt succeeded as one of several required methods.
        partial_success: bool,
    },
}

impl AuthResult {
    /// Returns true if the user is authenticated.
    #[must_use]
    pub const fn success(&self) -> bool {
        matches!(self, Self::Success)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_keep_their_order() {
        let mut set = MethodSet::from(&[MethodKind::Password, MethodKind::PublicKey][..]);
        set.push(MethodKind::Password);
        assert_eq!(&*set, [MethodKind::PublicKey, MethodKind::Password]);
        assert_eq!(
            set.to_methods(),
            [AuthMethod::PublicKey, AuthMethod::Password]
        );
        let told = ["gssapi-with-mic".to_owned(), "password".to_owned()];
        assert_eq!(&*MethodSet::from_names(&told), [MethodKind::Password]);
        assert!(!MethodSet::server_supported().contains(&MethodKind::HostBased));
    }
}
