//! Limits on running and waiting lookups, in total and per client.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::lookup_origin::LookupOrigin;

/// Maximum number of lookups that run at a time. Each has two sockets, and a machine may have 1,024
/// descriptors.
const MAX_RUNNING: u32 = 256;
/// The same for one origin.
const MAX_PER_ORIGIN: u32 = 64;
/// Total above which an origin gets no more than [`MAX_PER_ORIGIN_WHEN_SCARCE`]: the rest is for those that have no
/// lookup yet.
const SCARCITY_THRESHOLD: u32 = 128;
/// Maximum number for one origin when lookups are scarce.
const MAX_PER_ORIGIN_WHEN_SCARCE: u32 = 4;
/// Maximum number for one user with all their sources when lookups are scarce: datagrams can arrive
/// from any number of addresses.
const MAX_PER_USER_WHEN_SCARCE: u32 = 16;
/// Maximum number of waiting and running lookups of one origin, including those that wait for the result of
/// another's.
const MAX_SLOTS: u32 = 256;
/// Time an origin waits for one of its lookups to end before it checks the others.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Limits on running and waiting lookups, in total and per origin. Each resolver has one.
#[derive(Debug, Default)]
pub struct LookupLimiter(Mutex<LimiterState>);

#[derive(Debug, Default)]
struct LimiterState {
    running: u32,
    origins: HashMap<LookupOrigin, OriginState>,
    /// Running lookups of each identified user.
    users: HashMap<u64, u32>,
}

#[derive(Debug, Default)]
struct OriginState {
    slots: u32,
    running: u32,
    ended: Arc<Notify>,
}

impl OriginState {
    fn is_idle(&self) -> bool {
        self.slots == 0 && self.running == 0
    }
}

impl LookupLimiter {
    /// Reserves a slot for a lookup of `origin`.
    ///
    /// # Errors
    /// All slots of `origin` are in use.
    pub fn reserve_slot(self: &Arc<Self>, origin: LookupOrigin) -> io::Result<LookupSlot> {
        let mut table = self.lock();
        let state = table.origins.entry(origin).or_default();
        // The number of names in a configuration is bounded by the configuration.
        if state.slots >= MAX_SLOTS && origin != LookupOrigin::Configuration {
            return Err(too_many_lookups());
        }
        state.slots += 1;
        Ok(LookupSlot {
            limiter: self.clone(),
            origin,
            ended: state.ended.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, LimiterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn running(&self) -> u32 {
        self.lock().running
    }
}

/// Returns the user, if users are identified.
const fn identified_user(origin: LookupOrigin) -> Option<u64> {
    match origin {
        LookupOrigin::Client { user, .. } if user != 0 => Some(user),
        LookupOrigin::Client { .. } | LookupOrigin::Configuration => None,
    }
}

/// Returns the error for an origin with too many lookups.
pub(super) fn too_many_lookups() -> io::Error {
    let why = "too many lookups of this client are waiting";
    io::Error::new(io::ErrorKind::QuotaExceeded, why)
}

/// A slot of a waiting or running lookup.
#[derive(Debug)]
pub struct LookupSlot {
    limiter: Arc<LookupLimiter>,
    origin: LookupOrigin,
    ended: Arc<Notify>,
}

impl LookupSlot {
    /// Permits a lookup of this weight to run, if the limits allow it now.
    pub fn try_start(&self, weight: u32) -> Option<LookupPermit> {
        let mut table = self.limiter.lock();
        let total = table.running + weight;
        let each = match self.origin {
            LookupOrigin::Configuration => MAX_RUNNING,
            _ if total > SCARCITY_THRESHOLD => MAX_PER_ORIGIN_WHEN_SCARCE,
            _ => MAX_PER_ORIGIN,
        };
        let user = identified_user(self.origin);
        let of_user = user.map_or(0, |user| table.users.get(&user).copied().unwrap_or(0));
        let is_greedy = total > SCARCITY_THRESHOLD
            && of_user > 0
            && of_user + weight > MAX_PER_USER_WHEN_SCARCE;
        let state = table.origins.get_mut(&self.origin)?;
        // At least one may run, whatever its weight.
        let is_first = state.running == 0;
        if total > MAX_RUNNING || is_greedy || (state.running + weight > each && !is_first) {
            return None;
        }
        state.running += weight;
        table.running = total;
        if let Some(user) = user {
            table.users.insert(user, of_user + weight);
        }
        Some(LookupPermit {
            limiter: self.limiter.clone(),
            origin: self.origin,
            weight,
        })
    }

    /// Waits until another call of [`try_start`](Self::try_start) may succeed.
    pub async fn wait_for_release(&self) {
        // The end of another origin's lookup is not announced, so check again after a while.
        let _ = timeout(RETRY_INTERVAL, self.ended.notified()).await;
    }
}

impl Drop for LookupSlot {
    fn drop(&mut self) {
        let mut table = self.limiter.lock();
        if let Some(state) = table.origins.get_mut(&self.origin) {
            state.slots -= 1;
            if state.is_idle() {
                table.origins.remove(&self.origin);
            }
        }
    }
}

/// The permit of a running lookup; dropping it ends the lookup.
#[derive(Debug)]
pub struct LookupPermit {
    limiter: Arc<LookupLimiter>,
    origin: LookupOrigin,
    weight: u32,
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        let mut table = self.limiter.lock();
        table.running -= self.weight;
        if let Some(Entry::Occupied(mut user)) =
            identified_user(self.origin).map(|user| table.users.entry(user))
        {
            *user.get_mut() -= self.weight;
            if *user.get() == 0 {
                user.remove();
            }
        }
        if let Some(state) = table.origins.get_mut(&self.origin) {
            state.running -= self.weight;
            state.ended.notify_one();
            if state.is_idle() {
                table.origins.remove(&self.origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(user: u64) -> LookupOrigin {
        let source = [192, 0, 2, 1].into();
        LookupOrigin::Client { user, source }
    }

    #[test]
    fn however_many_are_greedy_a_newcomer_has_a_share() {
        let limiter = Arc::new(LookupLimiter::default());
        let mut held = Vec::new();
        for user in 0..20 {
            for _ in 0..MAX_SLOTS {
                let slot = limiter.reserve_slot(client(user)).unwrap();
                if let Some(running) = slot.try_start(1) {
                    held.push(running);
                }
                held.last().unwrap();
                std::mem::forget(slot);
            }
            let refused = limiter.reserve_slot(client(user)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded);
            assert!(
                refused.to_string().contains("too many lookups"),
                "{refused}"
            );
        }
        let new_origin = limiter.reserve_slot(client(99)).unwrap();
        let first = new_origin.try_start(1).expect("a new origin need not wait");
        assert!(limiter.running() < MAX_RUNNING);
        drop((held, first));
        assert_eq!(limiter.running(), 0);
    }

    #[test]
    fn a_user_with_many_sources_leaves_room_for_others() {
        let limiter = Arc::new(LookupLimiter::default());
        let from = |user, source: u16| {
            let [a, b] = source.to_be_bytes();
            let source = [10, 0, a, b].into();
            limiter
                .reserve_slot(LookupOrigin::Client { user, source })
                .unwrap()
        };
        let (mut slots, mut held) = (Vec::new(), Vec::new());
        for source in 0..600 {
            let slot = from(1, source);
            held.extend(slot.try_start(1));
            slots.push(slot);
        }
        assert_eq!(limiter.running(), SCARCITY_THRESHOLD);
        // Users that are not identified are distinguished by their sources.
        for user in [2, 3, 0] {
            let new_origin = from(user, 7);
            held.push(new_origin.try_start(1).expect("a new origin need not wait"));
            slots.push(new_origin);
        }
        drop((held, slots));
        let table = limiter.lock();
        assert!(table.users.is_empty() && table.origins.is_empty());
    }

    #[test]
    fn who_has_nothing_is_forgotten() {
        let limiter = Arc::new(LookupLimiter::default());
        let slot = limiter.reserve_slot(client(1)).unwrap();
        let running = slot.try_start(4);
        assert!(running.is_some());
        drop(slot);
        assert_eq!(limiter.lock().origins.len(), 1);
        drop(running);
        assert!(limiter.lock().origins.is_empty());
    }
}
