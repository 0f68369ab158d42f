//! The task that reports this node to the others, and obeys what is asked of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adit_engine::Engine;
use adit_fleet::{NodeOp, NodeState, NodeStatus, StoreCall, StoreError, SubscriptionAddress};
use adit_wire::u64_from;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{error, info, warn};

use crate::load::LoadMeter;
use crate::state::{Shared, lock};

/// Interval of reports.
const REPORT: Duration = Duration::from_secs(5);
/// Difference of the clocks at which a warning is logged.
const CLOCK_WARNING: Duration = Duration::from_secs(5);

/// Time in which listeners are opened again.
const RESUME_TIME: Duration = Duration::from_secs(5);

/// A request to continue in a new process, from this program or the same one.
pub type UpgradeOrder = Option<PathBuf>;
/// A request to open the listeners again that a drain has closed; the reply is true if they are open.
pub type ResumeOrder = oneshot::Sender<bool>;

/// Reports until the future is dropped.
pub(crate) struct Reporter {
    pub(crate) node: Arc<Shared>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) orders: mpsc::Receiver<NodeOp>,
    pub(crate) upgrades: mpsc::Sender<UpgradeOrder>,
    pub(crate) resumes: mpsc::Sender<ResumeOrder>,
    load: LoadMeter,
    drain: Option<JoinHandle<()>>,
    /// True if the record of this node has asked for it.
    drained_by_record: bool,
    /// True once a second process of this node was reported.
    knows_twin: bool,
    knows_clock: bool,
    version: String,
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some(drain) = &self.drain {
            drain.abort();
        }
    }
}

impl Reporter {
    pub(crate) fn new(
        node: Arc<Shared>,
        engine: Arc<Engine>,
        orders: mpsc::Receiver<NodeOp>,
        upgrades: mpsc::Sender<UpgradeOrder>,
        resumes: mpsc::Sender<ResumeOrder>,
        version: &str,
    ) -> Self {
        Self {
            node,
            engine,
            orders,
            upgrades,
            resumes,
            load: LoadMeter::default(),
            drain: None,
            drained_by_record: false,
            knows_twin: false,
            knows_clock: false,
            version: version.to_owned(),
        }
    }

    pub(crate) async fn run(mut self) {
        let mut due = Instant::now();
        let node = self.node.clone();
        loop {
            tokio::select! {
                () = node.facts.report_soon.notified() => due = Instant::now(),
                () = sleep_until(due) => {
                    due = Instant::now() + REPORT;
                    // It is logged already, and repeated.
                    let _ = self.report().await;
                }
                op = self.orders.recv() => match op {
                    Some(op) => {
                        self.obey(op).await;
                        due = Instant::now();
                    }
                    None => sleep_until(due).await,
                },
            }
        }
    }

    /// Sends a report, and reads those of the other nodes.
    async fn report(&mut self) -> Result<(), StoreError> {
        let node = self.node.clone();
        self.compare_clocks().await?;
        let status = self.status();
        let reporting = node.store.heartbeat(&status);
        let before = node.call(StoreCall::Heartbeat, reporting).await?;
        let twin = before.is_some_and(|before| before.instance != node.node.instance);
        // An upgrade or a restart has one predecessor, which reports no more.
        if twin && self.knows_twin {
            error!(
                "two processes report as node `{}`: each node needs a membership of its own",
                node.node.name
            );
        }
        self.knows_twin = twin;
        let nodes = node.call(StoreCall::Nodes, node.store.nodes()).await?;
        let live = nodes.iter().filter(|node| node.status.is_some()).count();
        let live = u32::try_from(live).unwrap_or(u32::MAX).max(1);
        node.facts.live_nodes.store(live, Ordering::Relaxed);
        let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        node.facts.nodes.store(count, Ordering::Relaxed);
        let own = nodes.iter().find(|entry| entry.id == node.node.id);
        let own = own.map(|own| own.record.state);
        node.documents.set_nodes(nodes);
        match own {
            Some(NodeState::Active) | None if self.drained_by_record => self.undrain().await,
            Some(NodeState::Active) | None => {}
            Some(_) => {
                self.drained_by_record = true;
                self.drain();
            }
        }
        Ok(())
    }

    /// Compares the clock of this node with that of the store.
    async fn compare_clocks(&mut self) -> Result<(), StoreError> {
        let node = self.node.clone();
        let asked = Instant::now();
        let there = node.call(StoreCall::Time, node.store.time()).await?;
        let half = asked.elapsed() / 2;
        let here = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let there = i64::try_from(there).unwrap_or(i64::MAX);
        let offset = millis(here.saturating_sub(half)).saturating_sub(there);
        node.facts.clock_offset_ms.store(offset, Ordering::Relaxed);
        let is_off = Duration::from_millis(offset.unsigned_abs()) > CLOCK_WARNING;
        if is_off && !self.knows_clock {
            warn!(
                "the clock of this machine differs from that of the store server by {} s: requests of clients \
                 may be refused",
                offset / 1000
            );
        }
        self.knows_clock = is_off;
        Ok(())
    }

    fn status(&mut self) -> NodeStatus {
        let node = &self.node;
        let load = self.load.sample(&self.engine);
        let (public_host, servers) = lock(&node.facts.servers).clone();
        let upgrade = lock(&node.facts.upgrade).clone();
        let subscriptions = node
            .settings
            .subscriptions
            .as_deref()
            .map(|url| SubscriptionAddress::new(url, node.node.id, lock(&node.feed).cipher()));
        NodeStatus {
            id: node.node.id,
            name: node.node.name.clone(),
            instance: node.node.instance,
            version: self.version.clone(),
            started_unix: self.engine.start_time().0,
            sessions: u64_from(self.engine.sessions(0).total),
            up_per_second: load.up_per_second,
            down_per_second: load.down_per_second,
            users: u64_from(node.directory.len()),
            change: node.position().0,
            lag_ms: node.facts.lag_ms.load(Ordering::Relaxed),
            clock_offset_ms: node.facts.clock_offset_ms.load(Ordering::Relaxed),
            state: node.facts.state(),
            degraded: crate::readiness::fault(node),
            errors_per_10000: load.errors_per_10000,
            handshake_p99_us: load.handshake_p99_us,
            unacknowledged_bytes: node.facts.unacknowledged_bytes.load(Ordering::Relaxed),
            public_host,
            subscriptions,
            servers,
            upgrade,
            ..NodeStatus::default()
        }
    }

    async fn obey(&mut self, op: NodeOp) {
        match op {
            NodeOp::Drain => self.drain(),
            NodeOp::Undrain => self.undrain().await,
            NodeOp::Upgrade { program } => {
                info!("an operator has requested an upgrade of this node");
                // One is under way, or the process cannot be upgraded.
                if self.upgrades.try_send(program.map(PathBuf::from)).is_err() {
                    warn!("this process cannot be upgraded now");
                }
            }
            // The feed obeys these.
            _ => {}
        }
    }

    /// Accepts nothing more after a while, and reports when everything has ended.
    fn drain(&mut self) {
        if self.drain.is_some() {
            return;
        }
        let settings = &self.node.settings;
        let (grace, patience) = (settings.drain_grace, settings.drain_timeout);
        info!(
            "this node is drained: it accepts connections for {grace:?} more, and open ones have {patience:?} then"
        );
        self.engine.announce_drain(true);
        self.drain = Some(self.start_drain(grace));
    }

    /// Stops to accept connections after `grace`.
    fn start_drain(&self, grace: Duration) -> JoinHandle<()> {
        let (node, engine) = (self.node.clone(), self.engine.clone());
        *lock(&node.facts.state) = NodeState::Draining;
        tokio::spawn(async move {
            sleep(grace).await;
            engine.drain_and_stop(node.settings.drain_timeout).await;
            *lock(&node.facts.state) = NodeState::Drained;
            info!("this node is drained: no connections are left");
        })
    }

    /// Accepts connections as before. Listeners that are closed already are opened again.
    async fn undrain(&mut self) {
        let Some(drain) = self.drain.as_mut() else {
            self.drained_by_record = false;
            return;
        };
        drain.abort();
        // Until then it may close listeners; only its end matters.
        let _ = drain.await;
        if self.engine.listeners().is_empty() && !self.resume().await {
            // The next report tries it again.
            self.drained_by_record = true;
            error!("this node cannot accept connections again yet");
            self.drain = Some(self.start_drain(Duration::ZERO));
            return;
        }
        self.drain = None;
        self.drained_by_record = false;
        self.engine.announce_drain(false);
        *lock(&self.node.facts.state) = NodeState::Active;
        info!("this node is used again");
    }

    /// Has the listeners opened. Returns true if they are.
    async fn resume(&self) -> bool {
        let (reply, done) = oneshot::channel();
        // Without room, or a receiver, the reply is dropped.
        let _ = self.resumes.try_send(reply);
        matches!(timeout(RESUME_TIME, done).await, Ok(Ok(true)))
    }
}
