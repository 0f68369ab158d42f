//! The documents of the running process, once a second, and the requests to it.

use std::io::ErrorKind;
use std::time::Duration;

use adit_admin::api::{ApiClient, ApiRequestError, EventReader};
use adit_cli::{Failure, FailureCode};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::live_view::LiveFeed;
use super::model::{Action, Model, Tab};
use crate::command::process_documents::{AccountList, GroupList, Overview, SessionList};
use crate::command::running_process::{is_unknown_path, to_figures_failure};

/// Time between two requests for the list of a tab.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of the first event, which the process sends at once.
const FIRST_EVENT: Duration = Duration::from_secs(5);
/// Number of sessions in a list: the newest.
const MAX_SESSIONS: usize = 1000;
/// Number of attempts to reach a process whose socket is closed, before it has ended: a service manager that restarts it
/// needs a moment.
const ATTEMPTS: u32 = 3;
/// Number of updates that may wait to be drawn.
const QUEUE: usize = 16;

/// News of the running process.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Update {
    /// The totals, once a second.
    Overview(Box<Overview>),
    /// The lists of tabs. A process that has no users' accounts answers with none.
    Sessions(SessionList),
    Accounts(Option<AccountList>),
    Groups(GroupList),
    /// An action was performed, or refused.
    Performed(Result<String, String>),
}

/// An update, or `None` after the process has ended.
type News = Option<Update>;

/// The tasks that ask the process, and what they report.
#[derive(Debug)]
pub(super) struct Feed {
    client: ApiClient,
    first: Box<Overview>,
    updates: mpsc::Receiver<News>,
    sender: mpsc::Sender<News>,
    tab: watch::Sender<Tab>,
    tasks: JoinSet<()>,
}

impl Feed {
    /// Opens the stream of events, and waits for the first one.
    pub(super) async fn open(client: ApiClient) -> Result<Self, Failure> {
        let mut events = client.events("/events").await.map_err(to_figures_failure)?;
        let first = timeout(FIRST_EVENT, next_overview(&mut events)).await;
        let first = first.ok().flatten().ok_or_else(|| {
            let at = client.address();
            let what = format!("the management API at {at} sends no figures");
            Failure::new(FailureCode::Network, what)
        })?;
        let (sender, updates) = mpsc::channel(QUEUE);
        let (tab, tab_reader) = watch::channel(Tab::Sessions);
        let mut tasks = JoinSet::new();
        tasks.spawn(follow_events(client.clone(), events, sender.clone()));
        tasks.spawn(follow_tab(client.clone(), tab_reader, sender.clone()));
        Ok(Self {
            client,
            first,
            updates,
            sender,
            tab,
            tasks,
        })
    }

    /// Returns the first totals.
    pub(super) fn first(&self) -> Overview {
        (*self.first).clone()
    }
}

impl LiveFeed for Feed {
    type Model = Model;

    async fn next_update(&mut self) -> Result<Update, Failure> {
        let update = self.updates.recv().await.flatten();
        update.ok_or_else(|| Failure::new(FailureCode::Network, "the process has ended"))
    }

    fn follow(&mut self, model: &Model) {
        let tab = model.tab();
        self.tab.send_if_modified(|now| {
            let changed = *now != tab;
            *now = tab;
            changed
        });
    }

    fn perform(&mut self, action: Action) {
        let (client, sender, tab) = (self.client.clone(), self.sender.clone(), self.tab.clone());
        self.tasks.spawn(async move {
            let done = perform(&client, &action).await;
            let done = done.map_err(|why| why.to_string());
            let _ = sender.send(Some(Update::Performed(done))).await;
            // The list has changed.
            tab.send_modify(|_| {});
        });
    }
}

async fn perform(client: &ApiClient, action: &Action) -> Result<String, ApiRequestError> {
    match action {
        Action::EndSession(id) => {
            client.delete(&format!("/sessions/{id}")).await?;
            Ok(format!("ended session {id}"))
        }
        Action::SelectMember { group, member } => {
            let path = format!("/groups/{}", path_segment(group));
            let body = json!({ "selected": member });
            client.post::<serde_json::Value>(&path, &body).await?;
            Ok(format!("{group} uses {member}"))
        }
    }
}

/// Encodes a name for a path.
fn path_segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.bytes().map(encode).collect()
}

/// Returns the next totals; `None` at the end of the events.
async fn next_overview(events: &mut EventReader) -> Option<Box<Overview>> {
    loop {
        let event = events.next_event().await.ok()?;
        if event.kind == "overview"
            && let Ok(overview) = serde_json::from_str(&event.data)
        {
            return Some(Box::new(overview));
        }
    }
}

/// Reports the totals of each event. If the stream ends, another one is opened: the process may have handed over to a new
/// one.
async fn follow_events(client: ApiClient, mut events: EventReader, sender: mpsc::Sender<News>) {
    let mut refusals = 0;
    loop {
        while let Some(overview) = next_overview(&mut events).await {
            refusals = 0;
            let update = Update::Overview(overview);
            if sender.send(Some(update)).await.is_err() {
                return;
            }
        }
        events = loop {
            match client.events("/events").await {
                Ok(events) => break events,
                Err(why) if is_closed(&why) => {
                    refusals += 1;
                    if refusals >= ATTEMPTS {
                        let _ = sender.send(None).await;
                        return;
                    }
                }
                // It does not answer, which the totals show by their absence.
                Err(_) => {}
            }
            sleep(INTERVAL / 2).await;
        };
    }
}

/// Returns true if nothing listens at the address of the API.
fn is_closed(why: &ApiRequestError) -> bool {
    match why {
        ApiRequestError::Connect { why, .. } => matches!(
            why.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::NotFound
        ),
        _ => false,
    }
}

/// Reports the list of the tab that is shown, once a second and as soon as another one is shown.
async fn follow_tab(client: ApiClient, mut tab: watch::Receiver<Tab>, sender: mpsc::Sender<News>) {
    loop {
        let shown = *tab.borrow_and_update();
        let update = tokio::select! {
            update = read_tab(&client, shown) => update,
            changed = tab.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        if update.is_some() && sender.send(update).await.is_err() {
            return;
        }
        tokio::select! {
            () = sleep(INTERVAL) => {}
            changed = tab.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

/// Returns the list of a tab; `None` if the totals contain it, or if there is no answer, which the totals show too.
async fn read_tab(client: &ApiClient, tab: Tab) -> Option<Update> {
    match tab {
        Tab::Sessions => {
            let list = client.get(&format!("/sessions?limit={MAX_SESSIONS}")).await;
            list.ok().map(Update::Sessions)
        }
        Tab::Users => match client.get("/accounts").await {
            Ok(list) => Some(Update::Accounts(Some(list))),
            Err(why) if is_unknown_path(&why) => Some(Update::Accounts(None)),
            Err(_) => None,
        },
        Tab::Groups => client.get("/groups").await.ok().map(Update::Groups),
        Tab::Listeners | Tab::Kcp => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_for_paths() {
        assert_eq!(path_segment("home.1-a_b"), "home.1-a_b");
        assert_eq!(path_segment("a/b ?ü"), "a%2Fb%20%3F%C3%BC");
    }
}
