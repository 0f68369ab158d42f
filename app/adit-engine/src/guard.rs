//! Limits on unauthenticated peers of a listener: handshakes and failed logins.
//!
//! A connection without a request has a slot, until its request is read or its rejection is complete.
//! No connection is refused for lack of a slot: as a listener fills up, the oldest slots are revoked.
//! A flood then has to push every slot through the queue before it reaches a client that has just
//! connected and needs one round trip. The acceptor decides how to end a connection without a slot; at
//! a keyed listener, the reject policy applies as usual.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_net::ambient::{self, Chance};
use adit_wire::{Entropy, Time, source_network};
use tokio::sync::Notify;

use crate::AcceptError;

/// Maximum number of slots of a listener whose connection limit allows more.
const PLACES: usize = 4096;
/// Number of slots of one source above which it loses its own oldest slot, once slots are revoked.
const SHARE: usize = 64;
/// Number of failed logins of one source within [`WINDOW`] that are tolerated.
const FAILURES: u32 = 10;
/// Weight of a failed login, and of a key exchange without a login: clients that only read the host key are
/// no attack, unless they do so continuously.
const LOGIN: u32 = 4;
const EXCHANGE: u32 = 1;
/// Time over which failures are counted, and for which the source is then refused.
const WINDOW: Duration = Duration::from_secs(60);
/// Time for which a source counts as known after a request.
const KNOWN: Duration = Duration::from_hours(1);
/// Maximum number of sources that are remembered for failures or requests.
const REMEMBERED: usize = 65_536;

/// The source of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An IPv4 address or an IPv6 /64, which one customer of a provider usually has.
    Network(IpAddr),
    /// A user of this machine, by user ID.
    User(u32),
    /// Unknown: behind a plugin or a proxy, all connections have the same address. Such sources have no
    /// quota and no penalty.
    Unknown,
}

impl From<IpAddr> for Source {
    fn from(ip: IpAddr) -> Self {
        Self::Network(source_network(ip))
    }
}

/// Assigns slots and counts failed logins, by source.
#[derive(Debug)]
pub struct Guard {
    table: Mutex<Table>,
    capacity: usize,
    /// Number of slots from which on some new connections already revoke the oldest slot.
    early: usize,
    /// Number of slots that sources with a recent request do not lose to others.
    reserve: usize,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// The slots by number, and thus by age: of sources without a recent request, and of sources with
    /// one.
    unknown: BTreeMap<u64, Arc<Stranger>>,
    known: BTreeMap<u64, Arc<Stranger>>,
    sources: BTreeMap<Source, History>,
    /// Number of sources at which outdated ones are removed.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct History {
    /// The numbers of its slots, the oldest first.
    places: VecDeque<u64>,
    /// Failed logins and abandoned key exchanges, by weight.
    failures: u32,
    /// Time of the first of these failures.
    since: Time,
    /// Time of its last request.
    request: Option<Time>,
}

impl History {
    fn is_penalised(&self, now: Time) -> bool {
        self.failures > FAILURES * LOGIN && now.since(self.since) < WINDOW
    }

    fn is_known(&self, now: Time) -> bool {
        self.request.is_some_and(|at| now.since(at) < KNOWN)
    }

    fn is_forgotten(&self, now: Time) -> bool {
        let failed = self.failures > 0 && now.since(self.since) < WINDOW;
        self.places.is_empty() && !failed && !self.is_known(now)
    }
}

impl Guard {
    /// Creates the slots for a listener with a limit of `connections`.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        let capacity = connections.clamp(1, PLACES);
        Self {
            table: Mutex::default(),
            capacity,
            // A few simultaneous clients fill a small listener, and are no flood.
            early: if capacity < PLACES {
                capacity
            } else {
                capacity / 2
            },
            reserve: capacity / 4,
        }
    }

    /// Returns a slot for a connection; `None` if its source is refused because of failed logins.
    pub fn enter(self: &Arc<Self>, from: Source) -> Option<Place> {
        let now = ambient::now();
        let mut table = self.lock();
        let source = table.sources.get(&from);
        if source.is_some_and(|source| source.is_penalised(now)) {
            return None;
        }
        let (mine, known) = source.map_or((0, false), |s| (s.places.len(), s.is_known(now)));
        if self.is_crowded(table.unknown.len() + table.known.len()) {
            if from != Source::Unknown && mine >= SHARE {
                table.take_oldest_of(from);
            } else {
                table.take_oldest(self.reserve);
            }
        }
        let number = table.next;
        table.next += 1;
        let stranger = Arc::new(Stranger {
            guard: self.clone(),
            from,
            number,
            lost: Notify::new(),
            holders: AtomicUsize::new(1),
            is_free: AtomicBool::new(false),
        });
        let queue = if known {
            &mut table.known
        } else {
            &mut table.unknown
        };
        queue.insert(number, stranger.clone());
        if from != Source::Unknown {
            let source = table.sources.entry(from).or_default();
            source.places.push_back(number);
        }
        drop(table);
        Some(Place(Some(stranger)))
    }

    /// Revokes the oldest slot to admit a new connection. Returns false if there is none.
    pub(crate) fn make_room(&self) -> bool {
        self.lock().take_oldest(self.reserve)
    }

    /// Returns true if a new connection revokes another slot. From `early` on this is random, so that the
    /// oldest slots are revoked before all are taken, and peers cannot count the free ones.
    fn is_crowded(&self, taken: usize) -> bool {
        let Some(over) = taken.checked_sub(self.early) else {
            return false;
        };
        let narrow = |n| u16::try_from(n).unwrap_or(u16::MAX);
        let span = narrow(self.capacity - self.early);
        taken >= self.capacity || Chance.between(1, span) <= narrow(over)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Revokes a slot: the oldest of a source without a recent request, unless those with one exceed their
    /// reserve.
    fn take_oldest(&mut self, reserve: usize) -> bool {
        let first = if self.known.len() > reserve {
            self.known.first_key_value()
        } else {
            self.unknown.first_key_value()
        };
        let first = first.or_else(|| self.known.first_key_value());
        let Some(number) = first.map(|(number, _)| *number) else {
            return false;
        };
        self.take(number)
    }

    fn take_oldest_of(&mut self, from: Source) -> bool {
        let places = self.sources.get(&from).map(|source| &source.places);
        let Some(number) = places.and_then(|places| places.front().copied()) else {
            return false;
        };
        self.take(number)
    }

    /// Revokes a slot and notifies its connection.
    fn take(&mut self, number: u64) -> bool {
        let stranger = self.remove(number);
        if let Some(stranger) = &stranger {
            stranger.lost.notify_one();
        }
        stranger.is_some()
    }

    /// Frees a slot, if it is still taken.
    fn remove(&mut self, number: u64) -> Option<Arc<Stranger>> {
        let unknown = self.unknown.remove(&number);
        let stranger = unknown.or_else(|| self.known.remove(&number))?;
        if let Some(source) = self.sources.get_mut(&stranger.from) {
            // The numbers are in ascending order.
            if let Ok(at) = source.places.binary_search(&number) {
                source.places.remove(at);
            }
        }
        Some(stranger)
    }

    /// Forgets `from` if nothing has to be remembered, and sometimes all other such sources.
    fn forget(&mut self, from: Source, now: Time) {
        let full = self.sources.len() > REMEMBERED;
        let gone = |s: &History| s.is_forgotten(now) || (full && s.places.is_empty());
        if self.sources.get(&from).is_some_and(gone) {
            self.sources.remove(&from);
        }
        if self.sources.len() > self.sweep_at {
            self.sources.retain(|_, source| !source.is_forgotten(now));
            self.sweep_at = (self.sources.len() * 2).max(1024);
        }
    }
}

/// The slot of a connection that has not made its request yet. It is freed when all clones are dropped.
/// The default slot is never revoked.
#[derive(Debug, Default)]
pub struct Place(Option<Arc<Stranger>>);

impl Place {
    /// Waits until the slot is revoked. Only call this before it is.
    pub async fn lost(&self) {
        match &self.0 {
            Some(stranger) => stranger.lost.notified().await,
            None => pending().await,
        }
    }

    /// Runs `work` while the connection has its slot.
    ///
    /// # Errors
    ///
    /// Returns the error of `work`, or [`AcceptError::Evicted`] if the slot is revoked.
    pub async fn keep<T>(
        &self,
        work: impl Future<Output = Result<T, AcceptError>>,
    ) -> Result<T, AcceptError> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.lost() => Err(AcceptError::Evicted),
        }
    }

    /// Frees the slot early: the connection remains open and is counted elsewhere.
    pub fn leave(&self) {
        if let Some(stranger) = &self.0 {
            stranger.guard.lock().remove(stranger.number);
        }
    }

    /// Records a failed login.
    pub fn failed(&self) {
        self.count(LOGIN);
    }

    /// Records a key exchange without a login.
    pub fn wasted(&self) {
        self.count(EXCHANGE);
    }

    fn count(&self, weight: u32) {
        self.note(|source, now| {
            if now.since(source.since) >= WINDOW {
                (source.failures, source.since) = (0, now);
            }
            source.failures = source.failures.saturating_add(weight);
        });
    }

    /// Records a request. The connection needs no slot from here on.
    pub fn proved(self) {
        let Some(stranger) = &self.0 else {
            return;
        };
        let (from, now) = (stranger.from, ambient::now());
        let mut table = stranger.guard.lock();
        if from != Source::Unknown {
            table.sources.entry(from).or_default().request = Some(now);
        }
        stranger.free(&mut table, now);
        drop(table);
        stranger.is_free.store(true, Ordering::Release);
    }

    fn note(&self, what: impl FnOnce(&mut History, Time)) {
        if let Some(stranger) = &self.0
            && stranger.from != Source::Unknown
        {
            // The source of a revoked slot may be forgotten already.
            let mut table = stranger.guard.lock();
            what(
                table.sources.entry(stranger.from).or_default(),
                ambient::now(),
            );
        }
    }
}

impl Clone for Place {
    fn clone(&self) -> Self {
        if let Some(stranger) = &self.0 {
            stranger.holders.fetch_add(1, Ordering::Relaxed);
        }
        Self(self.0.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(stranger) = &self.0
            && stranger.holders.fetch_sub(1, Ordering::AcqRel) == 1
            && !stranger.is_free.load(Ordering::Acquire)
        {
            let now = ambient::now();
            stranger.free(&mut stranger.guard.lock(), now);
        }
    }
}

#[derive(Debug)]
struct Stranger {
    guard: Arc<Guard>,
    from: Source,
    number: u64,
    lost: Notify,
    /// Number of clones of the [`Place`].
    holders: AtomicUsize,
    /// True if the slot was freed before the clones are dropped.
    is_free: AtomicBool,
}

impl Stranger {
    fn free(&self, table: &mut Table, now: Time) {
        table.remove(self.number);
        if self.from != Source::Unknown {
            table.forget(self.from, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Source {
        text.parse::<IpAddr>().unwrap().into()
    }

    fn of_number(n: usize) -> Source {
        IpAddr::V4((0x0a00_0000 + u32::try_from(n).unwrap()).into()).into()
    }

    fn guard(connections: usize) -> Arc<Guard> {
        Arc::new(Guard::new(connections))
    }

    impl Place {
        fn is_lost(&self) -> bool {
            let stranger = self.0.as_ref().unwrap();
            let table = stranger.guard.lock();
            let number = &stranger.number;
            !table.unknown.contains_key(number) && !table.known.contains_key(number)
        }
    }

    fn enter(guard: &Arc<Guard>, from: Source, times: usize) -> Vec<Place> {
        let all: Vec<_> = (0..times).filter_map(|_| guard.enter(from)).collect();
        assert_eq!(all.len(), times, "nobody is refused");
        all
    }

    fn lost(places: &[Place]) -> usize {
        places.iter().filter(|place| place.is_lost()).count()
    }

    #[test]
    fn a_source_alone_has_room_and_leaves_no_trace() {
        let guard = guard(usize::MAX);
        let mine = enter(&guard, ip("::ffff:192.0.2.1"), PLACES / 2);
        assert_eq!(lost(&mine), 0);
        drop(mine);
        let table = guard.lock();
        assert!(table.sources.is_empty());
        assert!(table.known.is_empty() && table.unknown.is_empty());
    }

    #[test]
    fn the_oldest_leave_before_all_places_are_taken() {
        let guard = guard(usize::MAX);
        let all: Vec<_> = (0..PLACES * 2)
            .filter_map(|n| guard.enter(of_number(n)))
            .collect();
        assert_eq!(all.len(), PLACES * 2);
        let gone = lost(&all);
        let kept = all.len() - gone;
        assert!((PLACES / 2..PLACES).contains(&kept), "{kept} are left");
        assert_eq!(lost(&all[..gone]), gone, "the oldest");
    }

    #[test]
    fn a_source_with_more_than_its_share_pays_itself() {
        let guard = guard(200);
        let others: Vec<_> = (0..100).filter_map(|n| guard.enter(of_number(n))).collect();
        let flood = enter(&guard, ip("192.0.2.1"), 1000);
        assert_eq!(lost(&others), 0);
        assert_eq!(lost(&flood), 900);
        let newest = &flood[900..];
        assert_eq!(lost(newest), 0, "its newest ones stay");
    }

    #[test]
    fn a_source_with_a_request_keeps_its_place() {
        let guard = guard(200);
        let friend = ip("2001:db8::1");
        guard.enter(friend).unwrap().proved();
        let slow = enter(&guard, friend, 40);
        let first = guard.enter(ip("192.0.2.1")).unwrap();
        let flood: Vec<_> = (0..1000)
            .filter_map(|n| guard.enter(of_number(n)))
            .collect();
        assert_eq!(lost(&slow), 0, "within the reserve");
        assert!(first.is_lost());
        assert_eq!(flood.len() - lost(&flood), 160);
        // The reserve does not entitle a source to more than others.
        let many = enter(&guard, ip("2001:db8::2"), 300);
        assert_eq!(slow.len() - lost(&slow) + many.len() - lost(&many), 51);
    }

    #[test]
    fn without_sources_there_is_one_queue() {
        let guard = guard(100);
        let all: Vec<_> = (0..300)
            .filter_map(|_| guard.enter(Source::Unknown))
            .collect();
        for place in &all {
            place.failed();
        }
        assert_eq!(all.len(), 300);
        assert_eq!((lost(&all), lost(&all[..200])), (200, 200));
        assert!(guard.make_room() && all[200].is_lost());
        assert!(
            guard.enter(Source::Unknown).is_some(),
            "no login counts for all"
        );
    }

    #[tokio::test]
    async fn a_place_that_is_lost_ends_the_work() {
        let guard = guard(1);
        let first = guard.enter(Source::Unknown).unwrap();
        let second = guard.enter(Source::Unknown).unwrap();
        let never = || pending::<Result<(), AcceptError>>();
        let end = first.keep(never()).await;
        assert!(matches!(end, Err(AcceptError::Evicted)), "{end:?}");
        let end = second.keep(async { Ok(1) }).await;
        assert!(matches!(end, Ok(1)), "{end:?}");
    }

    #[test]
    fn guessing_is_slowed_down() {
        let guard = guard(usize::MAX);
        for _ in 0..=FAILURES {
            guard.enter(ip("2001:db8::1")).unwrap().failed();
        }
        let enter = |text| guard.enter(ip(text));
        assert!(enter("2001:db8::2").is_none(), "the same /64");
        assert!(enter("2001:db8:0:1::2").is_some(), "another /64");
    }

    #[test]
    fn key_exchanges_without_a_login_are_counted() {
        let guard = guard(usize::MAX);
        let from = ip("192.0.2.1");
        let exchanges = (0..1000).take_while(|_| {
            let place = guard.enter(from);
            place.is_some_and(|place| {
                place.wasted();
                true
            })
        });
        assert_eq!(exchanges.count(), 41);
        assert!(guard.enter(ip("192.0.2.2")).is_some());
    }
}
