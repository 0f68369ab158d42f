//! A node of a fleet: the users of a store at the listeners of a process, their usage and limits over all nodes, and
//! the node itself among the others.
//!
//! ```text
//!            ┌─ Follower: changes ──▶ Directory ──▶ FleetUsers (listeners), UserRegistry (limits)
//! Store ◀──▶ ├─ UsageTask: usage ◀── UserRegistry; leases ──▶
//!            └─ Reporter: heartbeats, clocks, orders of operators, draining
//! ```
//!
//! Nothing on the path of bytes waits for the store. What happens without it is decided by [`NodeSettings`].
//!
//! 1. [`FleetNode::new`] has no users yet; an engine is prepared with [`FleetNode::users`].
//! 2. [`FleetNode::open`] reads the users: from the file of an earlier process, and from the store.
//! 3. [`FleetNode::follow`] starts the tasks, until [`NodeControl::close`].

#![forbid(unsafe_code)]

mod active_users;
mod directory;
mod follow;
mod load;
mod local;
mod metrics;
mod readiness;
mod replay;
mod report;
mod settings;
mod state;
mod subscription;
mod usage;
mod used_up;
mod view;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adit_engine::{Engine, FleetUsers};
use adit_fleet::replay::ClaimBatcher;
use adit_fleet::{
    Feed, LocalContent, LocalStateError, Membership, NodeServer, Store, StoreHealth, UsageLedger,
    UserChange,
};
use adit_net::system;
use adit_wire::{Entropy, u64_from};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, spawn_blocking};
use tracing::{error, info, warn};

use directory::Directory;
use follow::Follower;
use local::LocalFile;
use metrics::Counters;
use replay::share_replays;
use report::Reporter;
use state::{Facts, NodeIdentity, Shared, lock};
use usage::{UsageCommand, UsageTask};
use used_up::UsedUpQuotas;

pub use metrics::{CallDurations, Labels, Metric, MetricKind};
pub use readiness::NodeReadiness;
pub use report::{ResumeOrder, UpgradeOrder};
pub use settings::NodeSettings;
pub use subscription::RealmDocuments;

/// Time that the start waits for the store if there is no local copy, and if there is one.
const FIRST_SYNC: Duration = Duration::from_secs(3);
/// Maximum number of answers of the log whose changes of users wait to be announced.
const MAX_USER_CHANGES: usize = 256;
/// Maximum number of an operator's operations that wait.
const MAX_ORDERS: usize = 16;
const SYNC_WITH_CACHE: Duration = Duration::from_millis(1500);

/// The error of a node that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The membership is that of an operator.
    #[error("this is the membership of an operator, not of a node: `adit fleet join` makes one")]
    NoNode,
    /// The local file cannot be used.
    #[error("{}: {why}", path.display())]
    Local {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: LocalStateError,
    },
}

/// A node of a fleet, whose users are not followed yet.
pub struct FleetNode {
    shared: Arc<Shared>,
    local: Arc<LocalFile>,
    ledger: UsageLedger,
    used_up: UsedUpQuotas,
    membership: Membership,
    /// The checks of replays at other nodes, if there are any.
    replays: Option<Arc<ClaimBatcher>>,
}

impl fmt::Debug for FleetNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetNode")
            .field("node", &self.shared.node)
            .finish_non_exhaustive()
    }
}

impl FleetNode {
    /// Creates a node without users. Nothing is read or written yet.
    ///
    /// # Errors
    ///
    /// [`NodeError::NoNode`] if the membership is that of an operator.
    pub fn new(
        store: Arc<dyn Store>,
        membership: &Membership,
        settings: NodeSettings,
    ) -> Result<Self, NodeError> {
        let id = membership.node_id.ok_or(NodeError::NoNode)?;
        let mut instance = [0; 8];
        system::SystemRng.fill(&mut instance);
        let directory = Arc::new(Directory::new(membership.realm_key.clone(), id));
        let local = LocalFile::new(&settings.state, &membership.realm, id);
        let key = membership.realm_key.clone();
        let documents = RealmDocuments::new(key, directory.clone(), store.clone());
        let shared = Shared {
            node: NodeIdentity {
                realm: membership.realm.clone(),
                id,
                name: membership.name.clone(),
                instance: u64::from_ne_bytes(instance),
            },
            store,
            settings,
            users: FleetUsers::new(directory.clone()),
            directory,
            feed: Mutex::new(Feed::new(membership.cipher())),
            counters: Counters::default(),
            facts: Facts::default(),
            documents: Arc::new(documents),
            user_changes: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            local,
            ledger: UsageLedger::default(),
            used_up: UsedUpQuotas::default(),
            membership: membership.clone(),
            replays: None,
        })
    }

    /// Returns the users, for [`Engine::prepare_with_fleet`].
    #[must_use]
    pub fn users(&self) -> &Arc<FleetUsers> {
        &self.shared.users
    }

    /// Opens the local file, and reads the users: those of the file if they are not too old, then those of the store,
    /// for which it waits a short time.
    ///
    /// # Errors
    ///
    /// The local file cannot be opened, another process has it, or it is another node's.
    pub async fn open(&mut self) -> Result<(), NodeError> {
        let local = self.local.clone();
        let opened = spawn_blocking(move || local.open()).await;
        let content = match opened {
            Ok(Ok(content)) => content,
            Ok(Err(why)) => {
                let path = self.local.path().to_owned();
                return Err(NodeError::Local { path, why });
            }
            // The runtime ends.
            Err(_) => return Ok(()),
        };
        self.ledger = ledger_of(&content);
        let age = system::unix_now().0.saturating_sub(content.contact_unix);
        let age = Duration::from_secs(age);
        let node = self.shared.clone();
        let mut has_cache = false;
        if let Some(table) = content.table {
            if age <= node.settings.cache_max_age {
                let cipher = self.membership.cipher();
                let loaded = spawn_blocking(move || {
                    *lock(&node.feed) = Feed::from_table(cipher, &table);
                    follow::load_directory(&node);
                });
                // The runtime ends.
                let _ = loaded.await;
                // Under another key it has no users that this process could know.
                has_cache = !lock(&self.shared.feed).needs_snapshot();
            } else {
                warn!("the local copy of the users is older than `cache_max_age`: it is not used");
            }
        }
        let node = &self.shared;
        self.used_up = UsedUpQuotas::restore(&content.used_up, &node.directory);
        node.facts.has_cache.store(has_cache, Ordering::Relaxed);
        let (orders, _) = mpsc::channel(MAX_ORDERS);
        let mut follower = Follower::new(node.clone(), self.local.clone(), orders);
        let patience = if has_cache {
            SYNC_WITH_CACHE
        } else {
            FIRST_SYNC
        };
        if !follower.sync_once(patience).await {
            match has_cache {
                true => error!(
                    "the store of the fleet does not answer: started with the {} users of {} s ago",
                    node.directory.len(),
                    age.as_secs()
                ),
                false => error!(
                    "the store of the fleet does not answer, and there is no local copy: no user is accepted yet"
                ),
            }
        }
        Ok(())
    }

    /// Checks requests to an engine under keys that other nodes have against those of all nodes, if the settings demand
    /// it. Call it before the engine accepts connections.
    pub fn share_replays(&mut self, engine: &Engine) {
        let settings = &self.shared.settings;
        self.replays = settings.shared_replay_filter.then(|| {
            let cipher = Arc::new(self.membership.cipher());
            let store = self.shared.store.clone();
            share_replays(engine, store, cipher, settings.replay_outage)
        });
    }

    /// Starts the tasks of the node for an engine that was prepared with its users. `version` is that of the program.
    #[must_use]
    pub fn follow(self, engine: Arc<Engine>, version: &str) -> NodeControl {
        let Self {
            shared,
            local,
            ledger,
            used_up,
            replays,
            ..
        } = self;
        let (upgrades, upgrade_orders) = mpsc::channel(MAX_ORDERS);
        let (resumes, resume_orders) = mpsc::channel(MAX_ORDERS);
        let control = NodeControl(Arc::new(ControlInner {
            shared,
            local,
            engine,
            version: version.to_owned(),
            upgrades,
            resumes,
            replays,
            running: Mutex::default(),
            upgrade_orders: tokio::sync::Mutex::new(upgrade_orders),
            resume_orders: tokio::sync::Mutex::new(resume_orders),
        }));
        control.start(ledger, used_up);
        control
    }
}

/// Returns the usage that the store may not have.
fn ledger_of(content: &LocalContent) -> UsageLedger {
    let unacknowledged = content.unacknowledged.clone();
    let mut ledger = UsageLedger::resume(content.last_batch, unacknowledged);
    for usage in &content.pending {
        ledger.add(usage.user, &usage.period, usage.up, usage.down);
    }
    ledger
}

/// The control of a node that follows its fleet.
#[derive(Clone)]
pub struct NodeControl(Arc<ControlInner>);

struct ControlInner {
    shared: Arc<Shared>,
    local: Arc<LocalFile>,
    engine: Arc<Engine>,
    version: String,
    upgrades: mpsc::Sender<UpgradeOrder>,
    resumes: mpsc::Sender<ResumeOrder>,
    replays: Option<Arc<ClaimBatcher>>,
    running: Mutex<Option<Running>>,
    upgrade_orders: tokio::sync::Mutex<mpsc::Receiver<UpgradeOrder>>,
    resume_orders: tokio::sync::Mutex<mpsc::Receiver<ResumeOrder>>,
}

/// The tasks of a node.
struct Running {
    usage: mpsc::Sender<UsageCommand>,
    tasks: [AbortHandle; 2],
}

impl Drop for Running {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl fmt::Debug for NodeControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeControl")
            .field("node", &self.0.shared.node)
            .finish_non_exhaustive()
    }
}

impl NodeControl {
    fn start(&self, ledger: UsageLedger, used_up: UsedUpQuotas) {
        let ControlInner {
            shared,
            local,
            engine,
            version,
            upgrades,
            resumes,
            running,
            ..
        } = &*self.0;
        let (orders, received) = mpsc::channel(MAX_ORDERS);
        let follower = Follower::new(shared.clone(), local.clone(), orders);
        let reporter = Reporter::new(
            shared.clone(),
            engine.clone(),
            received,
            upgrades.clone(),
            resumes.clone(),
            version,
        );
        let (usage, commands) = mpsc::channel(1);
        let task = UsageTask::new(shared.clone(), local.clone(), ledger, used_up);
        tokio::spawn(task.run(commands));
        let tasks = [
            tokio::spawn(follower.run()).abort_handle(),
            tokio::spawn(reporter.run()).abort_handle(),
        ];
        *lock(running) = Some(Running { usage, tasks });
    }

    /// Sends all usage, closes the local file, and follows nothing any more, so that another process can continue.
    /// Sessions that are open go on, within what their users may move.
    pub async fn close(&self) {
        let running = lock(&self.0.running).take();
        let Some(running) = running else { return };
        let (reply, closed) = oneshot::channel();
        let close = UsageCommand::Close(reply);
        if running.usage.send(close).await.is_ok() {
            // A task that has ended has closed the file.
            let _ = closed.await;
        }
    }

    /// Continues after [`Self::close`]: there is no other process.
    pub async fn reopen(&self) {
        let local = self.0.local.clone();
        match spawn_blocking(move || local.open()).await {
            Ok(Ok(content)) => {
                let directory = &self.0.shared.directory;
                let used_up = UsedUpQuotas::restore(&content.used_up, directory);
                self.start(ledger_of(&content), used_up);
            }
            Ok(Err(why)) => {
                let path = self.0.local.path().display().to_string();
                error!("{path}: {why}; the fleet is not followed any more");
            }
            // The runtime ends.
            Err(_) => {}
        }
    }

    /// Sets the servers of this node, and its address for clients, for the reports, and reports them.
    pub fn set_servers(&self, public_host: Option<String>, servers: Vec<NodeServer>) {
        let facts = &self.0.shared.facts;
        *lock(&facts.servers) = (public_host, servers);
        facts.report_soon.notify_one();
    }

    /// Sets the result of the last upgrade, for the reports.
    pub fn set_upgrade_result(&self, result: String) {
        *lock(&self.0.shared.facts.upgrade) = Some(result);
    }

    /// Waits for an order to continue in a new process.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe.
    pub async fn next_upgrade(&self) -> UpgradeOrder {
        let mut orders = self.0.upgrade_orders.lock().await;
        match orders.recv().await {
            Some(order) => order,
            None => std::future::pending().await,
        }
    }

    /// Waits for an order to open the listeners of the engine again, with [`Engine::resume`].
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe.
    pub async fn next_resume(&self) -> ResumeOrder {
        let mut orders = self.0.resume_orders.lock().await;
        loop {
            match orders.recv().await {
                // Others are not waited for any more.
                Some(order) if order.is_closed() => {}
                Some(order) => return order,
                None => std::future::pending().await,
            }
        }
    }

    /// Returns the users that are added and removed from now on, as this node reads it in the log, for
    /// [`claim_events`](adit_fleet::claim_events). What it learns too late to claim it is left out. The last caller receives them.
    #[must_use]
    pub fn watch_users(&self) -> mpsc::Receiver<Vec<UserChange>> {
        let (sender, changes) = mpsc::channel(MAX_USER_CHANGES);
        *lock(&self.0.shared.user_changes) = Some(sender);
        changes
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.shared.store
    }

    /// Returns the state of the connection to the store.
    #[must_use]
    pub fn store_health(&self) -> StoreHealth {
        self.0.shared.store.health()
    }

    /// Returns whether the node is ready for clients.
    #[must_use]
    pub fn readiness(&self) -> NodeReadiness {
        readiness::readiness(&self.0.shared)
    }

    /// Returns the durations of calls to the store.
    #[must_use]
    pub fn call_durations(&self) -> CallDurations {
        self.0.shared.counters.durations()
    }

    /// Returns the metrics of the node.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        metrics::node_metrics(&self.0.shared, self.0.replays.as_deref())
    }

    /// Returns the documents of the users of the fleet, for the API.
    #[must_use]
    pub fn documents(&self) -> Arc<RealmDocuments> {
        self.0.shared.documents.clone()
    }

    /// Returns the number of users of the fleet.
    #[must_use]
    pub fn user_count(&self) -> u64 {
        u64_from(self.0.shared.directory.len())
    }

    /// Logs the end of the node.
    pub async fn finish(&self) {
        self.close().await;
        info!(
            "node `{}` does not report any more",
            self.0.shared.node.name
        );
    }
}
