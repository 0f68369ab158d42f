//! The task that follows the changes of the fleet.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use adit_fleet::{
    CLAIM_TIME, ChangeId, Feed, FeedEvent, FeedNext, FeedStep, NodeOp, PackedUser, RealmInfo,
    Snapshot, StoreCall, StoreError, StoreErrorKind, UserChange,
};
use adit_net::memory;
use adit_net::system::SystemRng;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};

use crate::directory::DirectoryChange;
use crate::local::LocalFile;
use crate::state::{Shared, lock};

/// Time for which the store holds the question for changes.
const CHANGE_WAIT: Duration = Duration::from_secs(5);
/// Maximum age in seconds of orders that are obeyed while the store has lost changes.
const ORDER_AGE: u64 = 15 * 60;
/// Pause after a failed call.
const PAUSE: Duration = Duration::from_millis(500);
/// Pause after a change per 1000 users, and its maximum: changes that follow are applied together with the next.
const SETTLE_PER_THOUSAND: Duration = Duration::from_millis(2);
const MAX_SETTLE: Duration = Duration::from_millis(50);
/// Minimum time between two messages about records that were refused.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// The origin of events.
#[derive(Clone, Copy)]
enum Source {
    /// A snapshot, and whether the file of this node has its users already.
    Snapshot { is_saved: bool },
    /// Changes, and the time when they arrived.
    Changes { received: Instant, is_recent: bool },
    /// No changes.
    Nothing,
}

/// Follows the changes until the future is dropped. Orders for this node are sent to `orders`.
pub(crate) struct Follower {
    pub(crate) node: Arc<Shared>,
    pub(crate) local: Arc<LocalFile>,
    pub(crate) orders: mpsc::Sender<NodeOp>,
    needs_snapshot: bool,
    /// True if an operator has accepted that the store has lost changes.
    accepts_loss: bool,
    complained: Option<Instant>,
    announced_regression: bool,
    /// The last time when this node had all changes of the store: those that it reads now were made since.
    current: Option<Instant>,
}

impl Follower {
    pub(crate) fn new(
        node: Arc<Shared>,
        local: Arc<LocalFile>,
        orders: mpsc::Sender<NodeOp>,
    ) -> Self {
        let needs_snapshot = lock(&node.feed).needs_snapshot();
        Self {
            node,
            local,
            orders,
            needs_snapshot,
            accepts_loss: false,
            complained: None,
            announced_regression: false,
            current: None,
        }
    }

    /// Reads the users once, within `time`. Returns true if they are those of the store then.
    pub(crate) async fn sync_once(&mut self, time: Duration) -> bool {
        let synced = async {
            self.check_realm().await?;
            self.read().await?;
            while self.needs_snapshot {
                self.read().await?;
            }
            Ok::<(), StoreError>(())
        };
        matches!(timeout(time, synced).await, Ok(Ok(()))) && self.node.regression().is_none()
    }

    /// Follows the changes.
    pub(crate) async fn run(mut self) {
        while self.check_realm().await.is_err() {
            sleep(PAUSE).await;
        }
        loop {
            if self.read().await.is_err() {
                sleep(PAUSE).await;
            }
        }
    }

    /// Checks that the store has the realm of this node.
    async fn check_realm(&self) -> Result<(), StoreError> {
        let node = &self.node;
        let info = node
            .call(StoreCall::RealmInfo, node.store.realm_info())
            .await;
        let holds_users = lock(&node.feed).position() > ChangeId::default();
        let checked = match info {
            Ok(info) => info.check(lock(&node.feed).cipher()),
            // It had the realm before: the feed notices the loss.
            Err(why) if why.kind == StoreErrorKind::WrongRealm && holds_users => Ok(()),
            Err(why) => Err(why),
        };
        if let Err(why) = &checked
            && !why.is_outage()
        {
            error!("the store of the fleet cannot be used by this node: {why}");
        }
        checked
    }

    /// Reads a snapshot, or the next changes.
    async fn read(&mut self) -> Result<(), StoreError> {
        let node = self.node.clone();
        if self.needs_snapshot || self.accepts_loss {
            let snapshot = node
                .call(StoreCall::Snapshot, node.store.snapshot())
                .await?;
            let accepts_loss = std::mem::take(&mut self.accepts_loss);
            self.needs_snapshot = false;
            let (step, is_saved) = self.apply_snapshot(snapshot, accepts_loss).await;
            self.finish_step(step, Source::Snapshot { is_saved }).await;
            // Of a snapshot of many users, and of their records in the file.
            let _ = spawn_blocking(memory::release_free_pages).await;
            return Ok(());
        }
        let after = lock(&node.feed).read_after();
        // While nothing was compared with the store, the first answer is wanted at once.
        let wait = match node.facts.has_synced.load(Ordering::Relaxed) {
            true => CHANGE_WAIT,
            false => Duration::ZERO,
        };
        let asked = Instant::now();
        let changes = node.store.changes(after, wait);
        let batch = node.call(StoreCall::Changes, changes).await?;
        let received = Instant::now();
        let count = batch.changes.len();
        let step = lock(&node.feed).apply_batch(&batch);
        let is_recent = self.current.is_some_and(|at| at.elapsed() < CLAIM_TIME);
        if step.next == FeedNext::Continue && lock(&node.feed).position() >= batch.head {
            self.current = Some(asked);
        }
        if let FeedNext::Regression(_) = step.next
            && count == 0
        {
            // The answer comes at once if the log is empty.
            sleep(PAUSE).await;
        }
        let source = match count {
            0 => Source::Nothing,
            _ => Source::Changes {
                received,
                is_recent,
            },
        };
        self.finish_step(step, source).await;
        Ok(())
    }

    /// Opens the records of a snapshot on another thread. If they are good, the file of this node gets them as they are,
    /// and the second value is true: to seal the users anew takes longer than to open them.
    async fn apply_snapshot(&self, snapshot: Snapshot, accepts_loss: bool) -> (FeedStep, bool) {
        let (node, local) = (self.node.clone(), self.local.clone());
        let open = move || {
            let step = lock(&node.feed).apply_snapshot(&snapshot, accepts_loss);
            let is_refused = |event: &FeedEvent| matches!(event, FeedEvent::Refused { .. });
            let is_whole = step.next == FeedNext::Continue && !step.events.iter().any(is_refused);
            if is_whole {
                local.save_snapshot(&snapshot);
            }
            (step, is_whole)
        };
        // It fails if the runtime ends.
        spawn_blocking(open).await.unwrap_or_else(|_| {
            let (events, next) = (Vec::new(), FeedNext::Continue);
            (FeedStep { events, next }, false)
        })
    }

    async fn finish_step(&mut self, step: FeedStep, source: Source) {
        let is_first = !self.node.facts.has_synced.load(Ordering::Relaxed);
        let is_recent = matches!(
            source,
            Source::Changes {
                is_recent: true,
                ..
            }
        );
        let (put, deleted) = self.apply_events(step.events, is_recent).await;
        if let Source::Changes { received, .. } = source {
            let lag = u64::try_from(received.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.node.facts.lag_ms.store(lag, Ordering::Relaxed);
        }
        match step.next {
            FeedNext::Continue => {
                self.node.facts.has_synced.store(true, Ordering::Relaxed);
                if std::mem::take(&mut self.announced_regression) {
                    info!("the users of the fleet are those of the store again");
                }
            }
            FeedNext::Snapshot => self.needs_snapshot = true,
            FeedNext::Regression(lost) => {
                if !std::mem::replace(&mut self.announced_regression, true) {
                    error!(
                        "the store of the fleet has lost changes (it has {}, this node has {}): this node keeps \
                         its {} users until an operator runs `adit fleet resync --accept` or `adit fleet restore`",
                        lost.found,
                        lost.held,
                        self.node.directory.len()
                    );
                }
            }
        }
        let is_regression = matches!(step.next, FeedNext::Regression(_));
        if is_regression {
            return;
        }
        if is_first {
            let position = lock(&self.node.feed).position();
            let count = self.node.directory.len();
            info!("{count} users of the fleet, up to change {position}");
        }
        let changes_users = !put.is_empty() || !deleted.is_empty();
        match source {
            Source::Snapshot { is_saved: true } | Source::Nothing => {}
            Source::Snapshot { is_saved: false } => self.local.save_table(&self.node).await,
            // Orders are not obeyed again, so that their numbers count too.
            Source::Changes { .. } => self.local.save_changes(&self.node, put, deleted).await,
        }
        if changes_users {
            self.settle().await;
        }
    }

    /// Applies events. Returns the numbers of users that were put and deleted. Recent ones are announced.
    async fn apply_events(
        &mut self,
        events: Vec<FeedEvent>,
        is_recent: bool,
    ) -> (Vec<u32>, Vec<u32>) {
        let node = self.node.clone();
        let mut change = DirectoryChange::default();
        let mut kicked = Vec::new();
        let (mut put, mut deleted) = (Vec::new(), Vec::new());
        let mut news = Vec::new();
        let mut note = |id: u32, user: &PackedUser, is_added| {
            news.push(UserChange {
                id,
                name: user.name().to_owned(),
                is_added,
            });
        };
        node.directory.reserve(events.len());
        for event in events {
            match event {
                FeedEvent::Put(id, user) => {
                    if is_recent && node.directory.limits(id).is_none() {
                        note(id, &user, true);
                    }
                    node.directory.put(id, &user, &mut change);
                    put.push(id);
                }
                FeedEvent::Delete(id, user) => {
                    if is_recent {
                        note(id, &user, false);
                    }
                    node.directory.remove(id, &mut change);
                    deleted.push(id);
                }
                FeedEvent::Kick(id) => kicked.push(id),
                FeedEvent::Node {
                    node: to,
                    op,
                    issued_unix,
                } if to == node.node.id => {
                    let age = adit_net::system::unix_now().0.abs_diff(issued_unix);
                    // A store that has lost changes could repeat old orders.
                    if node.regression().is_none() || age < ORDER_AGE {
                        self.obey(op).await;
                    }
                }
                FeedEvent::Refused {
                    number,
                    target,
                    error,
                } => {
                    node.counters.bad_records.fetch_add(1, Ordering::Relaxed);
                    self.complain(&format!(
                        "the record of {target} in change {number}: {error}"
                    ));
                }
                // The policy of the realm is for those who change users.
                _ => {}
            }
        }
        if !change.is_empty() {
            let node = node.clone();
            let publish = move || node.publish(&change);
            // The keys of many users take a while.
            let _ = spawn_blocking(publish).await;
        }
        announce(&node, news);
        for id in kicked {
            if let Some(user) = node.directory.user(id) {
                node.counters.kicks.fetch_add(1, Ordering::Relaxed);
                node.users.registry().kick(&user.name);
            }
        }
        (put, deleted)
    }

    /// Obeys an order, or passes it on.
    async fn obey(&mut self, op: NodeOp) {
        match op {
            NodeOp::Resync { accept } => {
                info!("an operator has requested to read all users again");
                self.needs_snapshot = true;
                self.accepts_loss |= accept;
            }
            NodeOp::Restore => {
                if let Err(why) = self.restore().await {
                    error!("the users of this node cannot be written to the store: {why}");
                }
            }
            op => {
                // Without the receiver, the node ends.
                if let Err(TrySendError::Full(op)) = self.orders.try_send(op) {
                    warn!("too many operations of this node at once: {op:?} is ignored");
                }
            }
        }
    }

    /// Writes the users of this node to a store that has lost them.
    async fn restore(&self) -> Result<(), StoreError> {
        let node = self.node.clone();
        let (info, table) = {
            let feed = lock(&node.feed);
            let created = adit_net::system::unix_now().0;
            (
                RealmInfo::new(feed.cipher(), created),
                feed.to_table(&mut SystemRng),
            )
        };
        let restored = node.store.restore(&info, &table);
        let number = node.call(StoreCall::Restore, restored).await?;
        info!(
            "{} users were written to the store, as change {number}",
            table.users.len()
        );
        Ok(())
    }

    fn complain(&mut self, why: &str) {
        let is_due = self
            .complained
            .is_none_or(|last| last.elapsed() >= COMPLAINT_INTERVAL);
        if is_due {
            self.complained = Some(Instant::now());
            warn!("{why}; the user stays as before");
        }
    }

    /// Lets further changes arrive, which are applied together: each application visits all users.
    async fn settle(&self) {
        let thousands = u32::try_from(self.node.directory.len() / 1000).unwrap_or(u32::MAX);
        sleep(
            SETTLE_PER_THOUSAND
                .saturating_mul(thousands)
                .min(MAX_SETTLE),
        )
        .await;
    }
}

/// Passes changes of users on, if anybody wants to hear of them.
fn announce(node: &Shared, news: Vec<UserChange>) {
    let listener = lock(&node.user_changes);
    if let Some(sender) = listener.as_ref().filter(|_| !news.is_empty())
        && let Err(TrySendError::Full(news)) = sender.try_send(news)
    {
        warn!(
            "too many changes of users at once: {} are not announced",
            news.len()
        );
    }
}

/// Fills a directory with the users of a feed.
pub(crate) fn load_directory(node: &Shared) {
    let mut change = DirectoryChange::default();
    {
        let feed: std::sync::MutexGuard<'_, Feed> = lock(&node.feed);
        node.directory.reserve(feed.len());
        for (id, user) in feed.packed_users() {
            node.directory.put(id, user, &mut change);
        }
    }
    node.publish(&change);
}
