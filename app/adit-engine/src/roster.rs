//! Whom a keyed listener serves, and what they use; users come and go while it runs.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use adit_shadowsocks::{UserId, UserRef, Users, UsersError};
use adit_wire::narrow;
use tokio::sync::Notify;

use crate::account::{Account, Usage};

/// Addresses that are remembered to belong to a user. A power of two.
const HINTS: usize = 4096;

/// The users of one listener. Codecs take a snapshot; everything else is asked here.
#[derive(Debug)]
pub struct Roster {
    users: RwLock<Arc<Users>>,
    /// How often `users` was replaced.
    changes: AtomicU64,
    /// Those who have come. A user who never does costs nothing here.
    accounts: Mutex<HashMap<UserId, Known>>,
    /// What users used who are gone.
    gone: Mutex<Usage>,
    /// Who is counted where there is but one key.
    anyone: Arc<Account>,
    hints: Mutex<Vec<Option<(IpAddr, UserId)>>>,
    file: Option<PathBuf>,
    reread: Notify,
}

/// A user who has come, and what he used.
type Known = (UserRef, Arc<Account>);

/// A change that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// The listener has but one key.
    #[error("this listener serves one key, not users")]
    NoUsers,
    /// The keys do not go together.
    #[error(transparent)]
    Users(#[from] UsersError),
}

impl Roster {
    /// The users as the configuration has them; `file` is where they came from.
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

    /// The users now.
    #[must_use]
    pub fn users(&self) -> Arc<Users> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.clone()
    }

    /// How often the users were replaced: a cheap look before [`users`](Self::users).
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The file the users came from.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Has the file of the users read again, changed or not.
    pub fn reread(&self) {
        self.reread.notify_one();
    }

    pub(crate) async fn asked_to_reread(&self) {
        self.reread.notified().await;
    }

    /// Serves `users` from now on. The sessions of those who are gone, or have another key, end;
    /// all others do not notice.
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

    /// Adds users, gives those who exist another key, takes the named away.
    pub fn change(&self, remove: &[&str], put: &[(&str, &str)]) -> Result<(), RosterError> {
        let users = self.users();
        if !users.have_names() {
            return Err(RosterError::NoUsers);
        }
        self.replace(users.changed(remove, put)?);
        Ok(())
    }

    /// What a session of `user` is counted on.
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

    /// Ends every session of the listener.
    pub(crate) fn end(&self) {
        self.anyone.end();
        for (_, account) in lock(&self.accounts).values() {
            account.end();
        }
    }

    /// What everybody used together; with `clear` counting begins anew.
    #[must_use]
    pub fn usage(&self, clear: bool) -> Usage {
        self.statistics(clear).0
    }

    /// What each user used who has come; with `clear` counting begins anew, and the usage of
    /// those who are gone is forgotten.
    #[must_use]
    pub fn usages(&self, clear: bool) -> Vec<(UserRef, Usage)> {
        let accounts = lock(&self.accounts);
        let each = accounts.values();
        each.map(|(user, account)| (user.clone(), account.usage(clear)))
            .collect()
    }

    /// What everybody used together, and each user who has come; with `clear` counting begins
    /// anew. Nothing is counted twice or lost, and those who are gone are in the sum.
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

    /// What one user used.
    #[must_use]
    pub fn usage_of(&self, id: UserId, clear: bool) -> Usage {
        let accounts = lock(&self.accounts);
        let account = accounts.get(&id);
        account.map_or_else(Usage::default, |(_, account)| account.usage(clear))
    }

    /// Who was last seen at `ip`, to be tried first where keys have to be tried.
    pub(crate) fn hint(&self, ip: IpAddr) -> Option<UserId> {
        let hints = lock(&self.hints);
        let (known, id) = hints.get(place_of(ip))?.as_ref()?;
        (*known == ip).then_some(*id)
    }

    /// `id` was seen at `ip`. One place for several addresses: the last one stays.
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

/// The places are no secret and a clash costs a few trials: any spread will do.
fn place_of(ip: IpAddr) -> usize {
    let bits = match ip {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits() >> 64,
    };
    let spread = (bits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    narrow::<usize>(spread) % HINTS
}

/// A panic of another thread leaves the tables whole.
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

    /// The request was read with a snapshot of the users in which it was all right.
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
