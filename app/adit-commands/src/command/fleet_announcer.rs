//! Events of a fleet, for their receivers: each event is sent by one of the nodes that see it.

use std::sync::Arc;
use std::time::Duration;

use adit_admin::webhook::WebhookHub;
use adit_config::WebhookEventKind;
use adit_fleet::{
    ANNOUNCEMENT_TIME, NodeChange, NodeWatch, Store, StoreError, UserChange, claim_events,
    claim_unannounced,
};
use adit_fleet_node::NodeControl;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::warn;

/// Interval at which nodes are looked at.
const NODE_CHECK: Duration = Duration::from_secs(5);
/// Time after an outage of the store in which nodes report again.
const AFTER_OUTAGE: Duration = Duration::from_secs(30);
/// Time after which the queues of receivers are on the disk.
const STORED: Duration = Duration::from_secs(2);
/// Maximum number of calls to the store about an event that has been seen.
const MAX_CALLS: u32 = 3;
/// Maximum number of events that wait for another look: 100,000 users may be added at once.
const MAX_WAITING: usize = 20_000;

/// Announces nodes that stop reporting, or report again, and users who are added and removed, to receivers of events,
/// until the returned set is dropped.
pub(super) fn announce_changes(node: &NodeControl, hub: &WebhookHub) -> JoinSet<()> {
    let announcer = || Announcer {
        store: node.store().clone(),
        hub: hub.clone(),
        waiting: Vec::new(),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(watch_nodes(announcer()));
    tasks.spawn(watch_users(announcer(), node.watch_users()));
    tasks
}

async fn watch_users(mut announcer: Announcer, mut news: mpsc::Receiver<Vec<UserChange>>) {
    loop {
        let due = announcer.next_look();
        tokio::select! {
            changes = news.recv() => match changes {
                Some(changes) => announcer.announce(changes.iter().map(of_user).collect()).await,
                None => return,
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => announcer.look_again().await,
        }
    }
}

async fn watch_nodes(mut announcer: Announcer) {
    let kinds = [WebhookEventKind::NodeDown, WebhookEventKind::NodeUp];
    let mut watch = NodeWatch::default();
    loop {
        sleep(NODE_CHECK).await;
        announcer.look_again().await;
        if !announcer.hub.wants(&kinds) {
            continue;
        }
        // Reports are missing that were sent during an outage: nothing follows from that.
        let Ok(nodes) = announcer.store.nodes().await else {
            watch = NodeWatch::default();
            sleep(AFTER_OUTAGE).await;
            continue;
        };
        let changes = watch.observe(&nodes);
        announcer
            .announce(changes.iter().map(of_node).collect())
            .await;
    }
}

/// An event that other nodes see too.
struct FleetEvent {
    /// The name by which nodes claim it.
    name: String,
    kind: WebhookEventKind,
    data: Value,
}

fn of_user(change: &UserChange) -> FleetEvent {
    FleetEvent {
        name: change.event_name(),
        kind: match change.is_added {
            true => WebhookEventKind::UserAdded,
            false => WebhookEventKind::UserRemoved,
        },
        data: json!({ "user": change.name }),
    }
}

fn of_node(change: &NodeChange) -> FleetEvent {
    FleetEvent {
        name: change.event_name(),
        kind: match change.is_up {
            true => WebhookEventKind::NodeUp,
            false => WebhookEventKind::NodeDown,
        },
        data: json!({ "node": change.name, "id": change.id }),
    }
}

/// An event that is looked at again.
struct WaitingEvent {
    event: FleetEvent,
    due: Instant,
    /// True if this node has sent it.
    is_sent: bool,
    /// Number of calls to the store so far.
    calls: u32,
}

/// Claims events, and sends those of this node.
struct Announcer {
    store: Arc<dyn Store>,
    hub: WebhookHub,
    waiting: Vec<WaitingEvent>,
}

impl Announcer {
    /// Announces events that all nodes see. What no receiver of this node wants is left to other nodes.
    async fn announce(&mut self, mut events: Vec<FleetEvent>) {
        events.retain(|event| self.hub.wants(&[event.kind]));
        if events.is_empty() {
            return;
        }
        let names: Vec<String> = events.iter().map(|event| event.name.clone()).collect();
        let claimed = async { claim_events(&*self.store, self.unix().await?, &names).await };
        let claimed = claimed.await.unwrap_or_else(|why: StoreError| {
            warn!("{} events of the fleet are late: {why}", names.len());
            Vec::new()
        });
        let now = Instant::now();
        let ours = claimed.into_iter().chain(std::iter::repeat(false));
        for (event, is_sent) in events.into_iter().zip(ours) {
            if is_sent {
                self.hub.emit(event.kind, &event.data);
            }
            self.wait(WaitingEvent {
                event,
                due: now + if is_sent { STORED } else { ANNOUNCEMENT_TIME },
                is_sent,
                calls: 1,
            });
        }
    }

    /// Returns the store's clock, in seconds since 1970.
    async fn unix(&self) -> Result<u64, StoreError> {
        Ok(self.store.time().await? / 1000)
    }

    fn wait(&mut self, event: WaitingEvent) {
        // Others look at it too.
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push(event);
        }
    }

    /// Returns the time of the next look.
    fn next_look(&self) -> Option<Instant> {
        self.waiting.iter().map(|event| event.due).min()
    }

    /// Marks events that this node has sent, and sends those that the node that has claimed them has not.
    async fn look_again(&mut self) {
        let now = Instant::now();
        let due: Vec<_> = self
            .waiting
            .extract_if(.., |event| event.due <= now)
            .collect();
        if due.is_empty() {
            return;
        }
        let names: Vec<String> = due.iter().map(|due| due.event.name.clone()).collect();
        let claimed = async { claim_unannounced(&*self.store, self.unix().await?, &names).await };
        match claimed.await {
            Ok(ours) => {
                let ours = due.into_iter().zip(ours);
                for (due, _) in ours.filter(|(due, is_new)| *is_new && !due.is_sent) {
                    self.hub.emit(due.event.kind, &due.event.data);
                }
            }
            Err(why) => {
                let (lost, again): (Vec<_>, Vec<_>) =
                    due.into_iter().partition(|due| due.calls >= MAX_CALLS);
                if lost.iter().any(|due| !due.is_sent) {
                    warn!(
                        "{} events of the fleet may not be announced: {why}",
                        lost.len()
                    );
                }
                for due in again {
                    self.wait(WaitingEvent {
                        due: now + ANNOUNCEMENT_TIME,
                        calls: due.calls + 1,
                        ..due
                    });
                }
            }
        }
    }
}
