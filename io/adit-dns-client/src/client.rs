//! A client of several servers.

mod families;
mod health;
mod servers;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adit_dns::{Answer, Cache, CacheLimits, CachedAnswer, FailureCache, RecordType, ResponseCode};
use adit_net::names::{self, LookupLimiter, LookupOrigin, LookupPermit, LookupSlot};
use adit_net::system;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

pub use self::families::look_up_families;
pub use self::servers::ServerCounts;
use self::servers::{FoundAnswer, Servers};
use crate::error::LookupError;
use crate::path::DnsPath;
use crate::server::DnsServer;
use crate::tls::TrustedRoots;

/// Maximum duration of a lookup, including the time it waits for others.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(5);
/// Time after which a lookup that its callers give up has failed: the servers had time to answer.
const FAILED_AFTER: Duration = Duration::from_secs(4);
/// Maximum number of failures that are kept.
const MAX_FAILURES: usize = 1024;

/// A client of one or more DNS servers, with a cache.
///
/// Servers are queried in order: the next one when one fails, or as well when it has not answered within 0.9 s. The
/// first answer about the name counts. A server that fails is queried last for a while, which grows from 1 s to
/// 60 s. Concurrent lookups of one name share one query. A lookup that fails is not repeated for a while, from 1 s up to
/// 30 s (RFC 9520). Clones share servers, cache and limits.
#[derive(Debug, Clone)]
pub struct DnsClient(Arc<Inner>);

struct Inner {
    servers: Arc<Servers>,
    cache: Option<Mutex<Cache>>,
    failures: Mutex<FailureCache<LookupError>>,
    limiter: Arc<LookupLimiter>,
    running: Mutex<RunningLookups>,
    lookups: AtomicU64,
    hits: AtomicU64,
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
    Known(Result<CachedAnswer, LookupError>),
    Running(Arc<RunningLookup>),
}

/// The counters of lookups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupCounts {
    /// The number of lookups.
    pub lookups: u64,
    /// The number of those that the cache has answered, failures that are kept included.
    pub hits: u64,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DnsClient")
            .field("servers", &self.servers.names())
            .finish_non_exhaustive()
    }
}

impl DnsClient {
    /// Creates a client of these servers, which are reached through `path`. Nothing is sent before the first lookup.
    /// Without `cache`, no answer is kept, but failures are.
    #[must_use]
    pub fn new(
        servers: Vec<DnsServer>,
        path: Arc<dyn DnsPath>,
        cache: Option<CacheLimits>,
        roots: &TrustedRoots,
    ) -> Self {
        Self(Arc::new(Inner {
            servers: Arc::new(Servers::new(servers, path, roots)),
            cache: cache.map(|limits| Mutex::new(Cache::new(limits))),
            failures: Mutex::new(FailureCache::new(MAX_FAILURES)),
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
    /// No server answers about the name within 5 s, this was so a short time ago, or too many lookups of `origin` are
    /// waiting.
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
        if let Some(why) = self.0.recent_failure(name, record_type) {
            self.0.lookups.fetch_add(1, Ordering::Relaxed);
            self.0.hits.fetch_add(1, Ordering::Relaxed);
            return Err(why);
        }
        self.0.lookups.fetch_add(1, Ordering::Relaxed);
        let limiter = &self.0.limiter;
        let slot = limiter
            .reserve_slot(origin)
            .map_err(|_| LookupError::TooMany)?;
        let until = Instant::now() + LOOKUP_DEADLINE;
        let starting = self.join_or_start(&slot, name, record_type, origin);
        let lookup = match timeout_at(until, starting).await {
            Ok(StartedLookup::Known(outcome)) => return outcome,
            Ok(StartedLookup::Running(lookup)) => lookup,
            Err(_) => return Err(LookupError::TooMany),
        };
        let mut outcome = lookup.outcome.clone();
        let Ok(outcome) = timeout_at(until, outcome.wait_for(Option::is_some)).await else {
            return Err(self.0.servers.late_error());
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

    /// Drops all cached answers and failures, for example in another network.
    pub fn clear_cache(&self) {
        if let Some(cache) = &self.0.cache {
            lock(cache).clear();
        }
        lock(&self.0.failures).clear();
    }

    /// Returns the counters of the servers, in their order.
    #[must_use]
    pub fn server_counts(&self) -> Vec<ServerCounts> {
        self.0.servers.counts()
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
                    return StartedLookup::Known(Ok(found));
                }
                if let Some(why) = self.0.recent_failure(name, record_type) {
                    return StartedLookup::Known(Err(why));
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
        let mut entry = PendingEntry {
            inner: self.0.clone(),
            question: question.clone(),
            number,
            since: Instant::now(),
            has_ended: false,
        };
        let task = tokio::spawn(async move {
            let (name, record_type) = &entry.question;
            let inner = &entry.inner;
            let outcome = inner.servers.ask(name, *record_type, origin).await;
            let outcome = inner.keep(name, *record_type, outcome);
            entry.has_ended = true;
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
    since: Instant,
    /// True if its outcome was kept.
    has_ended: bool,
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        if !self.has_ended && self.since.elapsed() >= FAILED_AFTER {
            let (name, record_type) = &self.question;
            let late = Err(self.inner.servers.late_error());
            // Its callers have the same error.
            let _ = self.inner.keep(name, *record_type, late);
        }
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

    /// Returns the reason of a failure that is too recent for another lookup.
    fn recent_failure(&self, name: &str, record_type: RecordType) -> Option<LookupError> {
        lock(&self.failures).get(name, record_type, system::monotonic_now())
    }

    /// Keeps the outcome of a lookup, and returns it for its callers.
    fn keep(
        &self,
        name: &str,
        record_type: RecordType,
        outcome: Result<FoundAnswer, LookupError>,
    ) -> Outcome {
        let now = system::monotonic_now();
        match outcome {
            Ok(found) => {
                let answer = found.answer;
                if let Some(cache) = &self.cache {
                    lock(cache).insert(name, record_type, answer.clone(), now);
                }
                let mut failures = lock(&self.failures);
                failures.remove(name, record_type);
                if found.has_recovered {
                    failures.shorten_pauses();
                }
                Ok(answer)
            }
            Err(why) => {
                if matches!(why, LookupError::NoAnswer(_)) {
                    lock(&self.failures).insert(name, record_type, why.clone(), now);
                }
                Err(why)
            }
        }
    }
}

/// Locks a state. All of them are consistent even after a panic of another thread.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
