//! The users of a keyed listener and their usage. Users can be added and removed at run time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use adit_shadowsocks::{UserId, UserRef, Users, UsersError};
use adit_wire::narrow;
use tokio::sync::Notify;

use crate::account::{Account, Usage};

/// Number of client addresses whose last user is remembered. A power of two.
const HINTS: usize = 4096;

/// The users of one listener. Codecs take a snapshot of them; everything else reads this table.
#[derive(Debug)]
pub struct Roster {
    users: RwLock<Arc<Users>>,
    /// Number of times that `users` was replaced.
    changes: AtomicU64,
    /// Accounts of the users that have connected. Users who never connect take no memory here.
    accounts: Mutex<HashMap<UserId, Known>>,
    /// Usage of users that were removed.
    gone: Mutex<Usage>,
    /// The account of all clients of a listener with a single key.
    anyone: Arc<Account>,
    hints: Mutex<Vec<Option<(IpAddr, UserId)>>>,
    file: Option<PathBuf>,
    reread: Notify,
}

/// A user that has connected, and their account.
type Known = (UserRef, Arc<Account>);

/// The error of a change to the users of a listener.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// The listener has a single key.
    #[error("this listener has a single key and no users to change")]
    NoUsers,
    /// The keys are not compatible with each other.
    #[error(transparent)]
    Users(#[from] UsersError),
}

impl Roster {
    /// Creates a table of the configured users; `file` is the file they were read from.
    #[must_use]
    pub fn new(users: Arc<Users>, file: Option<PathBuf>) -> Self {
        Self {
            users: RwLock::new(users),
            changes: AtomicU64::new(0),
            accounts: Mutex::default(),
            gone: Mutex::default(),
            anyone: Arc::default(),
            hints: Mutex::default(),
            file,
            reread: Notify::new(),
        }
    }

    /// Returns a snapshot of the current users.
    #[must_use]
    pub fn users(&self) -> Arc<Users> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.clone()
    }

    /// Returns how often the users were replaced: a cheap check before [`users`](Self::users).
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns the file that the users were read from.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Requests that the users file is read again, changed or not.
    pub fn reread(&self) {
        self.reread.notify_one();
    }

    pub(crate) async fn asked_to_reread(&self) {
        self.reread.notified().await;
    }

    /// Replaces the users. Sessions of users that were removed, or whose key changed, end; all others
    /// are unaffected.
    pub fn replace(&self, users: Arc<Users>) {
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = users.clone();
        self.changes.fetch_add(1, Ordering::Release);
        let mut gone = lock(&self.gone);
        lock(&self.accounts).retain(|id, (_, account)| {
            let stays = users.still_has(*id);
            if !stays {
                account.end();
                *gone = gone.plus(account.usage(false));
            }
            stays
        });
    }

    /// Adds the users in `put` (name and key), replaces the keys of those that exist, and removes the users
    /// in `remove`.
    ///
    /// # Errors
    ///
    /// Returns [`RosterError::NoUsers`] if the listener has a single key, and [`RosterError::Users`] if the
    /// keys are not compatible.
    pub fn change(&self, remove: &[&str], put: &[(&str, &str)]) -> Result<(), RosterError> {
        let users = self.users();
        if !users.have_names() {
            return Err(RosterError::NoUsers);
        }
        self.replace(users.changed(remove, put)?);
        Ok(())
    }

    /// Returns the account that counts a session of `user`.
    pub(crate) fn account(&self, user: Option<&UserRef>) -> Arc<Account> {
        let Some(user) = user else {
            return self.anyone.clone();
        };
        let mut accounts = lock(&self.accounts);
        let (_, account) = accounts
            .entry(user.id())
            .or_insert_with(|| (user.clone(), Arc::new(Account::of_a_user())));
        let account = account.clone();
        drop(accounts);
        // The user may have been removed since the request was read.
        if !self.users().still_has(user.id()) {
            account.end();
        }
        account
    }

    /// Ends all sessions of the listener.
    pub(crate) fn end(&self) {
        self.anyone.end();
        for (_, account) in lock(&self.accounts).values() {
            account.end();
        }
    }

    /// Returns the usage of all users together. If `clear` is set, the counters start again from zero.
    #[must_use]
    pub fn usage(&self, clear: bool) -> Usage {
        self.statistics(clear).0
    }

    /// Returns the usage of each user that has connected. If `clear` is set, the counters start again from
    /// zero, except those of removed users.
    #[must_use]
    pub fn usages(&self, clear: bool) -> Vec<(UserRef, Usage)> {
        let accounts = lock(&self.accounts);
        let each = accounts.values();
        each.map(|(user, account)| (user.clone(), account.usage(clear)))
            .collect()
    }

    /// Returns the usage of all users together, and of each user that has connected. If `clear` is set, the
    /// counters start again from zero. Nothing is counted twice or lost; the sum includes removed users.
    #[must_use]
    pub fn statistics(&self, clear: bool) -> (Usage, Vec<(UserRef, Usage)>) {
        let mut gone = lock(&self.gone);
        let others = gone.plus(self.anyone.usage(clear));
        if clear {
            *gone = Usage::default();
        }
        let each: Vec<_> = lock(&self.accounts)
            .values()
            .map(|(user, account)| (user.clone(), account.usage(clear)))
            .collect();
        let sum = each.iter().fold(others, |sum, (_, usage)| sum.plus(*usage));
        (sum, each)
    }

    /// Returns the usage of one user.
    #[must_use]
    pub fn usage_of(&self, id: UserId, clear: bool) -> Usage {
        let accounts = lock(&self.accounts);
        let account = accounts.get(&id);
        account.map_or_else(Usage::default, |(_, account)| account.usage(clear))
    }

    /// Returns the user last seen at `ip`, to be tried first where the key is found by trial.
    pub(crate) fn hint(&self, ip: IpAddr) -> Option<UserId> {
        let hints = lock(&self.hints);
        let (known, id) = hints.get(place_of(ip))?.as_ref()?;
        (*known == ip).then_some(*id)
    }

    /// Records that `id` was seen at `ip`. Addresses that share a slot overwrite each other.
    pub(crate) fn seen(&self, ip: IpAddr, id: UserId) {
        let mut hints = lock(&self.hints);
        if hints.is_empty() {
            hints.resize(HINTS, None);
        }
        if let Some(hint) = hints.get_mut(place_of(ip)) {
            *hint = Some((ip, id));
        }
    }
}

/// Returns the hint slot of an address. Slots are not secret and a collision only costs a few trial
/// decryptions, so that a simple multiplicative hash suffices.
fn place_of(ip: IpAddr) -> usize {
    let bits = match ip {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits() >> 64,
    };
    let spread = (bits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    narrow::<usize>(spread) % HINTS
}

/// Locks `mutex` and ignores poisoning: a panic of another thread leaves the tables intact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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

    fn roster() -> Roster {
        let identity = Key::parse(Method::Blake3Aes128Gcm, "AAECAwQFBgcICQoLDA0ODw==").unwrap();
        let users = Users::identified(&identity, [("alice", ALICE), ("bob", BOB)]);
        Roster::new(users.unwrap(), None)
    }

    /// The request is valid under the snapshot of the users that it was read with.
    #[tokio::test]
    async fn a_user_removed_while_their_request_is_read_gets_no_session() {
        let roster = roster();
        let snapshot = roster.users();
        roster.change(&["alice"], &[]).unwrap();
        let during = async |name: &str| {
            let account = roster.account(snapshot.named(name).as_ref());
            account.during(async { "served" }).await
        };
        assert_eq!(during("alice").await, None);
        assert_eq!(during("bob").await, Some("served"));
    }

    #[tokio::test]
    async fn a_removal_ends_open_sessions_and_keeps_what_they_used() {
        let roster = Arc::new(roster());
        let account = |name: &str| roster.account(roster.users().named(name).as_ref());
        let (alice, bob) = (account("alice"), account("bob"));
        alice.packet_up(7);
        let change = async { roster.change(&["alice"], &[]).unwrap() };
        let session = timeout(Duration::from_secs(5), alice.during(pending::<()>()));
        let (end, ()) = tokio::join!(session, change);
        assert_eq!(end, Ok(None), "a removed user keeps their session");
        assert_eq!(bob.during(async {}).await, Some(()));
        assert_eq!(roster.usage(false).up, 7);
    }
}
