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

use adit_net::system::{self, ThreadRng};
use adit_wire::{Entropy, Time, source_network};
use tokio::sync::Notify;

use crate::AcceptError;

/// Maximum number of slots of a listener whose connection limit allows more.
const MAX_SLOTS: usize = 4096;
/// Number of slots of one source above which it loses its own oldest slot, once slots are revoked.
const SOURCE_QUOTA: usize = 64;
/// Number of failed logins of one source within [`FAILURE_WINDOW`] that are tolerated.
const MAX_FAILED_LOGINS: u32 = 10;
/// Weight of a failed login, and of a key exchange without a login: clients that only read the host key are
/// no attack, unless they do so continuously.
const LOGIN_WEIGHT: u32 = 4;
const KEY_EXCHANGE_WEIGHT: u32 = 1;
/// Time over which failures are counted, and for which the source is then refused.
const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Time for which a source counts as known after a request.
const KNOWN_FOR: Duration = Duration::from_secs(3600);
/// Maximum number of sources that are remembered for failures or requests.
const MAX_REMEMBERED_SOURCES: usize = 65_536;

/// The source of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionSource {
    /// An IPv4 address or an IPv6 /64, which one customer of a provider usually has.
    Network(IpAddr),
    /// A user of this machine, by user ID.
    User(u32),
    /// Unknown: behind a plugin or a proxy, all connections have the same address. Such sources have no
    /// quota and no penalty.
    Unknown,
}

impl From<IpAddr> for ConnectionSource {
    fn from(ip: IpAddr) -> Self {
        Self::Network(source_network(ip))
    }
}

/// Assigns slots and counts failed logins, by source.
#[derive(Debug)]
pub struct HandshakeLimiter {
    table: Mutex<HandshakeLimiterState>,
    capacity: usize,
    /// Number of slots from which on some new connections already revoke the oldest slot.
    early: usize,
    /// Number of slots that sources with a recent request do not lose to others.
    reserve: usize,
}

#[derive(Debug, Default)]
struct HandshakeLimiterState {
    next: u64,
    /// The slots by number, and thus by age: of sources without a recent request, and of sources with
    /// one.
    unknown: BTreeMap<u64, Arc<SlotState>>,
    known: BTreeMap<u64, Arc<SlotState>>,
    sources: BTreeMap<ConnectionSource, SourceHistory>,
    /// Number of sources at which outdated ones are removed.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct SourceHistory {
    /// The numbers of its slots, the oldest first.
    places: VecDeque<u64>,
    /// Failed logins and abandoned key exchanges, by weight.
    failures: u32,
    /// Time of the first of these failures.
    since: Time,
    /// Time of its last request.
    request: Option<Time>,
}

impl SourceHistory {
    fn is_penalised(&self, now: Time) -> bool {
        self.failures > MAX_FAILED_LOGINS * LOGIN_WEIGHT
            && now.duration_since(self.since) < FAILURE_WINDOW
    }

    fn is_known(&self, now: Time) -> bool {
        self.request
            .is_some_and(|at| now.duration_since(at) < KNOWN_FOR)
    }

    fn is_forgotten(&self, now: Time) -> bool {
        let failed = self.failures > 0 && now.duration_since(self.since) < FAILURE_WINDOW;
        self.places.is_empty() && !failed && !self.is_known(now)
    }
}

impl HandshakeLimiter {
    /// Creates the slots for a listener with a limit of `connections`.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        let capacity = connections.clamp(1, MAX_SLOTS);
        Self {
            table: Mutex::default(),
            capacity,
            // A few simultaneous clients fill a small listener, and are no flood.
            early: if capacity < MAX_SLOTS {
                capacity
            } else {
                capacity / 2
            },
            reserve: capacity / 4,
        }
    }

    /// Returns a slot for a connection; `None` if its source is refused because of failed logins.
    pub fn take_slot(self: &Arc<Self>, from: ConnectionSource) -> Option<HandshakeSlot> {
        let now = system::monotonic_now();
        let mut table = self.lock_state();
        let source = table.sources.get(&from);
        if source.is_some_and(|source| source.is_penalised(now)) {
            return None;
        }
        let (mine, known) = source.map_or((0, false), |s| (s.places.len(), s.is_known(now)));
        if self.is_crowded(table.unknown.len() + table.known.len()) {
            if from != ConnectionSource::Unknown && mine >= SOURCE_QUOTA {
                table.revoke_oldest_of(from);
            } else {
                table.revoke_oldest(self.reserve);
            }
        }
        let number = table.next;
        table.next += 1;
        let stranger = Arc::new(SlotState {
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
        if from != ConnectionSource::Unknown {
            let source = table.sources.entry(from).or_default();
            source.places.push_back(number);
        }
        drop(table);
        Some(HandshakeSlot(Some(stranger)))
    }

    /// Revokes the oldest slot to admit a new connection. Returns false if there is none.
    pub(crate) fn evict_oldest(&self) -> bool {
        self.lock_state().revoke_oldest(self.reserve)
    }

    /// Returns true if a new connection revokes another slot. From `early` on this is random, so that the
    /// oldest slots are revoked before all are taken, and peers cannot count the free ones.
    fn is_crowded(&self, taken: usize) -> bool {
        let Some(over) = taken.checked_sub(self.early) else {
            return false;
        };
        let narrow = |n| u16::try_from(n).unwrap_or(u16::MAX);
        let span = narrow(self.capacity - self.early);
        taken >= self.capacity || ThreadRng.in_range(1, span) <= narrow(over)
    }

    fn lock_state(&self) -> MutexGuard<'_, HandshakeLimiterState> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandshakeLimiterState {
    /// Revokes a slot: the oldest of a source without a recent request, unless those with one exceed their
    /// reserve.
    fn revoke_oldest(&mut self, reserve: usize) -> bool {
        let first = if self.known.len() > reserve {
            self.known.first_key_value()
        } else {
            self.unknown.first_key_value()
        };
        let first = first.or_else(|| self.known.first_key_value());
        let Some(number) = first.map(|(number, _)| *number) else {
            return false;
        };
        self.revoke_slot(number)
    }

    fn revoke_oldest_of(&mut self, from: ConnectionSource) -> bool {
        let places = self.sources.get(&from).map(|source| &source.places);
        let Some(number) = places.and_then(|places| places.front().copied()) else {
            return false;
        };
        self.revoke_slot(number)
    }

    /// Revokes a slot and notifies its connection.
    fn revoke_slot(&mut self, number: u64) -> bool {
        let stranger = self.free_slot(number);
        if let Some(stranger) = &stranger {
            stranger.lost.notify_one();
        }
        stranger.is_some()
    }

    /// Frees a slot, if it is still taken.
    fn free_slot(&mut self, number: u64) -> Option<Arc<SlotState>> {
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
    fn forget_source(&mut self, from: ConnectionSource, now: Time) {
        let full = self.sources.len() > MAX_REMEMBERED_SOURCES;
        let gone = |s: &SourceHistory| s.is_forgotten(now) || (full && s.places.is_empty());
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
pub struct HandshakeSlot(Option<Arc<SlotState>>);

impl HandshakeSlot {
    /// Waits until the slot is revoked. Only call this before it is.
    pub async fn wait_for_revocation(&self) {
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
    pub async fn run_while_held<T>(
        &self,
        work: impl Future<Output = Result<T, AcceptError>>,
    ) -> Result<T, AcceptError> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.wait_for_revocation() => Err(AcceptError::Evicted),
        }
    }

    /// Frees the slot early: the connection remains open and is counted elsewhere.
    pub fn release_early(&self) {
        if let Some(stranger) = &self.0 {
            stranger.guard.lock_state().free_slot(stranger.number);
        }
    }

    /// Records a failed login.
    pub fn record_failed_login(&self) {
        self.record_failure(LOGIN_WEIGHT);
    }

    /// Records a key exchange without a login.
    pub fn record_abandoned_key_exchange(&self) {
        self.record_failure(KEY_EXCHANGE_WEIGHT);
    }

    fn record_failure(&self, weight: u32) {
        self.update_history(|source, now| {
            if now.duration_since(source.since) >= FAILURE_WINDOW {
                (source.failures, source.since) = (0, now);
            }
            source.failures = source.failures.saturating_add(weight);
        });
    }

    /// Records a request. The connection needs no slot from here on.
    pub fn record_request(self) {
        let Some(stranger) = &self.0 else {
            return;
        };
        let (from, now) = (stranger.from, system::monotonic_now());
        let mut table = stranger.guard.lock_state();
        if from != ConnectionSource::Unknown {
            table.sources.entry(from).or_default().request = Some(now);
        }
        stranger.free_slot(&mut table, now);
        drop(table);
        stranger.is_free.store(true, Ordering::Release);
    }

    fn update_history(&self, what: impl FnOnce(&mut SourceHistory, Time)) {
        if let Some(stranger) = &self.0
            && stranger.from != ConnectionSource::Unknown
        {
            // The source of a revoked slot may be forgotten already.
            let mut table = stranger.guard.lock_state();
            what(
                table.sources.entry(stranger.from).or_default(),
                system::monotonic_now(),
            );
        }
    }
}

impl Clone for HandshakeSlot {
    fn clone(&self) -> Self {
        if let Some(stranger) = &self.0 {
            stranger.holders.fetch_add(1, Ordering::Relaxed);
        }
        Self(self.0.clone())
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        if let Some(stranger) = &self.0
            && stranger.holders.fetch_sub(1, Ordering::AcqRel) == 1
            && !stranger.is_free.load(Ordering::Acquire)
        {
            let now = system::monotonic_now();
            stranger.free_slot(&mut stranger.guard.lock_state(), now);
        }
    }
}

#[derive(Debug)]
struct SlotState {
    guard: Arc<HandshakeLimiter>,
    from: ConnectionSource,
    number: u64,
    lost: Notify,
    /// Number of clones of the [`HandshakeSlot`].
    holders: AtomicUsize,
    /// True if the slot was freed before the clones are dropped.
    is_free: AtomicBool,
}

impl SlotState {
    fn free_slot(&self, table: &mut HandshakeLimiterState, now: Time) {
        table.free_slot(self.number);
        if self.from != ConnectionSource::Unknown {
            table.forget_source(self.from, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> ConnectionSource {
        text.parse::<IpAddr>().unwrap().into()
    }

    fn of_number(n: usize) -> ConnectionSource {
        IpAddr::V4((0x0a00_0000 + u32::try_from(n).unwrap()).into()).into()
    }

    fn guard(connections: usize) -> Arc<HandshakeLimiter> {
        Arc::new(HandshakeLimiter::new(connections))
    }

    impl HandshakeSlot {
        fn is_lost(&self) -> bool {
            let stranger = self.0.as_ref().unwrap();
            let table = stranger.guard.lock_state();
            let number = &stranger.number;
            !table.unknown.contains_key(number) && !table.known.contains_key(number)
        }
    }

    fn enter(
        guard: &Arc<HandshakeLimiter>,
        from: ConnectionSource,
        times: usize,
    ) -> Vec<HandshakeSlot> {
        let all: Vec<_> = (0..times).filter_map(|_| guard.take_slot(from)).collect();
        assert_eq!(all.len(), times, "no request is refused");
        all
    }

    fn lost(places: &[HandshakeSlot]) -> usize {
        places.iter().filter(|place| place.is_lost()).count()
    }

    #[test]
    fn a_source_alone_has_room_and_leaves_no_trace() {
        let guard = guard(usize::MAX);
        let mine = enter(&guard, ip("::ffff:192.0.2.1"), MAX_SLOTS / 2);
        assert_eq!(lost(&mine), 0);
        drop(mine);
        let table = guard.lock_state();
        assert!(table.sources.is_empty());
        assert!(table.known.is_empty() && table.unknown.is_empty());
    }

    #[test]
    fn the_oldest_leave_before_all_places_are_taken() {
        let guard = guard(usize::MAX);
        let all: Vec<_> = (0..MAX_SLOTS * 2)
            .filter_map(|n| guard.take_slot(of_number(n)))
            .collect();
        assert_eq!(all.len(), MAX_SLOTS * 2);
        let gone = lost(&all);
        let kept = all.len() - gone;
        assert!(
            (MAX_SLOTS / 2..MAX_SLOTS).contains(&kept),
            "{kept} are left"
        );
        assert_eq!(lost(&all[..gone]), gone, "the oldest");
    }

    #[test]
    fn a_source_with_more_than_its_share_pays_itself() {
        let guard = guard(200);
        let others: Vec<_> = (0..100)
            .filter_map(|n| guard.take_slot(of_number(n)))
            .collect();
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
        guard.take_slot(friend).unwrap().record_request();
        let slow = enter(&guard, friend, 40);
        let first = guard.take_slot(ip("192.0.2.1")).unwrap();
        let flood: Vec<_> = (0..1000)
            .filter_map(|n| guard.take_slot(of_number(n)))
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
            .filter_map(|_| guard.take_slot(ConnectionSource::Unknown))
            .collect();
        for place in &all {
            place.record_failed_login();
        }
        assert_eq!(all.len(), 300);
        assert_eq!((lost(&all), lost(&all[..200])), (200, 200));
        assert!(guard.evict_oldest() && all[200].is_lost());
        assert!(
            guard.take_slot(ConnectionSource::Unknown).is_some(),
            "no login counts for all"
        );
    }

    #[tokio::test]
    async fn a_place_that_is_lost_ends_the_work() {
        let guard = guard(1);
        let first = guard.take_slot(ConnectionSource::Unknown).unwrap();
        let second = guard.take_slot(ConnectionSource::Unknown).unwrap();
        let never = || pending::<Result<(), AcceptError>>();
        let end = first.run_while_held(never()).await;
        assert!(matches!(end, Err(AcceptError::Evicted)), "{end:?}");
        let end = second.run_while_held(async { Ok(1) }).await;
        assert!(matches!(end, Ok(1)), "{end:?}");
    }

    #[test]
    fn guessing_is_slowed_down() {
        let guard = guard(usize::MAX);
        for _ in 0..=MAX_FAILED_LOGINS {
            guard
                .take_slot(ip("2001:db8::1"))
                .unwrap()
                .record_failed_login();
        }
        let enter = |text| guard.take_slot(ip(text));
        assert!(enter("2001:db8::2").is_none(), "the same /64");
        assert!(enter("2001:db8:0:1::2").is_some(), "another /64");
    }

    #[test]
    fn key_exchanges_without_a_login_are_counted() {
        let guard = guard(usize::MAX);
        let from = ip("192.0.2.1");
        let exchanges = (0..1000).take_while(|_| {
            let place = guard.take_slot(from);
            place.is_some_and(|place| {
                place.record_abandoned_key_exchange();
                true
            })
        });
        assert_eq!(exchanges.count(), 41);
        assert!(guard.take_slot(ip("192.0.2.2")).is_some());
    }
}
