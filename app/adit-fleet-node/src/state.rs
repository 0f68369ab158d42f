//! The state that the tasks of a node share.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_engine::FleetUsers;
use adit_fleet::{
    ChangeId, Feed, FleetUser, NodeServer, NodeState, Regression, Store, StoreCall, StoreError,
    StoreFuture, UserChange,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::directory::{Directory, DirectoryChange, Served};
use crate::metrics::{CallResult, Counters};
use crate::settings::NodeSettings;
use crate::subscription::RealmDocuments;

/// Share of the users above which all of them are replaced instead of changing some.
const MANY: usize = 2;

/// The identity of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeIdentity {
    pub(crate) realm: String,
    pub(crate) id: u32,
    pub(crate) name: String,
    /// Another number in each process.
    pub(crate) instance: u64,
}

/// The state that the tasks of a node share.
pub(crate) struct Shared {
    pub(crate) node: NodeIdentity,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: NodeSettings,
    pub(crate) directory: Arc<Directory>,
    pub(crate) users: Arc<FleetUsers>,
    pub(crate) feed: Mutex<Feed>,
    pub(crate) counters: Counters,
    pub(crate) facts: Facts,
    pub(crate) documents: Arc<RealmDocuments>,
    /// The receiver of news about users that are added and removed, if there is one.
    pub(crate) user_changes: Mutex<Option<mpsc::Sender<Vec<UserChange>>>>,
}

/// The current knowledge about the fleet and this node.
#[derive(Debug)]
pub(crate) struct Facts {
    /// True if the last call was answered.
    pub(crate) store_is_up: AtomicBool,
    /// True once the users were compared with those of the store.
    pub(crate) has_synced: AtomicBool,
    /// True if the users are those of an earlier process.
    pub(crate) has_cache: AtomicBool,
    /// Number of nodes that report, including this one.
    pub(crate) live_nodes: AtomicU32,
    /// Number of nodes of the realm, whether they report or not.
    pub(crate) nodes: AtomicU32,
    /// The clock of this node minus that of the store, in milliseconds.
    pub(crate) clock_offset_ms: AtomicI64,
    /// Time of the last change until it was applied, in milliseconds.
    pub(crate) lag_ms: AtomicU64,
    pub(crate) unacknowledged_bytes: AtomicU64,
    pub(crate) state: Mutex<NodeState>,
    pub(crate) servers: Mutex<(Option<String>, Vec<NodeServer>)>,
    /// Wakes the task of the reports: the other nodes should know the servers before the next report is due.
    pub(crate) report_soon: tokio::sync::Notify,
    /// The result of the last upgrade.
    pub(crate) upgrade: Mutex<Option<String>>,
    /// The time since which the store does not answer.
    outage: Mutex<Option<Instant>>,
    /// The store has another realm, or refuses this node.
    refusal: Mutex<Option<String>>,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            store_is_up: AtomicBool::new(false),
            has_synced: AtomicBool::new(false),
            has_cache: AtomicBool::new(false),
            live_nodes: AtomicU32::new(1),
            nodes: AtomicU32::new(1),
            clock_offset_ms: AtomicI64::new(0),
            lag_ms: AtomicU64::new(0),
            unacknowledged_bytes: AtomicU64::new(0),
            state: Mutex::default(),
            report_soon: tokio::sync::Notify::new(),
            servers: Mutex::default(),
            upgrade: Mutex::default(),
            outage: Mutex::default(),
            refusal: Mutex::default(),
        }
    }
}

impl Facts {
    pub(crate) fn state(&self) -> NodeState {
        *lock(&self.state)
    }

    /// Returns the time for which the store has not answered.
    pub(crate) fn outage(&self) -> Option<Duration> {
        lock(&self.outage).map(|since| since.elapsed())
    }

    /// Returns the fault that an operator has to mend.
    pub(crate) fn refusal(&self) -> Option<String> {
        lock(&self.refusal).clone()
    }
}

impl Shared {
    /// Calls the store, counts the call, and notices outages.
    pub(crate) async fn call<T>(
        &self,
        call: StoreCall,
        future: StoreFuture<'_, T>,
    ) -> Result<T, StoreError> {
        let started = Instant::now();
        let result = future.await;
        let kind = match &result {
            Ok(_) => CallResult::Ok,
            Err(why) if why.is_outage() => CallResult::Unreachable,
            Err(_) => CallResult::Error,
        };
        self.counters.count_call(call, kind, started.elapsed());
        match &result {
            Ok(_) => self.note_answer(),
            Err(why) if why.is_outage() => self.note_outage(why),
            Err(why) => self.note_refusal(call, why),
        }
        result
    }

    fn note_answer(&self) {
        if !self.facts.store_is_up.swap(true, Ordering::Relaxed) {
            let outage = lock(&self.facts.outage).take();
            if let Some(since) = outage {
                info!(
                    "the store of the fleet answers again, after {:?}",
                    since.elapsed()
                );
            }
        }
        *lock(&self.facts.refusal) = None;
    }

    fn note_outage(&self, why: &StoreError) {
        let was_up = self.facts.store_is_up.swap(false, Ordering::Relaxed);
        let is_first = lock(&self.facts.outage).replace_if_none();
        if was_up || is_first {
            error!("{why}: this node continues with the users and the leases that it has");
        }
    }

    fn note_refusal(&self, call: StoreCall, why: &StoreError) {
        let text = format!("{}: {why}", call.name());
        let before = lock(&self.facts.refusal).replace(text.clone());
        if before.as_ref() != Some(&text) {
            warn!("the store of the fleet refuses {text}");
        }
    }

    /// Returns the number of the last change that was applied. The lock does not outlive the call, as it would in a
    /// longer expression.
    pub(crate) fn position(&self) -> ChangeId {
        lock(&self.feed).position()
    }

    /// Returns the loss of changes that no operator has accepted.
    pub(crate) fn regression(&self) -> Option<Regression> {
        lock(&self.feed).regression()
    }

    /// Applies a change of the directory to listeners and limits.
    pub(crate) fn publish(&self, change: &DirectoryChange) {
        if change.is_empty() {
            return;
        }
        // Before the users are served: none is unlimited in between.
        let set_limits = || {
            for user in change.put.values() {
                self.users.registry().update_fleet_user(user.name());
            }
        };
        let removed: Vec<(u32, &str)> = change
            .removed
            .iter()
            .map(|(id, name)| (*id, &**name))
            .collect();
        if change.put.len() > self.directory.len() / MANY {
            self.directory.fill_nodes();
            self.users.change(&removed, &[]);
            // After the removal, which forgets limits by name: a new user may have the name of a removed one.
            set_limits();
            self.users.replace_all();
            return;
        }
        set_limits();
        let put = change.put.iter();
        let put: Vec<FleetUser> = put.filter_map(|(id, user)| user.unpack(*id)).collect();
        let served: Vec<Served<'_>> = put.iter().map(Served).collect();
        let put: Vec<&dyn adit_engine::FleetUser> = served
            .iter()
            .map(|user| user as &dyn adit_engine::FleetUser)
            .collect();
        self.users.change(&removed, &put);
    }
}

/// The time since which something lasts.
trait SinceNow {
    /// Sets the present if there is none, and returns true then.
    fn replace_if_none(&mut self) -> bool;
}

impl SinceNow for Option<Instant> {
    fn replace_if_none(&mut self) -> bool {
        let is_none = self.is_none();
        self.get_or_insert_with(Instant::now);
        is_none
    }
}

/// Ignores poisoning: a panic of another thread leaves the value intact.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
