//! The users of a keyed listener and their usage. Users can be added and removed at run time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use adit_shadowsocks::{UserId, UserRef, Users, UsersError};
use adit_wire::narrow_int;
use tokio::sync::Notify;

use crate::UserRegistry;
use crate::fleet::KeyedFleetTable;
use crate::usage::{Usage, UserCounters};
use crate::user_account::UserAccount;

/// Number of client addresses whose last user is remembered. A power of two.
const HINT_SLOTS: usize = 4096;

/// The users of one listener. Codecs take a snapshot of them; everything else reads this table.
pub struct UserTable {
    users: RwLock<Arc<Users>>,
    /// Number of times that `users` was replaced.
    changes: AtomicU64,
    /// Accounts of the users that have connected. Users who never connect take no memory here.
    accounts: Mutex<HashMap<UserId, KnownUser>>,
    /// Usage of users that were removed.
    removed_usage: Mutex<Usage>,
    /// The account of all clients of a listener with a single key.
    shared_account: Arc<UserAccount>,
    hints: Mutex<Vec<Option<(IpAddr, UserId)>>>,
    file: RwLock<Option<PathBuf>>,
    reread_requests: Notify,
    /// Locked while the file is read or changed, and the users are replaced.
    file_changes: Mutex<()>,
    /// The users of the process.
    registry: Arc<UserRegistry>,
    /// Fills this table, if its users are those of a fleet.
    fleet: OnceLock<Arc<KeyedFleetTable>>,
}

impl std::fmt::Debug for UserTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserTable")
            .field("users", &self.users())
            .finish_non_exhaustive()
    }
}

/// A user that has connected, and their account.
type KnownUser = (UserRef, Arc<UserAccount>);

/// The error of a change to the users of a listener.
#[derive(Debug, thiserror::Error)]
pub enum UserTableError {
    /// The listener has a single key.
    #[error("this listener has a single key and no users to change")]
    NoUsers,
    /// The users are those of a fleet.
    #[error("the users are those of the fleet: `adit fleet user` changes them")]
    FleetUsers,
    /// The keys are not compatible with each other.
    #[error(transparent)]
    Users(#[from] UsersError),
}

impl UserTable {
    /// Creates a table of the configured users, who have no limits; `file` is the file they were read from.
    #[must_use]
    pub fn new(users: Arc<Users>, file: Option<PathBuf>) -> Self {
        Self::with_registry(users, file, Arc::default())
    }

    /// Creates a table of the configured users, who have the limits that `registry` has for their names.
    #[must_use]
    pub fn with_registry(
        users: Arc<Users>,
        file: Option<PathBuf>,
        registry: Arc<UserRegistry>,
    ) -> Self {
        Self {
            users: RwLock::new(users),
            changes: AtomicU64::new(0),
            accounts: Mutex::default(),
            removed_usage: Mutex::default(),
            shared_account: Arc::default(),
            hints: Mutex::default(),
            file: RwLock::new(file),
            reread_requests: Notify::new(),
            file_changes: Mutex::default(),
            registry,
            fleet: OnceLock::new(),
        }
    }

    /// Keeps what fills this table with the users of a fleet.
    pub(crate) fn keep_fleet(&self, fleet: Arc<KeyedFleetTable>) {
        // A table belongs to one listener.
        let _ = self.fleet.set(fleet);
    }

    /// Returns true if the users are those of a fleet, which no one else can change.
    #[must_use]
    pub fn has_fleet_users(&self) -> bool {
        self.fleet.get().is_some()
    }

    /// Returns a snapshot of the current users.
    #[must_use]
    pub fn users(&self) -> Arc<Users> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.clone()
    }

    /// Returns how often the users were replaced: a cheap check before [`users`](Self::users).
    pub(crate) fn change_count(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns the file that the users were read from.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        file.clone()
    }

    /// Replaces the users, and the file that they were read from.
    pub(crate) fn reconfigure(&self, users: Arc<Users>, file: Option<PathBuf>) {
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = file;
        self.replace_users(users);
    }

    /// Ends the sessions of `before`, which this table replaces, and adds their usage to the total.
    pub(crate) fn take_over(&self, before: &Self) {
        before.end_sessions();
        let used = before.total_usage(false);
        let mut gone = lock_ignoring_poison(&self.removed_usage);
        *gone = gone.combined_with(used);
    }

    /// Requests that the users file is read again, changed or not.
    pub fn request_reread(&self) {
        self.reread_requests.notify_one();
    }

    pub(crate) async fn reread_requested(&self) {
        self.reread_requests.notified().await;
    }

    /// Runs `change`, which reads or changes the file and then replaces the users, while no other change runs: a reader never
    /// brings back users whom a change has removed meanwhile. This function blocks.
    pub fn with_file<T>(&self, change: impl FnOnce() -> T) -> T {
        let _alone = lock_ignoring_poison(&self.file_changes);
        change()
    }

    /// Replaces the users. Sessions of users that were removed, or whose key changed, end; all others
    /// are unaffected.
    pub fn replace_users(&self, users: Arc<Users>) {
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = users.clone();
        self.changes.fetch_add(1, Ordering::Release);
        let mut gone = lock_ignoring_poison(&self.removed_usage);
        lock_ignoring_poison(&self.accounts).retain(|id, (_, account)| {
            let stays = users.still_has(*id);
            if !stays {
                account.end_sessions();
                *gone = gone.combined_with(account.read_usage(false));
            }
            stays
        });
    }

    /// Adds the users in `put` (name and key), replaces the keys of those that exist, and removes the users
    /// in `remove`.
    ///
    /// # Errors
    ///
    /// Returns [`UserTableError::NoUsers`] if the listener has a single key, and [`UserTableError::Users`] if the
    /// keys are not compatible.
    pub fn change_users(
        &self,
        remove: &[&str],
        put: &[(&str, &str)],
    ) -> Result<(), UserTableError> {
        let users = self.users();
        if !users.has_names() {
            return Err(UserTableError::NoUsers);
        }
        if self.has_fleet_users() {
            return Err(UserTableError::FleetUsers);
        }
        self.replace_users(users.with_changes(remove, put)?);
        Ok(())
    }

    /// Returns the account that counts a session of `user`.
    pub(crate) fn account_of(&self, user: Option<&UserRef>) -> Arc<UserAccount> {
        let Some(user) = user else {
            return self.shared_account.clone();
        };
        let mut accounts = lock_ignoring_poison(&self.accounts);
        let (_, account) = accounts.entry(user.id()).or_insert_with(|| {
            let shown = user.name().escape_debug().to_string();
            let account = self.registry.new_account(user.name(), &shown);
            (user.clone(), account)
        });
        let account = account.clone();
        drop(accounts);
        // The user may have been removed since the request was read.
        if !self.users().still_has(user.id()) {
            account.end_sessions();
        }
        account
    }

    /// Ends all sessions of the listener.
    pub(crate) fn end_sessions(&self) {
        self.shared_account.end_sessions();
        for (_, account) in lock_ignoring_poison(&self.accounts).values() {
            account.end_sessions();
        }
    }

    /// Returns the usage of all users together. If `clear` is set, the counters start again from zero.
    #[must_use]
    pub fn total_usage(&self, clear: bool) -> Usage {
        self.total_and_user_usages(clear).0
    }

    /// Returns the usage of each user that has connected. If `clear` is set, the counters start again from
    /// zero, except those of removed users.
    #[must_use]
    pub fn user_usages(&self, clear: bool) -> Vec<(UserRef, Usage)> {
        let accounts = lock_ignoring_poison(&self.accounts);
        let each = accounts.values();
        each.map(|(user, account)| (user.clone(), account.read_usage(clear)))
            .collect()
    }

    /// Returns the usage of all users together, and of each user that has connected. If `clear` is set, the
    /// counters start again from zero. Nothing is counted twice or lost; the sum includes removed users.
    #[must_use]
    pub fn total_and_user_usages(&self, clear: bool) -> (Usage, Vec<(UserRef, Usage)>) {
        let mut gone = lock_ignoring_poison(&self.removed_usage);
        let others = gone.combined_with(self.shared_account.read_usage(clear));
        if clear {
            *gone = Usage::default();
        }
        let each: Vec<_> = lock_ignoring_poison(&self.accounts)
            .values()
            .map(|(user, account)| (user.clone(), account.read_usage(clear)))
            .collect();
        let sum = each
            .iter()
            .fold(others, |sum, (_, usage)| sum.combined_with(*usage));
        (sum, each)
    }

    /// Returns the usage of each user that has connected, and before it that of all others: clients without a name,
    /// and users that were removed.
    pub(crate) fn unnamed_and_user_usages(&self) -> (Usage, Vec<(UserRef, Usage)>) {
        let gone = lock_ignoring_poison(&self.removed_usage);
        let others = gone.combined_with(self.shared_account.read_usage(false));
        (others, self.user_usages(false))
    }

    /// Adds usage that another process has counted: that of clients without a name, and that of users. The usage of
    /// users that do not exist here is that of a removed user.
    pub(crate) fn add_usage(&self, others: Usage, named: &[UserCounters]) {
        let mut gone = others;
        let users = self.users();
        for UserCounters { name, usage } in named {
            match users.find_by_name(name) {
                Some(user) => self.account_of(Some(&user)).add_usage(*usage),
                None => gone = gone.combined_with(*usage),
            }
        }
        let mut sum = lock_ignoring_poison(&self.removed_usage);
        *sum = sum.combined_with(gone);
    }

    /// Returns the usage of one user.
    #[must_use]
    pub fn usage_of(&self, id: UserId, clear: bool) -> Usage {
        let accounts = lock_ignoring_poison(&self.accounts);
        let account = accounts.get(&id);
        account.map_or_else(Usage::default, |(_, account)| account.read_usage(clear))
    }

    /// Returns the user last seen at `ip`, to be tried first where the key is found by trial.
    pub(crate) fn last_user_at(&self, ip: IpAddr) -> Option<UserId> {
        let hints = lock_ignoring_poison(&self.hints);
        let (known, id) = hints.get(hint_slot(ip))?.as_ref()?;
        (*known == ip).then_some(*id)
    }

    /// Records that `id` was seen at `ip`. Addresses that share a slot overwrite each other.
    pub(crate) fn record_user_at(&self, ip: IpAddr, id: UserId) {
        let mut hints = lock_ignoring_poison(&self.hints);
        if hints.is_empty() {
            hints.resize(HINT_SLOTS, None);
        }
        if let Some(hint) = hints.get_mut(hint_slot(ip)) {
            *hint = Some((ip, id));
        }
    }
}

/// Returns the hint slot of an address. Slots are not secret and a collision only costs a few trial
/// decryptions, so that a simple multiplicative hash suffices.
fn hint_slot(ip: IpAddr) -> usize {
    let bits = match ip {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits() >> 64,
    };
    let spread = (bits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    narrow_int::<usize>(spread) % HINT_SLOTS
}

/// Locks `mutex` and ignores poisoning: a panic of another thread leaves the tables intact.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use adit_shadowsocks::{Key, Method};
    use tokio::time::timeout;

    use super::*;

    const ALICE: &str = "ICEiIyQlJicoKSorLC0uLw==";
    const BOB: &str = "MDEyMzQ1Njc4OTo7PD0+Pw==";

    fn user_table() -> UserTable {
        let identity = Key::parse(Method::Blake3Aes128Gcm, "AAECAwQFBgcICQoLDA0ODw==").unwrap();
        let users = Users::with_identity_key(&identity, [("alice", ALICE), ("bob", BOB)]);
        UserTable::new(users.unwrap(), None)
    }

    /// The request is valid under the snapshot of the users that it was read with.
    #[tokio::test]
    async fn a_user_removed_while_their_request_is_read_gets_no_session() {
        let table = user_table();
        let snapshot = table.users();
        table.change_users(&["alice"], &[]).unwrap();
        let during = async |name: &str| {
            let account = table.account_of(snapshot.find_by_name(name).as_ref());
            account.run_until_ended(None, async { "served" }).await
        };
        assert_eq!(during("alice").await, None);
        assert_eq!(during("bob").await, Some("served"));
    }

    #[tokio::test]
    async fn a_removal_ends_open_sessions_and_keeps_what_they_used() {
        let table = Arc::new(user_table());
        let account = |name: &str| table.account_of(table.users().find_by_name(name).as_ref());
        let (alice, bob) = (account("alice"), account("bob"));
        alice.count_packet_up(7);
        let change = async { table.change_users(&["alice"], &[]).unwrap() };
        let session = timeout(
            Duration::from_secs(5),
            alice.run_until_ended(None, pending::<()>()),
        );
        let (end, ()) = tokio::join!(session, change);
        assert_eq!(end, Ok(None), "a removed user keeps their session");
        assert_eq!(bob.run_until_ended(None, async {}).await, Some(()));
        assert_eq!(table.total_usage(false).up, 7);
    }
}
