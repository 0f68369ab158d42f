//! The users of a process by name, with their limits and usage, whichever listeners and protocols they use.
//!
//! ```text
//! UserTable, LoginTable, SsrAccounts ── UserAccount (one per listener and user) ──▶ UserEntry (one per name)
//!                                                                                       ▲
//!                                              admin: limits, reports ── UserRegistry ──┘
//! ```
//!
//! Accounts count; an entry adds its accounts up when it is read. Only users with a quota or a rate cost anything on
//! the path of bytes. A timer ends periods and sessions.

mod allowance;
mod devices;
mod entry;
mod fleet;
mod fleet_entry;
mod fleet_part;
mod limits;
mod packed_limits;
mod refusal;
#[cfg(test)]
mod tests;
mod token_bucket;

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adit_net::system;
use adit_wire::UnixTime;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::usage::{ByteCounts, Usage, UserCounters};
use crate::user_account::UserAccount;

pub(crate) use devices::SessionPermit;
pub(crate) use entry::UserEntry;
pub use fleet::{FleetLimitSource, FleetQuota, FleetUsage, FleetUserLimits};
pub use limits::{UserLimits, UserReport, UserState};
pub(crate) use refusal::UserRefusal;
pub(crate) use token_bucket::QueueTicket;

/// Maximum time between two looks at the clock, which can be set, while a limit depends on it.
const CLOCK_CHECK: Duration = Duration::from_secs(10);

/// The part of a user that outlives the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUser {
    /// The name of the user.
    pub name: String,
    /// The limits.
    pub limits: UserLimits,
    /// The start of the period.
    pub period_start: UnixTime,
    /// All usage at the start of the period, or when it was last reset.
    pub before_period: ByteCounts,
    /// All usage.
    pub total: Usage,
}

impl From<StoredUser> for UserCounters {
    fn from(user: StoredUser) -> Self {
        Self {
            name: user.name,
            usage: user.total,
        }
    }
}

/// The users of a process, with their limits and usage.
#[derive(Debug, Default)]
pub struct UserRegistry {
    users: RwLock<HashSet<NamedEntry>>,
    /// Wakes the timer.
    deadlines_changed: Notify,
    /// Wakes those who store the limits.
    limits_changed: Notify,
    /// The fleet that the process is a node of.
    fleet_source: OnceLock<Arc<dyn FleetLimitSource>>,
    /// Wakes the node of the fleet.
    lease_signal: Arc<fleet_part::LeaseSignal>,
}

/// An entry in the set, found by its name.
#[derive(Debug, Clone)]
struct NamedEntry(Arc<UserEntry>);

impl Borrow<str> for NamedEntry {
    fn borrow(&self) -> &str {
        self.0.name()
    }
}

impl Hash for NamedEntry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name().hash(state);
    }
}

impl PartialEq for NamedEntry {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for NamedEntry {}

impl UserRegistry {
    /// Sets the limits of a user, who need not exist yet. They apply to open sessions too. Those of a user of a fleet are
    /// not changed here.
    pub fn set_limits(&self, name: &str, limits: UserLimits) {
        if self.is_fleet_user(name) {
            return;
        }
        self.entry(name).set_limits(limits, system::unix_now());
        self.announce_change();
    }

    /// Returns the limits of a user; `None` if no such user is known.
    #[must_use]
    pub fn limits(&self, name: &str) -> Option<UserLimits> {
        Some(self.find_known(name)?.limits())
    }

    /// Returns limits and usage of a user; `None` if no such user is known.
    #[must_use]
    pub fn report(&self, name: &str) -> Option<UserReport> {
        Some(self.find_known(name)?.report(system::unix_now()))
    }

    /// Returns limits and usage of all users, in the order of their names. Users without limits are known once they have
    /// been connected, or are configured with a password.
    #[must_use]
    pub fn reports(&self) -> Vec<UserReport> {
        let now = system::unix_now();
        let mut each = self.entries();
        each.retain(|entry| !entry.is_removed());
        let mut reports: Vec<_> = each.iter().map(|entry| entry.report(now)).collect();
        reports.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        reports
    }

    /// Returns the users who may have no sessions now, with their state, in no particular order. Others cost one load
    /// each.
    #[must_use]
    pub fn blocked_users(&self) -> Vec<(String, UserState)> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        let blocked = users
            .iter()
            .map(|known| &known.0)
            .filter(|entry| entry.is_blocked() && !entry.is_removed());
        blocked
            .map(|entry| (entry.name().to_owned(), entry.state()))
            .collect()
    }

    /// Starts to count the period of a user from zero. Returns false if no such user is known.
    pub fn reset_usage(&self, name: &str) -> bool {
        if self.is_fleet_user(name) {
            return true;
        }
        let entry = self.find_known(name);
        if let Some(entry) = &entry {
            entry.reset_usage(system::unix_now());
            self.announce_change();
        }
        entry.is_some()
    }

    /// Forgets limits and usage of a user. Returns false if no such user is known.
    pub fn remove(&self, name: &str) -> bool {
        if self.is_fleet_user(name) {
            return true;
        }
        let entry = self.find_known(name);
        if let Some(entry) = &entry {
            entry.remove(system::unix_now());
            self.announce_change();
        }
        let is_known = entry.is_some();
        drop(entry);
        self.drop_removed();
        is_known
    }

    /// Drops the entries of removed users that nothing refers to any more. Sessions that end are still counted there.
    fn drop_removed(&self) {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        users.retain(|known| {
            !known.0.is_removed() || known.0.fleet_id().is_some() || Arc::strong_count(&known.0) > 1
        });
    }

    /// Restores users of an earlier process. Usage that was counted here already stays, if it is more.
    pub fn restore(&self, stored: &[StoredUser]) {
        let now = system::unix_now();
        for user in stored {
            // The fleet has the limits and the usage of its users.
            if !self.is_fleet_user(&user.name) {
                self.entry(&user.name).restore(user, now);
            }
        }
        self.deadlines_changed.notify_one();
    }

    /// Returns everything that has to outlive the process, in the order of the names: users with limits or usage.
    pub fn to_stored(&self) -> impl Iterator<Item = StoredUser> + use<> {
        let now = system::unix_now();
        let mut each = self.entries();
        // The fleet stores its users itself.
        each.retain(|entry| !entry.is_removed() && entry.fleet_id().is_none());
        each.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        let stored = each.into_iter().map(move |entry| entry.to_stored(now));
        let none = (Usage::default(), UserLimits::default());
        stored.filter(move |user| (user.total, user.limits) != none)
    }

    /// Waits for the next change of limits, or of usage other than by traffic.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe. A change while no one waits completes the next call.
    pub async fn changed(&self) {
        self.limits_changed.notified().await;
    }

    /// Returns the usage of all users, for a successor.
    pub(crate) fn usages(&self) -> Vec<UserCounters> {
        let used = self.to_stored().map(UserCounters::from);
        // Of users of a fleet, the successor reports what this process has not.
        let entries = self.entries();
        let of_fleet = entries.iter().filter_map(|entry| entry.unreported_usage());
        used.chain(of_fleet)
            .filter(|user| user.usage != Usage::default())
            .collect()
    }

    /// Adds usage that another process has counted.
    pub(crate) fn add_usages(&self, counted: &[UserCounters]) {
        let now = system::unix_now();
        for user in counted {
            if user.usage != Usage::default() {
                self.entry(&user.name).add_usage(user.usage, now);
            }
        }
    }

    /// Returns a new account of the user `name`, which logs show as `shown`.
    pub(crate) fn new_account(&self, name: &str, shown: &str) -> Arc<UserAccount> {
        let entry = self.entry(name);
        let account = UserAccount::for_one_user().with_name(shown);
        let account = Arc::new(account.with_entry(entry.clone()));
        entry.add_account(&account);
        account
    }

    /// Starts the timer, which ends periods and expired sessions until it is aborted.
    pub(crate) fn start_timer(self: &Arc<Self>) -> TimerTask {
        TimerTask(tokio::spawn(run_timer(self.clone())).abort_handle())
    }

    fn announce_change(&self) {
        self.deadlines_changed.notify_one();
        self.limits_changed.notify_one();
    }

    /// Brings all users up to date. Returns the time at which the next of them changes.
    fn update_all(&self) -> Option<UnixTime> {
        self.drop_removed();
        let now = system::unix_now();
        let each = self.entries();
        each.iter().filter_map(|entry| entry.update(now)).min()
    }

    /// Returns the entry of a user who was not removed.
    fn find_known(&self, name: &str) -> Option<Arc<UserEntry>> {
        self.find(name).filter(|entry| !entry.is_removed())
    }

    fn find(&self, name: &str) -> Option<Arc<UserEntry>> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.get(name).map(|known| known.0.clone())
    }

    /// Returns the entry of a user, which is created if there is none.
    fn entry(&self, name: &str) -> Arc<UserEntry> {
        if let Some(entry) = self.find(name) {
            return entry;
        }
        // Before the lock: the fleet has one of its own.
        let decided = self.fleet_limits(name);
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = users.get(name) {
            return known.0.clone();
        }
        let entry = Arc::new(UserEntry::new(name));
        if let Some(decided) = &decided {
            entry.set_fleet(decided, &self.lease_signal);
        }
        users.insert(NamedEntry(entry.clone()));
        drop(users);
        if decided.is_some() {
            self.deadlines_changed.notify_one();
        }
        entry
    }

    fn entries(&self) -> Vec<Arc<UserEntry>> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.iter().map(|known| known.0.clone()).collect()
    }
}

impl Drop for UserRegistry {
    fn drop(&mut self) {
        // Accounts and entries refer to each other.
        for entry in self.entries() {
            entry.forget_accounts();
        }
    }
}

/// The timer of a registry; dropping it ends it.
#[derive(Debug)]
pub(crate) struct TimerTask(AbortHandle);

impl Drop for TimerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn run_timer(registry: Arc<UserRegistry>) {
    loop {
        let changed = registry.deadlines_changed.notified();
        match registry.update_all() {
            None => changed.await,
            Some(at) => {
                let at = UNIX_EPOCH + Duration::from_secs(at.0);
                let wait = at.duration_since(SystemTime::now()).unwrap_or_default();
                // Not before the second has begun.
                let wait = (wait + Duration::from_millis(1)).min(CLOCK_CHECK);
                // Both ends of this wait lead to the next look.
                let _ = timeout(wait, changed).await;
            }
        }
    }
}
