//! The users of a server: a single key, many users behind an identity key, or users found by trial
//! decryption.
//!
//! [`Users`] is an immutable snapshot; to change its users, a server takes another snapshot. Users
//! in two snapshots are the same if name, key and method are equal, so that sessions can outlive a
//! change. An entry stores the bytes of a key and no cipher; ciphers are expanded per session.

mod builder;

use core::fmt;
use std::sync::Arc;

use adit_wire::{ProtocolError, subslice};
use hashbrown::HashTable;

use adit_crypto::Secret;

use crate::identity::{IdentityHash, IdentityHashIndex};
use crate::key_material::KeyMaterial;
use crate::{Key, Method};

pub use builder::{MAX_TRIAL_USERS, MAX_USERS, UsersError};

/// The users of one server. Created once, shared, never changed.
///
/// # Examples
///
/// ```
/// use adit_shadowsocks::{Method, Users};
///
/// let users = Users::with_trial_keys(Method::Aes256Gcm, [("alice", "one password"), ("bob", "another one")])?;
/// assert_eq!(users.len(), 2);
/// assert!(users.find_by_name("alice").is_some());
/// # Ok::<(), adit_shadowsocks::UsersError>(())
/// ```
pub struct Users {
    method: Method,
    mode: LookupMode,
    entries: Box<[UserEntry]>,
    /// Indices into `entries`, by user id.
    by_id: HashTable<u32>,
}

/// The way a server identifies its clients.
enum LookupMode {
    /// There is a single key, whose user has no name.
    Single(Key),
    /// An identity header names the user.
    Identified {
        identity: Key,
        by_hash: IdentityHashIndex,
    },
    /// The server tries every key.
    Trial,
}

/// Sized to one CPU cache line, because a handshake touches one user of many.
#[repr(align(64))]
struct UserEntry {
    /// The bytes of the key; the method is that of all users.
    key: Secret<[u8; 32]>,
    /// The hash that names the user in an identity header.
    hash: IdentityHash,
    user: UserRef,
}

/// A user's identifier, stable for as long as name, key and method are unchanged. It is derived
/// from the key, so it is never printed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(u64);

/// A user of a server. Cheap to clone; outlives the snapshot it came from.
///
/// The identifier and the name are in one allocation: there is one for each user of a listener.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UserRef(Arc<[u8]>);

impl UserRef {
    fn new(id: UserId, name: &str) -> Self {
        let id = id.0.to_be_bytes();
        Self(id.into_iter().chain(name.bytes()).collect())
    }

    /// Returns the name, for logs, counters and rules.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = core::str::from_utf8(self.name_bytes());
        debug_assert!(name.is_ok(), "it was text");
        name.unwrap_or_default()
    }

    fn name_bytes(&self) -> &[u8] {
        subslice(&self.0, size_of::<UserId>()..)
    }

    /// Returns the identifier; see [`Users::still_has`].
    #[must_use]
    pub fn id(&self) -> UserId {
        let id = self.0.first_chunk().copied();
        debug_assert!(id.is_some(), "it begins with the identifier");
        UserId(id.map_or(0, u64::from_be_bytes))
    }
}

impl Users {
    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Returns the number of users.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there are no users, so that every client is refused.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the named users, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = UserRef> {
        (0..self.entries.len()).filter_map(|place| self.user_at(place))
    }

    /// Returns the user with this identifier, if it exists and has a name.
    #[must_use]
    pub fn find_user(&self, id: UserId) -> Option<UserRef> {
        self.user_at(self.index_of(id)?)
    }

    /// True if this snapshot has a user with the same name, key and method. End the sessions of
    /// users for whom this is false.
    #[must_use]
    pub fn still_has(&self, id: UserId) -> bool {
        self.index_of(id).is_some()
    }

    /// Returns the identity key that headers are addressed to, if identity headers are in use.
    pub(crate) const fn identity_key(&self) -> Option<&Key> {
        match &self.mode {
            LookupMode::Identified { identity, .. } => Some(identity),
            _ => None,
        }
    }

    /// Returns the key that opens the outer layer of every packet of the 2022 edition.
    pub(crate) const fn outer_key(&self) -> Option<&Key> {
        match &self.mode {
            LookupMode::Single(key) | LookupMode::Identified { identity: key, .. } => Some(key),
            LookupMode::Trial => None,
        }
    }

    /// Returns the index of the user that an identity header names.
    pub(crate) fn find_by_hash(&self, hash: IdentityHash) -> Option<usize> {
        match &self.mode {
            LookupMode::Identified { by_hash: named, .. } => {
                let is = |place| self.entry_at(place).is_some_and(|entry| entry.hash == hash);
                let place = named.find(hash, is)?;
                usize::try_from(place).ok()
            }
            _ => None,
        }
    }

    /// Returns every user's index once, the hinted user's first.
    pub(crate) fn trial_order(&self, hint: Option<UserId>) -> impl Iterator<Item = usize> {
        let first = hint.and_then(|id| self.index_of(id));
        let others = (0..self.entries.len()).filter(move |place| Some(*place) != first);
        first.into_iter().chain(others)
    }

    pub(crate) fn index_of(&self, id: UserId) -> Option<usize> {
        let has = |place: &&u32| self.entry_at(**place).is_some_and(|e| e.user.id() == id);
        let place = self.by_id.find(id.0, |place| has(&place))?;
        usize::try_from(*place).ok()
    }

    pub(crate) fn user_at(&self, place: usize) -> Option<UserRef> {
        let entry = self.entries.get(place)?;
        self.has_names().then(|| entry.user.clone())
    }

    /// Returns the user with this name, by linear search.
    #[must_use]
    pub fn find_by_name(&self, name: &str) -> Option<UserRef> {
        let is = |user: &UserRef| user.name_bytes() == name.as_bytes();
        self.iter().find(is)
    }

    /// Returns the text of a user's key. `None` if it cannot be restored from the key, as in all
    /// editions but the 2022 edition.
    #[must_use]
    pub fn secret_text(&self, id: UserId) -> Option<Secret<String>> {
        let material = self.material_at(self.index_of(id)?).ok()?;
        self.has_names().then(|| material.to_base64()).flatten()
    }

    /// True if users are found by trial decryption.
    #[must_use]
    pub const fn uses_trial(&self) -> bool {
        matches!(self.mode, LookupMode::Trial)
    }

    /// Returns the number of keys that the server tries for a request that matches none of them.
    #[must_use]
    pub fn trial_count(&self) -> usize {
        if self.uses_trial() {
            self.entries.len()
        } else {
            0
        }
    }

    /// True if users have names, so that they can be told apart.
    #[must_use]
    pub const fn has_names(&self) -> bool {
        !matches!(self.mode, LookupMode::Single(_))
    }

    pub(crate) fn id_at(&self, place: usize) -> Option<UserId> {
        self.entries.get(place).map(|entry| entry.user.id())
    }

    pub(crate) fn material_at(&self, place: usize) -> Result<KeyMaterial, ProtocolError> {
        let entry = self.entries.get(place).ok_or(ProtocolError::Unauthentic)?;
        Ok(KeyMaterial::from_bytes(*entry.key.expose(), self.method))
    }

    /// Returns the key at an index with its ciphers expanded, for a session.
    pub(crate) fn key_at(&self, place: usize) -> Option<Key> {
        match &self.mode {
            LookupMode::Single(key) => Some(key.clone()),
            _ => Some(Key::from_material(self.material_at(place).ok()?)),
        }
    }

    fn entry_at(&self, place: u32) -> Option<&UserEntry> {
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
