//! Name resolution according to the machine's configuration files, with limits that keep one client from
//! blocking it for others.
//!
//! Queries are sent from here and not by the C library: a lookup ends as soon as it has no waiters,
//! concurrent lookups of one name share one query, and results are cached. Lookups are counted by
//! [`Asker`]. Where names come from sources other than `hosts` and DNS (`nsswitch.conf`), the C library is
//! called for those, in threads that are counted in the same way.

mod asker;
mod cache;
mod config;
mod found;
mod hosts;
mod lookup;
mod numeric;
mod preference;
mod query;
mod shares;
mod system;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use self::cache::Cache;
use self::config::{Config, Version};
use self::found::Found;
use self::shares::{Place, Running, Shares};
use crate::ambient;

pub use asker::Asker;
pub use config::{Files, ascii_name, is_own};
pub use found::RESOLVE_DEADLINE;
pub(crate) use found::no_address;
pub use numeric::spelled_v4;

/// A resolver of names. All users of a resolver share its cache and its limits.
#[derive(Debug)]
pub struct Resolver {
    files: Files,
    shares: Arc<Shares>,
    state: Arc<Mutex<State>>,
    /// Locked while the files are read: one thread is enough for that.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The parsed configuration and the version of its files.
    known: Option<(Version, Arc<Config>)>,
    cache: Cache,
    /// Lookups with waiters, each with its number.
    asked: HashMap<Box<str>, (u64, Weak<Lookup>)>,
    /// The number of the latest lookup.
    last: u64,
}

/// A running lookup; it is aborted when the last waiter drops it.
#[derive(Debug)]
struct Lookup {
    answer: watch::Receiver<Option<Result<Found, Arc<str>>>>,
    task: AbortHandle,
}

/// The outcome of starting a lookup.
enum Begun {
    /// The result is already known.
    Known(Found),
    /// A query is running, started by this caller or another.
    Asked(Arc<Lookup>),
}

impl Drop for Lookup {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(Files::default())
    }
}

impl Resolver {
    /// Creates a resolver for these files, which are read at the first lookup and again when they change.
    #[must_use]
    pub fn new(files: Files) -> Self {
        Self {
            files,
            shares: Arc::default(),
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
    /// [`HostUnreachable`](io::ErrorKind::HostUnreachable) if `name` has no address, no server answers
    /// within [`RESOLVE_DEADLINE`], or too many lookups of `asker` are waiting.
    pub async fn look_up(&self, name: &str, asker: Asker) -> io::Result<Arc<[SocketAddr]>> {
        if let Ok(ip) = name.parse() {
            return Ok([SocketAddr::new(ip, 0)].into());
        }
        if let Some(ip) = spelled_v4(name) {
            return Ok([SocketAddr::new(ip.into(), 0)].into());
        }
        let name = match name.contains('%') {
            // Interface names are case-sensitive.
            true => name.to_owned(),
            false => name.to_ascii_lowercase(),
        };
        let config = self.config().await?;
        let bare = name.strip_suffix('.').unwrap_or(&name);
        let mut local = config.hosts.find(bare);
        if local.is_empty() && is_localhost(bare) {
            local = vec![
                ([127, 0, 0, 1], 0).into(),
                ([0u16, 0, 0, 0, 0, 0, 0, 1], 0).into(),
            ];
        }
        if !local.is_empty() {
            preference::sort(&mut local);
            return Ok(local.into());
        }
        if let Some(found) = self.lock().cache.get(&name, ambient::now()) {
            return found.addresses(&name);
        }
        let place = self.shares.enter(asker)?;
        let until = Instant::now() + RESOLVE_DEADLINE;
        let lookup = match timeout_at(until, self.begin(&place, &config, &name)).await {
            Ok(Begun::Known(found)) => return found.addresses(&name),
            Ok(Begun::Asked(lookup)) => lookup,
            Err(_) => return Err(shares::too_many()),
        };
        let mut answer = lookup.answer.clone();
        let Ok(answered) = timeout_at(until, answer.wait_for(Option::is_some)).await else {
            return Err(no_address(lookup::silent(&config.servers)));
        };
        let answered = answered.map_err(|_| no_address("the lookup was aborted"))?;
        match answered.as_ref() {
            Some(Ok(found)) => found.addresses(&name),
            Some(Err(why)) => Err(no_address(&**why)),
            None => Err(no_address("the lookup was aborted")),
        }
    }

    /// Joins the lookup of a name, or starts it once the limits allow it.
    async fn begin(&self, place: &Place, config: &Arc<Config>, name: &str) -> Begun {
        let weight = match config.sources.need_system(name) {
            true => system::WEIGHT,
            false => 1,
        };
        loop {
            {
                let mut state = self.lock();
                let known = state.asked.get(name);
                if let Some(lookup) = known.and_then(|(_, lookup)| lookup.upgrade()) {
                    return Begun::Asked(lookup);
                }
                // Another asker's lookup may have ended meanwhile.
                if let Some(found) = state.cache.get(name, ambient::now()) {
                    return Begun::Known(found);
                }
                if let Some(share) = place.start(weight) {
                    state.last += 1;
                    let number = state.last;
                    let lookup = self.start(config, name, share, number);
                    let note = (number, Arc::downgrade(&lookup));
                    state.asked.insert(name.into(), note);
                    return Begun::Asked(lookup);
                }
            }
            place.wait().await;
        }
    }

    fn start(&self, config: &Arc<Config>, name: &str, share: Running, number: u64) -> Arc<Lookup> {
        let (tell, answer) = watch::channel(None);
        let (config, name) = (config.clone(), name.to_owned());
        // Removes the entry however the task ends.
        let noted = Noted {
            state: self.state.clone(),
            name: name.clone(),
            number,
        };
        let task = tokio::spawn(async move {
            let found = if config.sources.need_system(&name) {
                system::look_up(name.clone(), share).await
            } else {
                let found = lookup::look_up(&config, &name).await;
                drop(share);
                found
            };
            if let Ok(found) = &found {
                let mut state = lock(&noted.state);
                let is_current = |(_, known): &(Version, Arc<Config>)| Arc::ptr_eq(known, &config);
                if state.known.as_ref().is_some_and(is_current) {
                    state.cache.put(&name, found, ambient::now());
                }
            }
            drop(noted);
            let _ = tell.send(Some(found.map_err(|e| e.to_string().into())));
        });
        Arc::new(Lookup {
            answer,
            task: task.abort_handle(),
        })
    }

    /// Returns the current configuration; reads the files again if they have changed.
    async fn config(&self) -> io::Result<Arc<Config>> {
        if let Some(config) = self.known(&self.files.version()) {
            return Ok(config);
        }
        let _reading = self.reading.lock().await;
        let version = self.files.version();
        if let Some(config) = self.known(&version) {
            return Ok(config);
        }
        let files = self.files.clone();
        // A list of blocked names takes a moment.
        let read = tokio::task::spawn_blocking(move || files.read());
        let config = Arc::new(read.await.map_err(io::Error::other)?);
        let mut state = self.lock();
        state.known = Some((version, config.clone()));
        // Names may have other addresses in another network.
        state.cache = Cache::default();
        Ok(config)
    }

    /// Returns the parsed configuration if it is of this version.
    fn known(&self, version: &Version) -> Option<Arc<Config>> {
        let state = self.lock();
        let known = state.known.as_ref().filter(|(known, _)| known == version);
        known.map(|(_, config)| config.clone())
    }

    /// Locks the state. It is consistent even after a panic of another thread.
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry of a running lookup in the state, removed when dropped.
struct Noted {
    state: Arc<Mutex<State>>,
    name: String,
    number: u64,
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        // An aborted lookup may have a successor, whose entry stays.
        let note = state.asked.get(self.name.as_str());
        if note.is_some_and(|(number, _)| *number == self.number) {
            state.asked.remove(self.name.as_str());
        }
    }
}

/// Returns true if `name`, in lower case, is the machine itself on every machine (RFC 6761 section 6.3).
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}
