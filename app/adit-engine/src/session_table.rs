//! The open sessions of a process: the streams and UDP associations of all listeners, with their users and counters.
//!
//! ```text
//! listener ── ListenerSessions::open ──▶ SessionEntry (in the session's task) ── drop ──▶ removed
//!                                          │ counters, end
//! Engine::sessions, Engine::end_session ───┴─▶ SessionTable: shards of records
//! ```
//!
//! A lock is taken when a session opens and closes, not for its bytes: the counters are the session's own, and only its
//! task adds to them. The record keeps the class of the destination and its port, not the destination (SEC-E9).

mod record;
mod report;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use adit_stream::TrafficMeter;
use adit_wire::{Target, narrow_int, u64_from};

use crate::stage_meter::{ListenerMeters, StageMeter};
use crate::user_account::UserAccount;
pub(crate) use record::{SessionEntry, SessionRecord};
pub use report::{SessionKind, SessionList, SessionReport, TargetClass};

/// Number of shards, each with a lock of its own.
const SHARDS: usize = 16;
/// A shard keeps the memory of this number of sessions when they have ended.
const KEPT_CAPACITY: usize = 64;

/// The open sessions of a process.
#[derive(Debug, Default)]
pub(crate) struct SessionTable {
    shards: [Mutex<Vec<OpenSession>>; SHARDS],
    last_id: AtomicU64,
}

/// An open session in a shard. The ID is not only in the record: with 4,900 idle sessions, whose records are in no cache,
/// a process with an open dashboard spent half of its time on reading their IDs.
#[derive(Debug)]
struct OpenSession {
    id: u64,
    record: Arc<SessionRecord>,
}

/// The open sessions of one listener, and its counters.
#[derive(Debug, Default)]
pub struct ListenerSessions {
    table: Arc<SessionTable>,
    meters: ListenerMeters,
    /// The route and the bound address, once the listener runs.
    listening: OnceLock<(String, SocketAddr)>,
}

/// A session that starts.
pub(crate) struct NewSession<'a> {
    pub(crate) kind: SessionKind,
    /// The name that the client stated; that of the account takes precedence.
    pub(crate) user: Option<&'a str>,
    pub(crate) account: Option<&'a Arc<UserAccount>>,
    /// The destination, if it is known when the session starts.
    pub(crate) target: Option<&'a Target>,
}

impl ListenerSessions {
    /// Creates the sessions of a listener that counts with `meters`.
    pub(crate) fn new(table: Arc<SessionTable>, meters: ListenerMeters) -> Arc<Self> {
        Arc::new(Self {
            table,
            meters,
            listening: OnceLock::new(),
        })
    }

    /// Sets the route and the bound address. They do not change afterwards.
    pub(crate) fn set_listening(&self, route: &str, addr: SocketAddr) {
        self.listening.get_or_init(|| (route.to_owned(), addr));
    }

    /// Returns the route and the bound address, once the listener runs.
    pub(crate) fn listening(&self) -> Option<(&str, SocketAddr)> {
        let listening = self.listening.get();
        listening.map(|(route, addr)| (route.as_str(), *addr))
    }

    /// Returns the counters of the listener.
    pub(crate) const fn meter(&self) -> &Arc<TrafficMeter> {
        &self.meters.traffic
    }

    /// Returns the counters of what the listener does not serve.
    pub(crate) fn stages(&self) -> &StageMeter {
        &self.meters.stages
    }

    /// Returns the ID of a session that is going to start.
    pub(crate) fn next_id(&self) -> u64 {
        self.table.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds a session, which ends when the entry is dropped.
    pub(crate) fn open(self: &Arc<Self>, session: NewSession<'_>) -> SessionEntry {
        self.open_with_id(self.next_id(), session)
    }

    /// Does the same with an ID from [`Self::next_id`], which the log has shown since the request.
    pub(crate) fn open_with_id(self: &Arc<Self>, id: u64, session: NewSession<'_>) -> SessionEntry {
        self.meters.traffic.count_opened();
        let record = Arc::new(SessionRecord::new(id, self.clone(), session));
        self.table.insert(&record);
        SessionEntry::new(record)
    }

    /// Removes a session.
    fn close(&self, record: &SessionRecord) {
        self.table.remove(record);
        self.meters.traffic.count_closed();
    }
}

impl SessionTable {
    fn lock_shard(&self, id: u64) -> MutexGuard<'_, Vec<OpenSession>> {
        let at: usize = narrow_int(id % u64_from(SHARDS));
        lock_ignoring_poison(&self.shards[at])
    }

    fn insert(&self, record: &Arc<SessionRecord>) {
        let mut shard = self.lock_shard(record.id());
        record.set_position(shard.len());
        shard.push(OpenSession {
            id: record.id(),
            record: record.clone(),
        });
    }

    fn remove(&self, record: &SessionRecord) {
        let mut shard = self.lock_shard(record.id());
        let at = record.position();
        debug_assert!(shard.get(at).is_some_and(|found| found.id == record.id()));
        if at < shard.len() {
            let removed = shard.swap_remove(at);
            if let Some(moved) = shard.get(at) {
                moved.record.set_position(at);
            }
            if shard.capacity() > KEPT_CAPACITY && shard.len() < shard.capacity() / 4 {
                let kept = shard.len() * 2;
                shard.shrink_to(kept);
            }
            drop(shard);
            drop(removed);
        }
    }

    /// Returns the newest sessions, at most `limit`, and the number of all.
    pub(crate) fn newest(&self, limit: usize) -> SessionList {
        let mut ids: Vec<u64> = Vec::new();
        for shard in &self.shards {
            ids.extend(lock_ignoring_poison(shard).iter().map(|open| open.id));
        }
        let total = ids.len();
        let oldest_shown = match limit {
            0 => u64::MAX,
            _ if limit >= total => 0,
            _ => {
                let (_, id, _) = ids.select_nth_unstable(total - limit);
                *id
            }
        };
        let mut records = Vec::with_capacity(limit.min(total));
        for shard in &self.shards {
            let shard = lock_ignoring_poison(shard);
            let shown = shard.iter().filter(|open| open.id >= oldest_shown);
            records.extend(shown.map(|open| open.record.clone()));
        }
        records.sort_unstable_by_key(|record| std::cmp::Reverse(record.id()));
        // Sessions may have started between the two passes.
        records.truncate(limit);
        SessionList {
            total,
            sessions: records.iter().map(|record| record.report()).collect(),
        }
    }

    /// Ends a session. Returns false if it is not open.
    pub(crate) fn end(&self, id: u64) -> bool {
        let shard = self.lock_shard(id);
        let found = shard.iter().find(|open| open.id == id);
        let found = found.map(|open| open.record.clone());
        drop(shard);
        found.is_some_and(|record| record.end())
    }
}

/// Locks `mutex` and ignores poisoning: a panic of another thread leaves the table intact.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use adit_stream::CountBytes;
    use tokio::time::timeout;

    use super::*;

    fn listener() -> Arc<ListenerSessions> {
        let sessions = ListenerSessions::new(Arc::default(), ListenerMeters::default());
        sessions.set_listening("main", SocketAddr::from(([127, 0, 0, 1], 1080)));
        sessions
    }

    fn open(listener: &Arc<ListenerSessions>, user: Option<&str>, target: &str) -> SessionEntry {
        listener.open(NewSession {
            kind: SessionKind::Tcp,
            user,
            account: None,
            target: target.parse().ok().as_ref(),
        })
    }

    #[test]
    fn an_entry_is_listed_until_it_is_dropped_and_never_with_its_destination() {
        let listener = listener();
        let session = open(&listener, Some("ann"), "secret.example:443");
        session.add_up(3);
        session.add_up(4);
        session.add_down(9);
        let list = listener.table.newest(10);
        assert_eq!((list.total, list.sessions.len()), (1, 1));
        let shown = list.sessions.first().unwrap();
        assert_eq!((shown.up, shown.down), (7, 9));
        assert_eq!((&*shown.user, &*shown.route), ("ann", "main"));
        assert_eq!(shown.target(), "name:443");
        assert!(!format!("{list:?}").contains("secret"), "{list:?}");
        drop(session);
        assert_eq!(listener.table.newest(10).total, 0);
        let stats = listener.meter().stats();
        assert_eq!((stats.opened, stats.closed), (1, 1));
    }

    #[test]
    fn the_newest_are_shown_first_and_no_more_than_requested() {
        let listener = listener();
        let mut all: Vec<_> = (0..1000)
            .map(|_| open(&listener, None, "[::1]:1"))
            .collect();
        let ids = |limit| -> Vec<u64> {
            let list = listener.table.newest(limit);
            list.sessions.iter().map(|session| session.id).collect()
        };
        assert_eq!(ids(3), [1000, 999, 998]);
        assert_eq!(ids(0), [0; 0]);
        assert_eq!(ids(5000).len(), 1000);
        // Every second one ends: the others are still found.
        let mut keep = false;
        all.retain(|_| {
            keep = !keep;
            keep
        });
        assert_eq!(ids(2), [999, 997]);
        assert_eq!(listener.table.newest(usize::MAX).total, 500);
        let kept = all.iter().map(|session| session.id());
        assert!(kept.clone().all(|id| listener.table.end(id)));
        assert!(!listener.table.end(2), "it has ended");
        drop(all);
        let capacities = listener
            .table
            .shards
            .iter()
            .map(|shard| lock_ignoring_poison(shard).capacity());
        assert!(capacities.max().unwrap() <= KEPT_CAPACITY);
    }

    #[tokio::test]
    async fn an_end_reaches_a_session_that_waits_and_no_other() {
        let listener = listener();
        let (one, other) = (
            open(&listener, None, "a.example:1"),
            open(&listener, None, "a.example:1"),
        );
        let id = one.id();
        let session = tokio::spawn(async move {
            let work = std::pin::pin!(pending::<()>());
            one.run_until_ended(work).await
        });
        let short = Duration::from_millis(20);
        let work = std::pin::pin!(pending::<()>());
        assert!(timeout(short, other.run_until_ended(work)).await.is_err());
        assert!(listener.table.end(id));
        assert_eq!(
            timeout(Duration::from_secs(10), session)
                .await
                .unwrap()
                .unwrap(),
            None
        );
        assert_eq!(listener.table.newest(9).total, 1);
        // One that was ended before its wait.
        assert!(listener.table.end(other.id()));
        assert!(!listener.table.end(other.id()), "it is ending");
        let done = std::pin::pin!(async { 1 });
        assert_eq!(other.run_until_ended(done).await, None);
    }

    #[test]
    fn a_record_is_small() {
        // Together with its entry in a shard and the pointer in the session, about 120 bytes.
        assert!(
            size_of::<SessionRecord>() <= 88,
            "{}",
            size_of::<SessionRecord>()
        );
    }
}
