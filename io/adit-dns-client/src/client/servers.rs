//! The servers of a client: which of them are queried, and when.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adit_dns::{Answer, RecordType, UpstreamQuery};
use adit_net::names::LookupOrigin;
use adit_net::system::ThreadRng;
use adit_wire::Entropy;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use super::health::Health;
use super::lock;
use crate::error::{LookupError, ServerError};
use crate::link::ServerLink;
use crate::path::DnsPath;
use crate::server::DnsServer;
use crate::tls::TrustedRoots;

/// Time limit of one server, which may have to be connected to through a slow path; others are queried long before.
const SERVER_TIMEOUT: Duration = Duration::from_secs(4);
/// Time after which the next server is queried as well.
const NEXT_SERVER_AFTER: Duration = Duration::from_millis(900);

/// The servers of a client.
pub(super) struct Servers {
    all: Vec<ServerState>,
    path: Arc<dyn DnsPath>,
}

struct ServerState {
    server: DnsServer,
    /// `None` for the resolver of the system.
    link: Option<ServerLink>,
    health: Mutex<Health>,
    queries: AtomicU64,
    failures: AtomicU64,
}

/// The counters of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCounts {
    /// The server, without its path.
    pub server: String,
    /// The number of queries.
    pub queries: u64,
    /// The number of queries without an answer about the name.
    pub failures: u64,
    /// True while the server is queried last, because it has failed.
    pub paused: bool,
}

/// The answer of a server about a name.
pub(super) struct FoundAnswer {
    pub(super) answer: Arc<Answer>,
    /// True if this server had failed before.
    pub(super) has_recovered: bool,
}

impl Servers {
    pub(super) fn new(
        servers: Vec<DnsServer>,
        path: Arc<dyn DnsPath>,
        roots: &TrustedRoots,
    ) -> Self {
        let servers = servers.into_iter().map(|server| ServerState {
            link: match &server {
                DnsServer::System => None,
                DnsServer::Remote(remote) => {
                    Some(ServerLink::new(remote.clone(), path.clone(), roots.clone()))
                }
            },
            server,
            health: Mutex::default(),
            queries: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        });
        Self {
            all: servers.collect(),
            path,
        }
    }

    /// Returns the counters of the servers, in their order.
    pub(super) fn counts(&self) -> Vec<ServerCounts> {
        let now = Instant::now();
        let count = |state: &ServerState| ServerCounts {
            server: state.server.to_string(),
            queries: state.queries.load(Ordering::Relaxed),
            failures: state.failures.load(Ordering::Relaxed),
            paused: lock(&state.health).is_paused(now),
        };
        self.all.iter().map(count).collect()
    }

    /// Returns the names of the servers.
    pub(super) fn names(&self) -> Vec<String> {
        self.all.iter().map(|s| s.server.to_string()).collect()
    }

    /// Returns the error of a lookup that no server has answered in time.
    pub(super) fn late_error(&self) -> LookupError {
        let late = |state: &ServerState| format!("{}: no answer in time", state.server);
        let all: Vec<String> = self.all.iter().map(late).collect();
        LookupError::NoAnswer(all.join("; ").into())
    }

    /// Queries the servers until one answers about the name.
    pub(super) async fn ask(
        self: &Arc<Self>,
        name: &str,
        record_type: RecordType,
        origin: LookupOrigin,
    ) -> Result<FoundAnswer, LookupError> {
        let mut id = [0; 2];
        ThreadRng.fill(&mut id);
        let query = UpstreamQuery::new(name, record_type, u16::from_be_bytes(id))?;
        let question = Arc::new((name.to_owned(), query));
        let mut rest = self.order().into_iter();
        let mut running: JoinSet<(usize, Result<Answer, ServerError>)> = JoinSet::new();
        let mut waiting = Vec::new();
        let mut reasons: Vec<String> = Vec::new();
        loop {
            if let Some(at) = rest.next() {
                waiting.push(at);
                let (servers, question) = (self.clone(), question.clone());
                let ask = async move { (at, servers.ask_server(at, &question, origin).await) };
                running.spawn(origin.scope(ask));
            } else if running.is_empty() {
                return Err(LookupError::NoAnswer(reasons.join("; ").into()));
            }
            let next = Instant::now() + NEXT_SERVER_AFTER;
            let has_next = rest.len() > 0;
            let done = tokio::select! {
                done = running.join_next() => done,
                () = sleep_until(next), if has_next => continue,
            };
            // The set is not empty, and a task that panicked has no answer.
            let Some(Ok((at, outcome))) = done else {
                continue;
            };
            let position = waiting.iter().position(|other| *other == at);
            let earlier = position.and_then(|position| waiting.get(..position));
            let late: Vec<usize> = earlier.unwrap_or_default().to_vec();
            waiting.retain(|other| *other != at);
            let Some(state) = self.all.get(at) else {
                continue;
            };
            match outcome {
                Ok(answer) if answer.is_about_the_name() => {
                    let has_recovered = lock(&state.health).succeeded();
                    // Those that were queried before it were late.
                    for late in late.iter().filter_map(|at| self.all.get(*at)) {
                        late.failed();
                        if let Some(link) = &late.link {
                            link.reset();
                        }
                    }
                    return Ok(FoundAnswer {
                        answer: Arc::new(answer),
                        has_recovered,
                    });
                }
                Ok(answer) => {
                    // It works, but not for this name.
                    state.failures.fetch_add(1, Ordering::Relaxed);
                    let why = ServerError::Code(answer.code());
                    reasons.push(format!("{}: {why}", state.server));
                }
                Err(ServerError::Unreachable(why)) => {
                    reasons.push(format!("{}: {why}", state.server));
                }
                Err(why) => {
                    state.failed();
                    if why.is_about_the_path() {
                        let text = why.to_string().into();
                        lock(&state.health).set_unreachable(text, Instant::now());
                    }
                    debug!(server = %state.server, name, "no answer: {why}");
                    reasons.push(format!("{}: {why}", state.server));
                }
            }
        }
    }

    async fn ask_server(
        &self,
        at: usize,
        question: &(String, UpstreamQuery),
        origin: LookupOrigin,
    ) -> Result<Answer, ServerError> {
        let (name, query) = question;
        let Some(state) = self.all.get(at) else {
            return Err(ServerError::Path(std::io::ErrorKind::NotFound.into()));
        };
        if let Some(why) = lock(&state.health).unreachable(Instant::now()) {
            return Err(ServerError::Unreachable(why));
        }
        state.queries.fetch_add(1, Ordering::Relaxed);
        let asked = async {
            match &state.link {
                Some(link) => link.ask(query).await,
                None => {
                    let found = self
                        .path
                        .look_up_by_system(name, query.record_type(), origin);
                    found.await.map_err(ServerError::Path)
                }
            }
        };
        match timeout(SERVER_TIMEOUT, asked).await {
            Ok(outcome) => outcome,
            Err(_) => {
                // The connection may be dead, and nothing else would show it.
                if let Some(link) = &state.link {
                    link.reset();
                }
                Err(ServerError::Late(SERVER_TIMEOUT))
            }
        }
    }

    /// Returns the servers in the order in which they are queried: those that have failed are last, the one whose
    /// pause ends first before the others.
    fn order(&self) -> Vec<usize> {
        let now = Instant::now();
        let pause = |state: &ServerState| lock(&state.health).paused_until(now);
        let mut order: Vec<_> = self.all.iter().map(pause).enumerate().collect();
        order.sort_by_key(|(_, until)| *until);
        order.into_iter().map(|(at, _)| at).collect()
    }
}

impl ServerState {
    /// Counts a failure of the server itself.
    fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        lock(&self.health).failed(Instant::now());
    }
}
