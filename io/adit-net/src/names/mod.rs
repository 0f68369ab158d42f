//! Name resolution according to the machine's configuration files, with limits that keep one client from
//! blocking it for others.
//!
//! Queries are sent from here and not by the C library: a lookup ends as soon as it has no waiters,
//! concurrent lookups of one name share one query, and results are cached, failures included. Lookups are counted by
//! [`LookupOrigin`]. Where names come from sources other than `hosts` and DNS (`nsswitch.conf`), the C library is
//! called for those, in threads that are counted in the same way.

mod address_order;
mod c_library;
mod cache;
mod config;
mod hosts;
mod lookup;
mod lookup_limiter;
mod lookup_origin;
mod lookup_result;
mod numeric;
mod platform;
mod query;
// Elsewhere, the system looks up every name.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use self::cache::LookupCache;
use self::config::{ResolverConfig, ResolverFilesVersion};
use self::lookup_result::LookupResult;
use crate::system;

pub use address_order::sort_by_family;
pub use config::{ResolverFiles, is_own_host_name, own_host_name, to_ascii_name};
pub use lookup_limiter::{LookupLimiter, LookupPermit, LookupSlot};
pub use lookup_origin::LookupOrigin;
pub(crate) use lookup_result::no_address;
pub use lookup_result::{RESOLVE_DEADLINE, name_exists};
pub use numeric::parse_numeric_v4;

/// Time after which a lookup that its callers give up has failed: the servers had time to answer.
const FAILED_AFTER: Duration = Duration::from_secs(4);

/// A resolver of names. All users of a resolver share its cache and its limits.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_net::names::{LookupOrigin, Resolver};
///
/// let found = Resolver::system().look_up("localhost", LookupOrigin::Configuration).await?;
/// assert!(found.iter().all(|addr| addr.ip().is_loopback()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Resolver {
    files: ResolverFiles,
    limiter: Arc<LookupLimiter>,
    state: Arc<Mutex<State>>,
    /// Locked while the files are read: one thread is enough for that.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The parsed configuration and the version of its files.
    known: Option<(ResolverFilesVersion, Arc<ResolverConfig>)>,
    cache: LookupCache,
    /// Lookups with waiters, each with its number.
    running: HashMap<Box<str>, (u64, Weak<RunningLookup>)>,
    /// The number of the latest lookup.
    last_number: u64,
}

/// A running lookup; it is aborted when the last waiter drops it.
#[derive(Debug)]
struct RunningLookup {
    answer: watch::Receiver<Option<Result<LookupResult, Arc<str>>>>,
    task: AbortHandle,
}

/// The outcome of starting a lookup.
enum StartedLookup {
    /// The result is already known.
    Known(io::Result<LookupResult>),
    /// A query is running, started by this caller or another.
    Running(Arc<RunningLookup>),
}

impl Drop for RunningLookup {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    /// Returns the result of a lookup that need not be repeated yet.
    fn known_result(&mut self, name: &str) -> Option<io::Result<LookupResult>> {
        let now = system::monotonic_now();
        if let Some(found) = self.cache.get(name, now) {
            return Some(Ok(found));
        }
        let why = self.cache.failure(name, now)?;
        Some(Err(no_address(&*why)))
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(ResolverFiles::default())
    }
}

impl Resolver {
    /// Creates a resolver for these files, which are read at the first lookup and again when they change.
    #[must_use]
    pub fn new(files: ResolverFiles) -> Self {
        Self {
            files,
            limiter: Arc::default(),
            state: Arc::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the resolver of this process.
    pub fn system() -> &'static Self {
        static SYSTEM: OnceLock<Resolver> = OnceLock::new();
        SYSTEM.get_or_init(Self::default)
    }

    /// Looks up the addresses of `name`, the better reachable family first, with port 0.
    ///
    /// # Errors
    /// [`HostUnreachable`](io::ErrorKind::HostUnreachable) if `name` has no address, or no server answers
    /// within [`RESOLVE_DEADLINE`], or this was so a short time ago; [`QuotaExceeded`](io::ErrorKind::QuotaExceeded)
    /// if too many lookups of `origin` are waiting.
    ///
    /// # Cancel safety
    /// Cancel safe. The lookup ends with its last caller.
    pub async fn look_up(&self, name: &str, origin: LookupOrigin) -> io::Result<Arc<[SocketAddr]>> {
        if let Ok(ip) = name.parse() {
            return Ok([SocketAddr::new(ip, 0)].into());
        }
        if let Some(ip) = parse_numeric_v4(name) {
            return Ok([SocketAddr::new(ip.into(), 0)].into());
        }
        let name = match name.contains('%') {
            // Interface names are case-sensitive.
            true => name.to_owned(),
            false => name.to_ascii_lowercase(),
        };
        let config = self.current_config().await?;
        let bare = name.strip_suffix('.').unwrap_or(&name);
        let mut local = config.hosts.find_addresses(bare);
        if local.is_empty() && is_localhost(bare) {
            local = vec![
                ([127, 0, 0, 1], 0).into(),
                ([0u16, 0, 0, 0, 0, 0, 0, 1], 0).into(),
            ];
        }
        if !local.is_empty() {
            sort_by_family(&mut local);
            return Ok(local.into());
        }
        if let Some(known) = self.lock_state().known_result(&name) {
            return known.and_then(|found| found.addresses(&name));
        }
        let slot = self.limiter.reserve_slot(origin)?;
        let until = Instant::now() + RESOLVE_DEADLINE;
        let lookup = match timeout_at(until, self.join_or_start(&slot, &config, &name)).await {
            Ok(StartedLookup::Known(known)) => {
                return known.and_then(|found| found.addresses(&name));
            }
            Ok(StartedLookup::Running(lookup)) => lookup,
            Err(_) => return Err(lookup_limiter::too_many_lookups()),
        };
        let mut answer = lookup.answer.clone();
        let Ok(answered) = timeout_at(until, answer.wait_for(Option::is_some)).await else {
            return Err(no_address(lookup::no_answer_message(&config.servers)));
        };
        let answered = answered.map_err(|_| no_address("the lookup was aborted"))?;
        match answered.as_ref() {
            Some(Ok(found)) => found.addresses(&name),
            Some(Err(why)) => Err(no_address(&**why)),
            None => Err(no_address("the lookup was aborted")),
        }
    }

    /// Returns the DNS servers of the configuration, in their order.
    ///
    /// # Errors
    /// The runtime ends.
    pub async fn servers(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.current_config().await?.servers.clone())
    }

    /// Joins the lookup of a name, or starts it once the limits allow it.
    async fn join_or_start(
        &self,
        slot: &LookupSlot,
        config: &Arc<ResolverConfig>,
        name: &str,
    ) -> StartedLookup {
        let weight = match config.sources.needs_system(name) {
            true => c_library::WEIGHT,
            false => 1,
        };
        loop {
            {
                let mut state = self.lock_state();
                let known = state.running.get(name);
                if let Some(lookup) = known.and_then(|(_, lookup)| lookup.upgrade()) {
                    return StartedLookup::Running(lookup);
                }
                // Another origin's lookup may have ended meanwhile.
                if let Some(known) = state.known_result(name) {
                    return StartedLookup::Known(known);
                }
                if let Some(permit) = slot.try_start(weight) {
                    state.last_number += 1;
                    let number = state.last_number;
                    let lookup = self.spawn_lookup(config, name, permit, number);
                    let note = (number, Arc::downgrade(&lookup));
                    state.running.insert(name.into(), note);
                    return StartedLookup::Running(lookup);
                }
            }
            slot.wait_for_release().await;
        }
    }

    fn spawn_lookup(
        &self,
        config: &Arc<ResolverConfig>,
        name: &str,
        permit: LookupPermit,
        number: u64,
    ) -> Arc<RunningLookup> {
        let (tell, answer) = watch::channel(None);
        let (config, name) = (config.clone(), name.to_owned());
        // Removes the entry however the task ends.
        let mut noted = PendingEntry {
            state: self.state.clone(),
            config: config.clone(),
            name: name.clone(),
            number,
            since: Instant::now(),
            has_ended: false,
        };
        let task = tokio::spawn(async move {
            let found = if config.sources.needs_system(&name) {
                c_library::look_up(name.clone(), permit).await
            } else {
                let found = lookup::look_up(&config, &name).await;
                drop(permit);
                found
            };
            let found = found.map_err(|e| Arc::from(e.to_string()));
            noted.keep(&found);
            noted.has_ended = true;
            drop(noted);
            let _ = tell.send(Some(found));
        });
        Arc::new(RunningLookup {
            answer,
            task: task.abort_handle(),
        })
    }

    /// Returns the current configuration; reads the files again if they have changed.
    async fn current_config(&self) -> io::Result<Arc<ResolverConfig>> {
        if let Some(config) = self.known_config(&self.files.current_version()) {
            return Ok(config);
        }
        let _reading = self.reading.lock().await;
        let version = self.files.current_version();
        if let Some(config) = self.known_config(&version) {
            return Ok(config);
        }
        let files = self.files.clone();
        // A list of blocked names takes a moment.
        let read = tokio::task::spawn_blocking(move || files.read_config());
        let config = Arc::new(read.await.map_err(io::Error::other)?);
        let mut state = self.lock_state();
        state.known = Some((version, config.clone()));
        // Names may have other addresses in another network.
        state.cache = LookupCache::default();
        Ok(config)
    }

    /// Returns the parsed configuration if it is of this version.
    fn known_config(&self, version: &ResolverFilesVersion) -> Option<Arc<ResolverConfig>> {
        let state = self.lock_state();
        let known = state.known.as_ref().filter(|(known, _)| known == version);
        known.map(|(_, config)| config.clone())
    }

    /// Locks the state. It is consistent even after a panic of another thread.
    fn lock_state(&self) -> MutexGuard<'_, State> {
        lock_shared_state(&self.state)
    }
}

fn lock_shared_state(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry of a running lookup in the state, removed when dropped.
struct PendingEntry {
    state: Arc<Mutex<State>>,
    config: Arc<ResolverConfig>,
    name: String,
    number: u64,
    since: Instant,
    /// True if its outcome was kept.
    has_ended: bool,
}

impl PendingEntry {
    /// Keeps the outcome of the lookup, unless the configuration has changed meanwhile.
    fn keep(&self, outcome: &Result<LookupResult, Arc<str>>) {
        let mut state = lock_shared_state(&self.state);
        let is_current = |(_, known): &(ResolverFilesVersion, Arc<ResolverConfig>)| {
            Arc::ptr_eq(known, &self.config)
        };
        if !state.known.as_ref().is_some_and(is_current) {
            return;
        }
        let now = system::monotonic_now();
        match outcome {
            Ok(found) => state.cache.insert(&self.name, found, now),
            Err(why) => state.cache.insert_failure(&self.name, why.clone(), now),
        }
    }
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        if !self.has_ended && self.since.elapsed() >= FAILED_AFTER {
            let why = lookup::no_answer_message(&self.config.servers);
            self.keep(&Err(why.into()));
        }
        let mut state = lock_shared_state(&self.state);
        // An aborted lookup may have a successor, whose entry stays.
        let note = state.running.get(self.name.as_str());
        if note.is_some_and(|(number, _)| *number == self.number) {
            state.running.remove(self.name.as_str());
        }
    }
}

/// Returns true if `name`, in lower case, is the machine itself on every machine (RFC 6761 section 6.3).
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}
