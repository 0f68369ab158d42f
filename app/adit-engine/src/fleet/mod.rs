//! The users of a fleet: listeners with `users=fleet` get them here, when they are opened and when they change.
//!
//! ```text
//! node of the fleet ── FleetDirectory ──▶ FleetUsers ──┬─▶ FleetTable: keyed listeners, ShadowsocksR
//!                      change, replace_all             └─▶ FleetLogins: proxies and SSH, all of them
//! ```
//!
//! Only what changes is computed again. Without a directory, or while it is empty, such a listener accepts no one.

mod keyed_table;
mod logins;
mod named_users;
mod shown_name;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use adit_config::{FleetIdentity, Secret};

use crate::user_registry::FleetLimitSource;
use crate::{StartError, UserRegistry};

pub(crate) use keyed_table::KeyedFleetTable;
pub(crate) use logins::FleetLogins;
pub use named_users::NamedUsers;

/// A user of a fleet, with the secrets of all protocols.
pub trait FleetUser {
    /// Returns the number of the user in the fleet: that of ShadowsocksR.
    fn id(&self) -> u32;
    /// Returns the name.
    fn name(&self) -> &str;
    /// Returns the password, for all protocols with passwords.
    fn password(&self) -> Secret;
    /// Returns the key of this many bytes in base64, for the 2022 edition of Shadowsocks; `None` if the user has a key of
    /// another length.
    fn key(&self, len: usize) -> Option<Secret>;
}

/// The users of a fleet.
pub trait FleetDirectory: FleetLimitSource {
    /// Returns the key in front of those of users, in base64 with this many bytes.
    fn identity_key(&self, identity: FleetIdentity, len: usize) -> Secret;
    /// Calls `each` for all users who may connect.
    fn for_each(&self, each: &mut dyn FnMut(&dyn FleetUser));
}

/// The users of one listener, or of one kind of listeners.
pub(crate) trait FleetTable: Send + Sync {
    /// Replaces all users.
    fn load(&self, directory: &dyn FleetDirectory);
    /// Removes the users in `removed`, and adds or changes those in `put`.
    fn change(&self, removed: &[(u32, &str)], put: &[&dyn FleetUser]);
    /// Returns true if there are more users than the table can have: after a change, others may be the first.
    fn is_full(&self) -> bool {
        false
    }
}

/// The users of the fleet that an engine serves, if its process is a node of one.
pub struct FleetUsers {
    registry: Arc<UserRegistry>,
    directory: OnceLock<Arc<dyn FleetDirectory>>,
    /// Held during a change: a listener that is opened meanwhile misses none.
    tables: Mutex<Vec<Weak<dyn FleetTable>>>,
    logins: OnceLock<Arc<FleetLogins>>,
}

impl fmt::Debug for FleetUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetUsers")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Default for FleetUsers {
    /// Returns the users of a process that is no node of a fleet.
    fn default() -> Self {
        Self {
            registry: Arc::default(),
            directory: OnceLock::new(),
            tables: Mutex::default(),
            logins: OnceLock::new(),
        }
    }
}

impl FleetUsers {
    /// Returns the users of `directory`.
    #[must_use]
    pub fn new(directory: Arc<dyn FleetDirectory>) -> Arc<Self> {
        let users = Self::default();
        users.registry.use_fleet(directory.clone());
        // It is empty.
        let _ = users.directory.set(directory);
        Arc::new(users)
    }

    /// Returns the users of the process, with the limits of those of the fleet.
    #[must_use]
    pub const fn registry(&self) -> &Arc<UserRegistry> {
        &self.registry
    }

    /// Applies a change of the directory, which has it already: `removed` with numbers and names, and users that are new
    /// or have other secrets. Sessions of removed users end, and those of users with other secrets.
    pub fn change(&self, removed: &[(u32, &str)], put: &[&dyn FleetUser]) {
        for table in &self.lock_tables() {
            if !table.is_full() {
                table.change(removed, put);
            }
            if let Some(directory) = self.directory.get().filter(|_| table.is_full()) {
                table.load(&**directory);
            }
        }
        // The name of a removed user may be that of a new one.
        let put: HashSet<&str> = put.iter().map(|user| user.name()).collect();
        for (_, name) in removed.iter().filter(|(_, name)| !put.contains(name)) {
            self.registry.remove_fleet_user(name);
        }
    }

    /// Applies a directory whose users are others. Sessions of users who are the same continue.
    pub fn replace_all(&self) {
        let Some(directory) = self.directory.get() else {
            return;
        };
        for table in &self.lock_tables() {
            table.load(&**directory);
        }
    }

    /// Returns the key of a listener in front of those of its users.
    pub(crate) fn identity_key(
        &self,
        identity: FleetIdentity,
        len: usize,
    ) -> Result<Secret, StartError> {
        let directory = self.directory.get().ok_or(StartError::NoFleet)?;
        Ok(directory.identity_key(identity, len))
    }

    /// Fills a table of a listener, and keeps it up to date while it is in use.
    pub(crate) fn serve(&self, table: &Arc<dyn FleetTable>) -> Result<(), StartError> {
        let directory = self.directory.get().ok_or(StartError::NoFleet)?;
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        table.load(&**directory);
        tables.retain(|known| known.strong_count() > 0);
        tables.push(Arc::downgrade(table));
        Ok(())
    }

    /// Returns the users for listeners with passwords.
    pub(crate) fn logins(&self) -> Result<Arc<FleetLogins>, StartError> {
        if let Some(logins) = self.logins.get() {
            return Ok(logins.clone());
        }
        let logins = Arc::new(FleetLogins::new(self.registry.clone()));
        let table: Arc<dyn FleetTable> = logins.clone();
        self.serve(&table)?;
        Ok(self.logins.get_or_init(|| logins).clone())
    }

    /// Returns the tables in use. The guard keeps others from changing them.
    fn lock_tables(&self) -> TablesInUse<'_> {
        let guard = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = guard.iter().filter_map(Weak::upgrade).collect();
        TablesInUse {
            tables,
            _guard: guard,
        }
    }
}

struct TablesInUse<'a> {
    tables: Vec<Arc<dyn FleetTable>>,
    _guard: MutexGuard<'a, Vec<Weak<dyn FleetTable>>>,
}

impl<'a> IntoIterator for &'a TablesInUse<'_> {
    type Item = &'a Arc<dyn FleetTable>;
    type IntoIter = std::slice::Iter<'a, Arc<dyn FleetTable>>;

    fn into_iter(self) -> Self::IntoIter {
        self.tables.iter()
    }
}
