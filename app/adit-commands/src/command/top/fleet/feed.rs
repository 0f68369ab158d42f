//! The nodes, once a second, and the requests to them.

use std::sync::Arc;
use std::time::Duration;

use adit_cli::Failure;
use adit_fleet::NodeView;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::model::{Action, Model};
use crate::command::fleet::{Realm, set_drain};
use crate::command::top::live_view::LiveFeed;

/// Time between two questions.
const INTERVAL: Duration = Duration::from_secs(1);
/// Number of updates that may wait to be drawn.
const QUEUE: usize = 16;

/// News of the realm.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Update {
    /// All nodes.
    Nodes(Vec<NodeView>),
    /// The store server did not answer.
    Failed(String),
    /// An action was performed, or refused.
    Performed(Result<String, String>),
}

/// The tasks that ask the store server, and what they report.
pub(super) struct Feed {
    realm: Arc<Realm>,
    first: Vec<NodeView>,
    updates: mpsc::Receiver<Update>,
    sender: mpsc::Sender<Update>,
    tasks: JoinSet<()>,
}

impl Feed {
    /// Reads the nodes, and starts to follow them.
    pub(super) async fn open(realm: Realm) -> Result<Self, Failure> {
        let realm = Arc::new(realm);
        let first = realm.nodes().await?;
        let (sender, updates) = mpsc::channel(QUEUE);
        let mut tasks = JoinSet::new();
        tasks.spawn(follow(realm.clone(), sender.clone()));
        Ok(Self {
            realm,
            first,
            updates,
            sender,
            tasks,
        })
    }

    /// Returns the name of the realm and the address of its server.
    pub(super) fn title(&self) -> String {
        self.realm.shown()
    }

    /// Returns the first nodes.
    pub(super) fn first(&self) -> Vec<NodeView> {
        self.first.clone()
    }
}

impl LiveFeed for Feed {
    type Model = Model;

    async fn next_update(&mut self) -> Result<Update, Failure> {
        match self.updates.recv().await {
            Some(update) => Ok(update),
            // There is a sender in this value.
            None => std::future::pending().await,
        }
    }

    fn perform(&mut self, action: Action) {
        let (realm, sender) = (self.realm.clone(), self.sender.clone());
        self.tasks.spawn(async move {
            let done = set_drain(&realm, action.node, action.is_drain).await;
            let done = match done {
                Ok(()) if action.is_drain => Ok(format!("{} drains", action.name)),
                Ok(()) => Ok(format!("{} is in service", action.name)),
                Err(why) => Err(why.to_log_line()),
            };
            let _ = sender.send(Update::Performed(done)).await;
        });
    }
}

async fn follow(realm: Arc<Realm>, sender: mpsc::Sender<Update>) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let update = match realm.nodes().await {
            Ok(nodes) => Update::Nodes(nodes),
            Err(why) => Update::Failed(why.to_log_line()),
        };
        if sender.send(update).await.is_err() {
            return;
        }
    }
}
