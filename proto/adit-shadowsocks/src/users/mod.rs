//! Whom a server serves: one key, many users behind an identity key, or many found by trial.
//!
//! A snapshot: it never changes, and a server that is told of new users gets another. A user is
//! the same in two snapshots if name, key and method are, so that sessions can outlive a change.
//! An entry holds the bytes of a key and no cipher; ciphers are expanded for the sessions that come.

mod build;

use core::fmt;
use std::sync::Arc;

use adit_wire::ProtocolError;
use hashbrown::HashTable;

use adit_crypto::Secret;

use crate::identity::{Directory, IdentityHash};
use crate::material::Material;
use crate::{Key, Method};

pub use build::{MAX_TRIAL_USERS, MAX_USERS, UsersError};

/// The users of one server. Made once, shared, never changed.
pub struct Users {
    method: Method,
    mode: Mode,
    entries: Box<[Entry]>,
    /// Places in `entries`.
    by_id: HashTable<u32>,
}

/// How it is found out who a client is.
enum Mode {
    /// There is but one, without a name.
    Single(Key),
    /// By an identity header.
    Identified { identity: Key, named: Directory },
    /// By trying every key.
    Trial,
}

/// One line of the CPU's cache: a handshake touches one user of many.
#[repr(align(64))]
struct Entry {
    material: Material,
    /// What an identity header says to name the user.
    hash: IdentityHash,
    user: UserRef,
}

/// A number for a user: the same as long as name, key and method are. Derived from the key, so it
/// is not printed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(u64);

/// A user of a server. Cheap to clone; outlives the snapshot it came from.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UserRef(Arc<User>);

#[derive(PartialEq, Eq, Hash)]
struct User {
    id: UserId,
    name: Box<str>,
}

impl UserRef {
    /// The name, for logs, counters and rules.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The number; see [`Users::still_has`].
    #[must_use]
    pub fn id(&self) -> UserId {
        self.0.id
    }
}

impl Users {
    /// The method.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Number of users.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none, so that everyone is refused.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The users with names, in the order they were given.
    pub fn iter(&self) -> impl Iterator<Item = UserRef> {
        (0..self.entries.len()).filter_map(|place| self.user_at(place))
    }

    /// The user with this number, if there is such a one and it has a name.
    #[must_use]
    pub fn user(&self, id: UserId) -> Option<UserRef> {
        self.user_at(self.place(id)?)
    }

    /// Whether a user of an earlier snapshot is still there, with the same name and key. A session
    /// of one that is not should be ended.
    #[must_use]
    pub fn still_has(&self, id: UserId) -> bool {
        self.place(id).is_some()
    }

    /// The key that identity headers are addressed to, where there are such.
    pub(crate) const fn identity(&self) -> Option<&Key> {
        match &self.mode {
            Mode::Identified { identity, .. } => Some(identity),
            _ => None,
        }
    }

    /// The key that opens the outside of every packet of the 2022 edition.
    pub(crate) const fn outer(&self) -> Option<&Key> {
        match &self.mode {
            Mode::Single(key) | Mode::Identified { identity: key, .. } => Some(key),
            Mode::Trial => None,
        }
    }

    /// The place of the user that an identity header names.
    pub(crate) fn find(&self, hash: IdentityHash) -> Option<usize> {
        match &self.mode {
            Mode::Identified { named, .. } => {
                let is = |place| self.entry(place).is_some_and(|entry| entry.hash == hash);
                let place = named.find(hash, is)?;
                usize::try_from(place).ok()
            }
            _ => None,
        }
    }

    /// Every place once, the hinted user's first.
    pub(crate) fn candidates(&self, hint: Option<UserId>) -> impl Iterator<Item = usize> {
        let first = hint.and_then(|id| self.place(id));
        let others = (0..self.entries.len()).filter(move |place| Some(*place) != first);
        first.into_iter().chain(others)
    }

    pub(crate) fn place(&self, id: UserId) -> Option<usize> {
        let has = |place: &&u32| self.entry(**place).is_some_and(|e| e.user.id() == id);
        let place = self.by_id.find(id.0, |place| has(&place))?;
        usize::try_from(*place).ok()
    }

    pub(crate) fn user_at(&self, place: usize) -> Option<UserRef> {
        let entry = self.entries.get(place)?;
        self.have_names().then(|| entry.user.clone())
    }

    /// The user with this name: a search through all.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<UserRef> {
        self.iter().find(|user| user.name() == name)
    }

    /// The text of a user's key, where it can be told from the key itself: in the 2022 edition.
    #[must_use]
    pub fn secret_text(&self, id: UserId) -> Option<Secret<String>> {
        let entry = self.entries.get(self.place(id)?)?;
        self.have_names().then(|| entry.material.text()).flatten()
    }

    /// Whether users are found by trying their keys.
    #[must_use]
    pub const fn by_trial(&self) -> bool {
        matches!(self.mode, Mode::Trial)
    }

    /// How many keys are tried for a request of nobody's.
    #[must_use]
    pub fn trials(&self) -> usize {
        if self.by_trial() {
            self.entries.len()
        } else {
            0
        }
    }

    /// Whether users are told apart at all.
    #[must_use]
    pub const fn have_names(&self) -> bool {
        !matches!(self.mode, Mode::Single(_))
    }

    pub(crate) fn id_at(&self, place: usize) -> Option<UserId> {
        self.entries.get(place).map(|entry| entry.user.id())
    }

    pub(crate) fn material(&self, place: usize) -> Result<&Material, ProtocolError> {
        let entry = self.entries.get(place).ok_or(ProtocolError::Unauthentic)?;
        Ok(&entry.material)
    }

    /// The key at a place with its ciphers, for a session.
    pub(crate) fn key(&self, place: usize) -> Option<Key> {
        match &self.mode {
            Mode::Single(key) => Some(key.clone()),
            _ => {
                let entry = self.entries.get(place)?;
                Some(Key::expand(entry.material.duplicate()))
            }
        }
    }

    fn entry(&self, place: u32) -> Option<&Entry> {
        self.entries.get(usize::try_from(place).ok()?)
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users")
            .field("method", &self.method)
            .field("len", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserId(***)")
    }
}

impl fmt::Debug for UserRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserRef({})", self.name())
    }
}

impl fmt::Display for UserRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
