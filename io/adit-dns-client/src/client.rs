//! A client of several servers.

mod families;
mod health;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adit_dns::{Answer, Cache, CacheLimits, CachedAnswer, RecordType, ResponseCode, UpstreamQuery};
use adit_net::names::{self, LookupLimiter, LookupOrigin, LookupPermit, LookupSlot};
use adit_net::system::{self, ThreadRng};
use adit_wire::Entropy;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::debug;

pub use self::families::look_up_families;
use self::health::Health;
use crate::error::{LookupError, ServerError};
use crate::link::ServerLink;
use crate::path::DnsPath;
use crate::server::DnsServer;
use crate::tls::TrustedRoots;

/// Maximum duration of a lookup, including the time it waits for others.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(5);
/// Time limit of one server, which may have to be connected to through a slow path; others are queried long before.
const SERVER_TIMEOUT: Duration = Duration::from_secs(4);
/// Time after which the next server is queried as well.
const NEXT_SERVER_AFTER: Duration = Duration::from_millis(900);

/// A client of one or more DNS servers, with a cache.
///
/// Servers are queried in order: the next one when one fails, or as well when it has not answered within 0.9 s. The
/// first answer about the name counts. A server that fails is queried last for a while, which grows from 1 s to
/// 60 s. Concurrent lookups of one name share one query. Clones share servers, cache and limits.
#[derive(Debug, Clone)]
pub struct DnsClient(Arc<Inner>);

struct Inner {
    servers: Vec<ServerState>,
    path: Arc<dyn DnsPath>,
    cache: Option<Mutex<Cache>>,
    limiter: Arc<LookupLimiter>,
    running: Mutex<RunningLookups>,
    lookups: AtomicU64,
    hits: AtomicU64,
}

struct ServerState {
    server: DnsServer,
    /// `None` for the resolver of the system.
    link: Option<ServerLink>,
    health: Mutex<Health>,
    queries: AtomicU64,
    failures: AtomicU64,
}

/// Lookups with waiters, each with its number.
#[derive(Debug, Default)]
struct RunningLookups {
    by_question: HashMap<(Box<str>, RecordType), (u64, Weak<RunningLookup>)>,
    /// The number of the latest lookup.
    last_number: u64,
}

type Outcome = Result<Arc<Answer>, LookupError>;

/// A running lookup; it is aborted when the last waiter drops it.
#[derive(Debug)]
struct RunningLookup {
    outcome: watch::Receiver<Option<Outcome>>,
    task: AbortHandle,
}

impl Drop for RunningLookup {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The outcome of starting a lookup.
enum StartedLookup {
    Known(CachedAnswer),
    Running(Arc<RunningLookup>),
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

/// The counters of lookups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupCounts {
    /// The number of lookups.
    pub lookups: u64,
    /// The number of those that the cache has answered.
    pub hits: u64,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(|s| s.server.to_string()).collect();
        f.debug_struct("DnsClient")
            .field("servers", &servers)
            .finish_non_exhaustive()
    }
}

impl DnsClient {
    /// Creates a client of these servers, which are reached through `path`. Nothing is sent before the first lookup.
    /// Without `cache`, no answer is kept.
    #[must_use]
    pub fn new(
        servers: Vec<DnsServer>,
        path: Arc<dyn DnsPath>,
        cache: Option<CacheLimits>,
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
        Self(Arc::new(Inner {
            servers: servers.collect(),
            path,
            cache: cache.map(|limits| Mutex::new(Cache::new(limits))),
            limiter: Arc::default(),
            running: Mutex::default(),
            lookups: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        }))
    }

    /// Returns the cached answer. The name is in lower-case ASCII without the dot at its end.
    #[must_use]
    pub fn cached(&self, name: &str, record_type: RecordType) -> Option<CachedAnswer> {
        let found = self.0.cached(name, record_type)?;
        self.0.lookups.fetch_add(1, Ordering::Relaxed);
        self.0.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// Returns the answer about a name, from the cache or from a server: records, none of this type, or that the
    /// name does not exist. The name is in lower-case ASCII without the dot at its end.
    ///
    /// # Errors
    /// No server answers about the name within 5 s, or too many lookups of `origin` are waiting.
    ///
    /// # Cancel safety
    /// Cancel safe. The lookup ends with its last caller.
    pub async fn look_up(
        &self,
        name: &str,
        record_type: RecordType,
        origin: LookupOrigin,
    ) -> Result<CachedAnswer, LookupError> {
        if let Some(found) = self.cached(name, record_type) {
            return Ok(found);
        }
        self.0.lookups.fetch_add(1, Ordering::Relaxed);
        let limiter = &self.0.limiter;
        let slot = limiter
            .reserve_slot(origin)
            .map_err(|_| LookupError::TooMany)?;
        let until = Instant::now() + LOOKUP_DEADLINE;
        let starting = self.join_or_start(&slot, name, record_type, origin);
        let lookup = match timeout_at(until, starting).await {
            Ok(StartedLookup::Known(found)) => return Ok(found),
            Ok(StartedLookup::Running(lookup)) => lookup,
            Err(_) => return Err(LookupError::TooMany),
        };
        let mut outcome = lookup.outcome.clone();
        let Ok(outcome) = timeout_at(until, outcome.wait_for(Option::is_some)).await else {
            return Err(LookupError::NoAnswer(self.0.late_servers().into()));
        };
        match outcome.as_deref() {
            Ok(Some(Ok(answer))) => Ok(CachedAnswer {
                answer: answer.clone(),
                age: Duration::ZERO,
            }),
            Ok(Some(Err(why))) => Err(why.clone()),
            Ok(None) | Err(_) => Err(LookupError::Aborted),
        }
    }

    /// Resolves a name to its addresses with this port, both families at the same time ([`look_up_families`]), the
    /// better reachable one first.
    ///
    /// # Errors
    /// As [`look_up`](Self::look_up); also if the name has no address. If only one family fails, the addresses of the
    /// other are returned.
    pub async fn resolve(
        &self,
        name: &str,
        port: u16,
        origin: LookupOrigin,
    ) -> Result<Vec<SocketAddr>, LookupError> {
        let answers = look_up_families(
            self.look_up(name, RecordType::A, origin),
            self.look_up(name, RecordType::AAAA, origin),
        );
        let (mut found, mut failure, mut exists) = (Vec::new(), None, true);
        for answer in answers.await {
            match answer {
                Ok(CachedAnswer { answer, .. }) => {
                    exists &= answer.code() != ResponseCode::NXDomain;
                    let ips = answer.addresses().iter();
                    found.extend(ips.map(|ip| SocketAddr::new(*ip, port)));
                }
                Err(why) => failure = Some(why),
            }
        }
        names::sort_by_family(&mut found);
        match failure {
            _ if !found.is_empty() => Ok(found),
            Some(why) => Err(why),
            None => Err(LookupError::NoAddress {
                name: name.into(),
                exists,
            }),
        }
    }

    /// Drops all cached answers, for example in another network.
    pub fn clear_cache(&self) {
        if let Some(cache) = &self.0.cache {
            lock(cache).clear();
        }
    }

    /// Returns the counters of the servers, in their order.
    #[must_use]
    pub fn server_counts(&self) -> Vec<ServerCounts> {
        let now = Instant::now();
        let count = |state: &ServerState| ServerCounts {
            server: state.server.to_string(),
            queries: state.queries.load(Ordering::Relaxed),
            failures: state.failures.load(Ordering::Relaxed),
            paused: lock(&state.health).is_paused(now),
        };
        self.0.servers.iter().map(count).collect()
    }

    /// Returns the counters of lookups.
    #[must_use]
    pub fn lookup_counts(&self) -> LookupCounts {
        LookupCounts {
            lookups: self.0.lookups.load(Ordering::Relaxed),
            hits: self.0.hits.load(Ordering::Relaxed),
        }
    }

    /// Joins the lookup of a name, or starts it once the limits allow it.
    async fn join_or_start(
        &self,
        slot: &LookupSlot,
        name: &str,
        record_type: RecordType,
        origin: LookupOrigin,
    ) -> StartedLookup {
        let question = (Box::from(name), record_type);
        loop {
            {
                let mut running = lock(&self.0.running);
                let known = running.by_question.get(&question);
                if let Some(lookup) = known.and_then(|(_, lookup)| lookup.upgrade()) {
                    return StartedLookup::Running(lookup);
                }
                // The lookup of another may have ended meanwhile.
                if let Some(found) = self.0.cached(name, record_type) {
                    return StartedLookup::Known(found);
                }
                if let Some(permit) = slot.try_start(1) {
                    running.last_number += 1;
                    let number = running.last_number;
                    let lookup = self.spawn_lookup(&question, number, origin, permit);
                    let entry = (number, Arc::downgrade(&lookup));
                    running.by_question.insert(question, entry);
                    return StartedLookup::Running(lookup);
                }
            }
            slot.wait_for_release().await;
        }
    }

    fn spawn_lookup(
        &self,
        question: &(Box<str>, RecordType),
        number: u64,
        origin: LookupOrigin,
        permit: LookupPermit,
    ) -> Arc<RunningLookup> {
        let (report, outcome) = watch::channel(None);
        // Removes the entry however the task ends.
        let entry = PendingEntry {
            inner: self.0.clone(),
            question: question.clone(),
            number,
        };
        let task = tokio::spawn(async move {
            let (name, record_type) = &entry.question;
            let inner = &entry.inner;
            let outcome = inner.ask_servers(name, *record_type, origin).await;
            if let (Ok(answer), Some(cache)) = (&outcome, &inner.cache) {
                let now = system::monotonic_now();
                lock(cache).insert(name, *record_type, answer.clone(), now);
            }
            drop(permit);
            drop(entry);
            // Without waiters, the outcome is in the cache.
            let _ = report.send(Some(outcome));
        });
        Arc::new(RunningLookup {
            outcome,
            task: task.abort_handle(),
        })
    }
}

/// The entry of a running lookup, removed when dropped.
struct PendingEntry {
    inner: Arc<Inner>,
    question: (Box<str>, RecordType),
    number: u64,
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        let mut running = lock(&self.inner.running);
        // An aborted lookup may have a successor, whose entry stays.
        let entry = running.by_question.get(&self.question);
        if entry.is_some_and(|(number, _)| *number == self.number) {
            running.by_question.remove(&self.question);
        }
    }
}

impl Inner {
    fn cached(&self, name: &str, record_type: RecordType) -> Option<CachedAnswer> {
        let cache = self.cache.as_ref()?;
        lock(cache).get(name, record_type, system::monotonic_now())
    }

    /// Returns an error message for servers that have not answered.
    fn late_servers(&self) -> String {
        let late = |state: &ServerState| format!("{}: no answer in time", state.server);
        let all: Vec<String> = self.servers.iter().map(late).collect();
        all.join("; ")
    }

    /// Queries the servers until one answers about the name.
    async fn ask_servers(
        self: &Arc<Self>,
        name: &str,
        record_type: RecordType,
        origin: LookupOrigin,
    ) -> Outcome {
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
                let (inner, question) = (self.clone(), question.clone());
                let ask = async move { (at, inner.ask_server(at, &question, origin).await) };
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
            let Some(state) = self.servers.get(at) else {
                continue;
            };
            match outcome {
                Ok(answer) if answer.is_about_the_name() => {
                    lock(&state.health).succeeded();
                    // Those that were queried before it were late.
                    for late in late.iter().filter_map(|at| self.servers.get(*at)) {
                        late.failed();
                        if let Some(link) = &late.link {
                            link.reset();
                        }
                    }
                    return Ok(Arc::new(answer));
                }
                Ok(answer) => {
                    // It works, but not for this name.
                    state.failures.fetch_add(1, Ordering::Relaxed);
                    let why = ServerError::Code(answer.code());
                    reasons.push(format!("{}: {why}", state.server));
                }
                Err(why) => {
                    state.failed();
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
        let Some(state) = self.servers.get(at) else {
            return Err(ServerError::Path(std::io::ErrorKind::NotFound.into()));
        };
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
        let mut order: Vec<_> = self.servers.iter().map(pause).enumerate().collect();
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

/// Locks a state. All of them are consistent even after a panic of another thread.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
