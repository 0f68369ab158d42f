//! Constructors of [`Users`], which check names and keys once.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, LazyLock};

use adit_crypto::{KdfContext, Secret};
use hashbrown::HashTable;

use super::{LookupMode, UserEntry, UserId, UserRef, Users};
use crate::identity::IdentityHashIndex;
use crate::key_material::KeyMaterial;
use crate::{Edition, Key, KeyError, Method};

/// Maximum number of users behind an identity key.
pub const MAX_USERS: usize = 1_000_000;

/// Maximum number of users that are found by trial. A client without a valid key costs the server
/// this many key derivations for each connection and packet.
pub const MAX_TRIAL_USERS: usize = 1024;

static USER_ID: LazyLock<KdfContext> = LazyLock::new(|| KdfContext::new("adit user-id"));

/// The reason a list of users is invalid. Contains names of users, never a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UsersError {
    /// The method cannot tell users apart.
    #[error(
        "{0} has one key: several users need `2022-blake3-aes-128-gcm`, \
         `2022-blake3-aes-256-gcm` or a method of the AEAD edition"
    )]
    Method(Method),
    /// More users than [`MAX_USERS`] or [`MAX_TRIAL_USERS`].
    #[error("more than {limit} users")]
    TooMany {
        /// Maximum number of users.
        limit: usize,
    },
    /// A user without a name.
    #[error("user number {place} has no name")]
    NoName {
        /// Position in the list, counted from 1.
        place: usize,
    },
    /// Two users with the same name.
    #[error("two users have the name `{0}`")]
    SameName(Box<str>),
    /// Two users with equal keys, or with equal hashes in their identity headers.
    #[error("users `{first}` and `{second}` have the same key")]
    SameKey {
        /// The earlier user.
        first: Box<str>,
        /// The later user.
        second: Box<str>,
    },
    /// A user whose key is the identity key, which all users share.
    #[error("the key of user `{0}` is the identity key of the server")]
    IdentityKey(Box<str>),
    /// A text that is not a valid key.
    #[error("user `{name}`: {why}")]
    Key {
        /// The user's name.
        name: Box<str>,
        /// The reason the key is invalid.
        why: KeyError,
    },
}

impl Users {
    /// Returns a single, unnamed user with `key`, which may be of any method.
    #[must_use]
    pub fn with_single_key(key: Key) -> Arc<Self> {
        let mut entries = EntryList::new(key.method(), 1);
        entries.push("", key.material());
        Arc::new(entries.into_users(LookupMode::Single(key)))
    }

    /// Returns users behind an identity key (SIP023), from pairs of name and key text, for methods
    /// with [`Method::has_identities`]. Users are found in constant time, independent of their
    /// number.
    ///
    /// # Errors
    ///
    /// Fails if the method has no identity headers, if there are more than [`MAX_USERS`], or if a
    /// name or key is invalid or duplicate.
    pub fn with_identity_key<N: Into<Box<str>>, S: AsRef<str>>(
        identity: &Key,
        users: impl IntoIterator<Item = (N, S)>,
    ) -> Result<Arc<Self>, UsersError> {
        let method = identity.method();
        if !method.has_identities() {
            return Err(UsersError::Method(method));
        }
        let (entries, named) = EntryList::read_all(method, MAX_USERS, Some(identity), users)?;
        let identity = identity.clone();
        Ok(Arc::new(entries.into_users(LookupMode::Identified {
            identity,
            by_hash: named,
        })))
    }

    /// Returns users of a method of the AEAD edition, from pairs of name and password. Nothing on
    /// the wire identifies a client, so the server tries one key after another: keep the list
    /// short.
    ///
    /// # Errors
    ///
    /// Fails if the method is not of the AEAD edition, if there are more than [`MAX_TRIAL_USERS`],
    /// or if a name or password is invalid or duplicate.
    pub fn with_trial_keys<N: Into<Box<str>>, S: AsRef<str>>(
        method: Method,
        users: impl IntoIterator<Item = (N, S)>,
    ) -> Result<Arc<Self>, UsersError> {
        if method.edition() != Edition::Aead {
            return Err(UsersError::Method(method));
        }
        let (entries, _) = EntryList::read_all(method, MAX_TRIAL_USERS, None, users)?;
        Ok(Arc::new(entries.into_users(LookupMode::Trial)))
    }
}

impl Users {
    /// Returns a copy without the users in `remove` and with those in `put`, pairs of name and key
    /// text. A name in `put` that exists already gets the new key. All other users keep their
    /// identifiers.
    ///
    /// # Errors
    ///
    /// Fails for a single unnamed key, and if the resulting list is invalid.
    pub fn with_changes(
        &self,
        remove: &[&str],
        put: &[(&str, &str)],
    ) -> Result<Arc<Self>, UsersError> {
        let (identity, limit) = match &self.mode {
            LookupMode::Single(_) => return Err(UsersError::Method(self.method)),
            LookupMode::Identified { identity, .. } => (Some(identity), MAX_USERS),
            LookupMode::Trial => (None, MAX_TRIAL_USERS),
        };
        let mut list = UserListBuilder::new(self.method, limit, identity, self.len() + put.len());
        for entry in self.entries.iter() {
            let name = entry.user.name();
            if !remove.contains(&name) && !put.iter().any(|(put, _)| *put == name) {
                let material = KeyMaterial::from_bytes(*entry.key.expose(), self.method);
                list.add_user(name.into(), material)?;
            }
        }
        for (name, secret) in put {
            let name: Box<str> = (*name).into();
            let material = KeyMaterial::parse(self.method, secret);
            let material = material.map_err(|why| UsersError::Key {
                name: name.clone(),
                why,
            })?;
            list.add_user(name, material)?;
        }
        let mode = match &self.mode {
            LookupMode::Identified { identity, .. } => LookupMode::Identified {
                identity: identity.clone(),
                by_hash: list.by_hash,
            },
            _ => LookupMode::Trial,
        };
        Ok(Arc::new(list.entries.into_users(mode)))
    }
}

impl Users {
    /// Returns no users behind an identity key, or found by trial with the passwords of `method`. They are added by
    /// [`Users::with_updates`].
    ///
    /// # Errors
    ///
    /// Fails if the method has no identity headers, or without a key if it is not of the AEAD edition.
    pub fn without_users(method: Method, identity: Option<&Key>) -> Result<Arc<Self>, UsersError> {
        match identity {
            Some(identity) => Self::with_identity_key::<&str, &str>(identity, []),
            None => Self::with_trial_keys::<&str, &str>(method, []),
        }
    }

    /// Returns a copy without the users in `remove` and with those in `put`, pairs of name and key text, as
    /// [`Users::with_changes`] does. A user of `put` that cannot be added is passed to `refused`, and missing. What the
    /// other users have is not computed again.
    ///
    /// # Errors
    ///
    /// Fails for a single unnamed key.
    pub fn with_updates<'a, S: AsRef<str>>(
        &self,
        remove: &[&str],
        put: impl IntoIterator<Item = (&'a str, S)>,
        refused: &mut dyn FnMut(UsersError),
    ) -> Result<Arc<Self>, UsersError> {
        let (identity, limit) = match &self.mode {
            LookupMode::Single(_) => return Err(UsersError::Method(self.method)),
            LookupMode::Identified { identity, .. } => (Some(identity), MAX_USERS),
            LookupMode::Trial => (None, MAX_TRIAL_USERS),
        };
        let put: Vec<(&str, S)> = put.into_iter().collect();
        let gone = remove.iter().copied();
        let gone: HashSet<&str> = gone.chain(put.iter().map(|(name, _)| *name)).collect();
        let mut list = UserListBuilder::new(self.method, limit, identity, self.len() + put.len());
        let stays = |entry: &&UserEntry| gone.is_empty() || !gone.contains(entry.user.name());
        for entry in self.entries.iter().filter(stays) {
            list.keep_user(entry);
        }
        let mut names = HashSet::with_capacity(put.len());
        for (name, secret) in &put {
            let material = KeyMaterial::parse(self.method, secret.as_ref());
            let added = match material {
                Err(why) => Err(UsersError::Key {
                    name: (*name).into(),
                    why,
                }),
                Ok(_) if !names.insert(*name) => Err(UsersError::SameName((*name).into())),
                Ok(material) => list.add_checked_user((*name).into(), material),
            };
            if let Err(why) = added {
                refused(why);
            }
        }
        let mode = match &self.mode {
            LookupMode::Identified { identity, .. } => LookupMode::Identified {
                identity: identity.clone(),
                by_hash: list.by_hash,
            },
            _ => LookupMode::Trial,
        };
        Ok(Arc::new(list.entries.into_users(mode)))
    }
}

/// A list of users under construction; each user is checked against those before.
struct UserListBuilder<'a> {
    entries: EntryList,
    by_hash: IdentityHashIndex,
    names: BTreeSet<Box<str>>,
    limit: usize,
    identity: Option<&'a Key>,
}

impl<'a> UserListBuilder<'a> {
    fn new(method: Method, limit: usize, identity: Option<&'a Key>, expected: usize) -> Self {
        let expected = expected.min(limit);
        Self {
            entries: EntryList::new(method, expected),
            by_hash: IdentityHashIndex::with_capacity(expected),
            names: BTreeSet::new(),
            limit,
            identity,
        }
    }

    fn add_user(&mut self, name: Box<str>, material: KeyMaterial) -> Result<(), UsersError> {
        self.next_place()?;
        if !self.names.insert(name.clone()) {
            return Err(UsersError::SameName(name));
        }
        self.add_checked_user(name, material)
    }

    /// Returns the place of the next user.
    fn next_place(&self) -> Result<u32, UsersError> {
        let place = self.entries.list.len();
        let at = u32::try_from(place).ok().filter(|_| place < self.limit);
        at.ok_or(UsersError::TooMany { limit: self.limit })
    }

    /// Adds a user of another snapshot.
    fn keep_user(&mut self, known: &UserEntry) {
        let Ok(at) = self.next_place() else { return };
        let entries = &mut self.entries;
        entries.list.push(UserEntry {
            key: Secret::new(*known.key.expose()),
            hash: known.hash,
            user: known.user.clone(),
        });
        let hash = |place| entries.get(place).map_or_else(Default::default, |e| e.hash);
        let inserted = self.by_hash.insert(at, hash);
        debug_assert!(
            inserted.is_ok(),
            "the users of a snapshot have different keys"
        );
    }

    /// Adds a user whose name no other has.
    fn add_checked_user(
        &mut self,
        name: Box<str>,
        material: KeyMaterial,
    ) -> Result<(), UsersError> {
        let at = self.next_place()?;
        if name.is_empty() {
            let place = self.entries.list.len();
            return Err(UsersError::NoName { place: place + 1 });
        }
        if self.identity.is_some_and(|i| *i.material() == material) {
            return Err(UsersError::IdentityKey(name));
        }
        let entries = &mut self.entries;
        entries.push(&name, &material);
        let hash = |place| entries.get(place).map_or_else(Default::default, |e| e.hash);
        if let Err(taken) = self.by_hash.insert(at, hash) {
            let name = |place| entries.get(place).map(|entry| entry.user.name().into());
            let why = UsersError::SameKey {
                first: name(taken).unwrap_or_default(),
                second: name(at).unwrap_or_default(),
            };
            entries.list.pop();
            return Err(why);
        }
        Ok(())
    }
}

/// The entries under construction.
struct EntryList {
    method: Method,
    list: Vec<UserEntry>,
}

impl EntryList {
    fn new(method: Method, expected: usize) -> Self {
        Self {
            method,
            list: Vec::with_capacity(expected),
        }
    }

    fn read_all<N: Into<Box<str>>, S: AsRef<str>>(
        method: Method,
        limit: usize,
        identity: Option<&Key>,
        users: impl IntoIterator<Item = (N, S)>,
    ) -> Result<(Self, IdentityHashIndex), UsersError> {
        let users = users.into_iter();
        let mut list = UserListBuilder::new(method, limit, identity, users.size_hint().0);
        for (name, secret) in users {
            let name: Box<str> = name.into();
            let material = KeyMaterial::parse(method, secret.as_ref());
            let material = material.map_err(|why| UsersError::Key {
                name: name.clone(),
                why,
            })?;
            list.add_user(name, material)?;
        }
        Ok((list.entries, list.by_hash))
    }

    fn get(&self, place: u32) -> Option<&UserEntry> {
        self.list.get(usize::try_from(place).ok()?)
    }

    fn push(&mut self, name: &str, material: &KeyMaterial) {
        // A method's keys have one length, so the concatenation is unambiguous.
        let method = self.method.name().as_bytes();
        let mut id = [0; 8];
        USER_ID.derive_key(&[method, &[0], material.bytes(), name.as_bytes()], &mut id);
        let id = UserId(u64::from_be_bytes(id));
        self.list.push(UserEntry {
            hash: material.identity_hash(),
            key: material.copy_bytes(),
            user: UserRef::new(id, name),
        });
    }

    fn into_users(self, mode: LookupMode) -> Users {
        let id = |place: &u32| {
            let entry = self.get(*place);
            debug_assert!(entry.is_some(), "the table contains indices of the list");
            entry.map_or(0, |entry| entry.user.id().0)
        };
        let mut by_id = HashTable::with_capacity(self.list.len());
        for (place, entry) in (0u32..).zip(&self.list) {
            by_id.insert_unique(entry.user.id().0, place, id);
        }
        Users {
            method: self.method,
            mode,
            entries: self.list.into_boxed_slice(),
            by_id,
        }
    }
}
