//! Methods of authentication, and what came of one.

use std::ops::Deref;
use std::str::FromStr;

use adit_ssh_proto::auth::Method;

/// A method of authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// None at all.
    None,
    /// A password.
    Password,
    /// A key, or a certificate.
    PublicKey,
    /// The key of the client's host: known by name, never done.
    HostBased,
    /// Questions and answers.
    KeyboardInteractive,
}

const NAMES: [(MethodKind, &str); 5] = [
    (MethodKind::None, "none"),
    (MethodKind::Password, "password"),
    (MethodKind::PublicKey, "publickey"),
    (MethodKind::HostBased, "hostbased"),
    (MethodKind::KeyboardInteractive, "keyboard-interactive"),
];

impl From<&MethodKind> for &'static str {
    fn from(kind: &MethodKind) -> Self {
        let found = NAMES.iter().find(|(other, _)| other == kind);
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
        let found = NAMES.iter().find(|(_, other)| *other == name);
        found.map(|(kind, _)| *kind).ok_or(())
    }
}

/// Methods in their order, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodSet(Vec<MethodKind>);

impl MethodSet {
    /// No method.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Vec::new())
    }

    /// All methods with a name: what a client does not know yet.
    #[must_use]
    pub fn all() -> Self {
        Self(NAMES.iter().map(|(kind, _)| *kind).collect())
    }

    /// What a server does: none, password, keys, questions.
    #[must_use]
    pub fn server_supported() -> Self {
        let mut all = Self::all();
        all.remove(MethodKind::HostBased);
        all
    }

    /// What a client does.
    #[must_use]
    pub fn client_supported() -> Self {
        Self::server_supported()
    }

    /// Takes a method out.
    pub fn remove(&mut self, method: MethodKind) {
        self.0.retain(|other| *other != method);
    }

    /// Puts a method at the end.
    pub fn push(&mut self, method: MethodKind) {
        self.remove(method);
        self.0.push(method);
    }

    /// Those that the protocol's machine offers.
    pub(crate) fn below(&self) -> Vec<Method> {
        let known = |kind: &MethodKind| Method::by_name(kind.into());
        self.0.iter().filter_map(known).collect()
    }

    /// Those of a server's list that have a name here.
    pub(crate) fn of(names: &[String]) -> Self {
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

/// What came of one try.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum AuthResult {
    /// The user is in.
    Success,
    /// He is not.
    Failure {
        /// The methods that the server would go on with.
        remaining_methods: MethodSet,
        /// The try was right, as one part of several.
        partial_success: bool,
    },
}

impl AuthResult {
    /// Whether the user is in.
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
        assert_eq!(set.below(), [Method::PublicKey, Method::Password]);
        let told = ["gssapi-with-mic".to_owned(), "password".to_owned()];
        assert_eq!(&*MethodSet::of(&told), [MethodKind::Password]);
        assert!(!MethodSet::server_supported().contains(&MethodKind::HostBased));
    }
}
