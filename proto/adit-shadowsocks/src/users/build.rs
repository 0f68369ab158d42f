//! How [`Users`] come into being: names and keys are checked once, here.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use adit_crypto::KdfContext;
use hashbrown::HashTable;

use super::{Entry, Mode, User, UserId, UserRef, Users};
use crate::identity::Directory;
use crate::material::Material;
use crate::{Edition, Key, KeyError, Method};

/// The most users behind an identity key.
pub const MAX_USERS: usize = 1_000_000;

/// The most users that are found by trial. Whoever knows no key costs a server this many key
/// derivations for each connection and packet.
pub const MAX_TRIAL_USERS: usize = 1024;

static USER_ID: LazyLock<KdfContext> = LazyLock::new(|| KdfContext::new("adit user-id"));

/// Why a list is no list of users. Names the users, never a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UsersError {
    /// The method has no way to tell users apart.
    #[error(
        "{0} has one key: several users need `2022-blake3-aes-128-gcm`, \
         `2022-blake3-aes-256-gcm` or a method of the AEAD edition"
    )]
    Method(Method),
    /// More users than [`MAX_USERS`] or [`MAX_TRIAL_USERS`].
    #[error("more than {limit} users")]
    TooMany {
        /// The most there may be.
        limit: usize,
    },
    /// A user without a name.
    #[error("user number {place} has no name")]
    NoName {
        /// Counted from 1.
        place: usize,
    },
    /// Two users of one name.
    #[error("there are two users called `{0}`")]
    SameName(Box<str>),
    /// Two users whose keys, or the hashes in their identity headers, are equal.
    #[error("users `{first}` and `{second}` have the same key")]
    SameKey {
        /// The one that came first.
        first: Box<str>,
        /// The one that came later.
        second: Box<str>,
    },
    /// A user with the identity key, which every user knows.
    #[error("the key of user `{0}` is the identity key of the server")]
    IdentityKey(Box<str>),
    /// A text that is no key.
    #[error("user `{name}`: {why}")]
    Key {
        /// The user.
        name: Box<str>,
        /// What is wrong with it.
        why: KeyError,
    },
}

impl Users {
    /// The one holder of `key`, of any method; it has no name.
    #[must_use]
    pub fn single(key: Key) -> Arc<Self> {
        let mut entries = Entries::new(key.method(), 1);
        entries.push(Box::default(), key.material().duplicate());
        Arc::new(entries.finish(Mode::Single(key)))
    }

    /// Users behind an identity key (SIP023), given as name and text of the key, for the methods
    /// with [`Method::has_identities`]. A user is found in constant time, whatever their number.
    pub fn identified<N: Into<Box<str>>, S: AsRef<str>>(
        identity: &Key,
        users: impl IntoIterator<Item = (N, S)>,
    ) -> Result<Arc<Self>, UsersError> {
        let method = identity.method();
        if !method.has_identities() {
            return Err(UsersError::Method(method));
        }
        let (entries, named) = Entries::read(method, MAX_USERS, Some(identity), users)?;
        let identity = identity.clone();
        Ok(Arc::new(
            entries.finish(Mode::Identified { identity, named }),
        ))
    }

    /// Users of a method of the AEAD edition, given as name and password. Nothing on the wire says
    /// who a client is: keys are tried one after the other, so keep the list short.
    pub fn trial<N: Into<Box<str>>, S: AsRef<str>>(
        method: Method,
        users: impl IntoIterator<Item = (N, S)>,
    ) -> Result<Arc<Self>, UsersError> {
        if method.edition() != Edition::Aead {
            return Err(UsersError::Method(method));
        }
        let (entries, _) = Entries::read(method, MAX_TRIAL_USERS, None, users)?;
        Ok(Arc::new(entries.finish(Mode::Trial)))
    }
}

impl Users {
    /// These users without the names in `remove` and with those in `put`, given as name and text of
    /// the key: who is there already gets another key. All others stay who they are.
    pub fn changed(&self, remove: &[&str], put: &[(&str, &str)]) -> Result<Arc<Self>, UsersError> {
        let (identity, limit) = match &self.mode {
            Mode::Single(_) => return Err(UsersError::Method(self.method)),
            Mode::Identified { identity, .. } => (Some(identity), MAX_USERS),
            Mode::Trial => (None, MAX_TRIAL_USERS),
        };
        let mut list = Listing::new(self.method, limit, identity, self.len() + put.len());
        for entry in self.entries.iter() {
            let name = entry.user.name();
            if !remove.contains(&name) && !put.iter().any(|(put, _)| *put == name) {
                list.add(name.into(), entry.material.duplicate())?;
            }
        }
        for (name, secret) in put {
            let name: Box<str> = (*name).into();
            let material = Material::parse(self.method, secret);
            let material = material.map_err(|why| UsersError::Key {
                name: name.clone(),
                why,
            })?;
            list.add(name, material)?;
        }
        let mode = match &self.mode {
            Mode::Identified { identity, .. } => Mode::Identified {
                identity: identity.clone(),
                named: list.named,
            },
            _ => Mode::Trial,
        };
        Ok(Arc::new(list.entries.finish(mode)))
    }
}

/// Users one by one, each checked against those before it.
struct Listing<'a> {
    entries: Entries,
    named: Directory,
    names: BTreeSet<Box<str>>,
    limit: usize,
    identity: Option<&'a Key>,
}

impl<'a> Listing<'a> {
    fn new(method: Method, limit: usize, identity: Option<&'a Key>, expected: usize) -> Self {
        let expected = expected.min(limit);
        Self {
            entries: Entries::new(method, expected),
            named: Directory::with_capacity(expected),
            names: BTreeSet::new(),
            limit,
            identity,
        }
    }

    fn add(&mut self, name: Box<str>, material: Material) -> Result<(), UsersError> {
        let place = self.entries.list.len();
        let at = u32::try_from(place).ok().filter(|_| place < self.limit);
        let at = at.ok_or(UsersError::TooMany { limit: self.limit })?;
        if name.is_empty() {
            return Err(UsersError::NoName { place: place + 1 });
        }
        if !self.names.insert(name.clone()) {
            return Err(UsersError::SameName(name));
        }
        if self.identity.is_some_and(|i| *i.material() == material) {
            return Err(UsersError::IdentityKey(name));
        }
        let entries = &mut self.entries;
        entries.push(name, material);
        let hash = |place| entries.get(place).map_or_else(Default::default, |e| e.hash);
        if let Err(taken) = self.named.insert(at, hash) {
            let name = |place| entries.get(place).map(|entry| entry.user.0.name.clone());
            return Err(UsersError::SameKey {
                first: name(taken).unwrap_or_default(),
                second: name(at).unwrap_or_default(),
            });
        }
        Ok(())
    }
}

/// The list while it is made.
struct Entries {
    method: Method,
    list: Vec<Entry>,
}

impl Entries {
    fn new(method: Method, expected: usize) -> Self {
        Self {
            method,
            list: Vec::with_capacity(expected),
        }
    }

    fn read<N: Into<Box<str>>, S: AsRef<str>>(
        method: Method,
        limit: usize,
        identity: Option<&Key>,
        users: impl IntoIterator<Item = (N, S)>,
    ) -> Result<(Self, Directory), UsersError> {
        let users = users.into_iter();
        let mut list = Listing::new(method, limit, identity, users.size_hint().0);
        for (name, secret) in users {
            let name: Box<str> = name.into();
            let material = Material::parse(method, secret.as_ref());
            let material = material.map_err(|why| UsersError::Key {
                name: name.clone(),
                why,
            })?;
            list.add(name, material)?;
        }
        Ok((list.entries, list.named))
    }

    fn get(&self, place: u32) -> Option<&Entry> {
        self.list.get(usize::try_from(place).ok()?)
    }

    fn push(&mut self, name: Box<str>, material: Material) {
        // The length of a key is the method's, so that nothing is ambiguous.
        let method = self.method.name().as_bytes();
        let mut id = [0; 8];
        USER_ID.derive_key(&[method, &[0], material.bytes(), name.as_bytes()], &mut id);
        let id = UserId(u64::from_be_bytes(id));
        self.list.push(Entry {
            hash: material.hash(),
            material,
            user: UserRef(Arc::new(User { id, name })),
        });
    }

    fn finish(self, mode: Mode) -> Users {
        let id = |place: &u32| {
            let entry = self.get(*place);
            debug_assert!(entry.is_some(), "the table holds places of the list");
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
