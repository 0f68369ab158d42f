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
/// The same for one asker.
const MAX_PER_ASKER: u32 = 64;
/// Total above which an asker gets no more than [`MAX_PER_ASKER_WHEN_SCARCE`]: the rest is for those that have no
/// lookup yet.
const SCARCITY_THRESHOLD: u32 = 128;
/// Maximum number for one asker when lookups are scarce.
const MAX_PER_ASKER_WHEN_SCARCE: u32 = 4;
/// Maximum number for one user with all their sources when lookups are scarce: datagrams can arrive
/// from any number of addresses.
const MAX_PER_USER_WHEN_SCARCE: u32 = 16;
/// Maximum number of waiting and running lookups of one asker, including those that wait for the result of
/// another's.
const MAX_SLOTS: u32 = 256;
/// Time an asker waits for one of its lookups to end before it checks the others.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The limits of all askers.
#[derive(Debug, Default)]
pub(super) struct LookupLimiter(Mutex<LimiterState>);

#[derive(Debug, Default)]
struct LimiterState {
    running: u32,
    askers: HashMap<LookupOrigin, AskerState>,
    /// Running lookups of each identified user.
    users: HashMap<u64, u32>,
}

#[derive(Debug, Default)]
struct AskerState {
    slots: u32,
    running: u32,
    ended: Arc<Notify>,
}

impl AskerState {
    fn is_idle(&self) -> bool {
        self.slots == 0 && self.running == 0
    }
}

impl LookupLimiter {
    /// Reserves a slot for a lookup of `asker`.
    ///
    /// # Errors
    /// All slots of `asker` are in use.
    pub(super) fn reserve_slot(self: &Arc<Self>, asker: LookupOrigin) -> io::Result<LookupSlot> {
        let mut table = self.lock();
        let party = table.askers.entry(asker).or_default();
        // The number of names in a configuration is bounded by the configuration.
        if party.slots >= MAX_SLOTS && asker != LookupOrigin::Configuration {
            return Err(too_many_lookups());
        }
        party.slots += 1;
        Ok(LookupSlot {
            shares: self.clone(),
            asker,
            ended: party.ended.clone(),
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
const fn identified_user(asker: LookupOrigin) -> Option<u64> {
    match asker {
        LookupOrigin::Client { user, .. } if user != 0 => Some(user),
        LookupOrigin::Client { .. } | LookupOrigin::Configuration => None,
    }
}

/// Returns the error for an asker with too many lookups.
pub(super) fn too_many_lookups() -> io::Error {
    super::no_address("too many lookups of this client are waiting")
}

/// A slot of a waiting or running lookup.
#[derive(Debug)]
pub(super) struct LookupSlot {
    shares: Arc<LookupLimiter>,
    asker: LookupOrigin,
    ended: Arc<Notify>,
}

impl LookupSlot {
    /// Permits a lookup of this weight to run, if the limits allow it now.
    pub(super) fn try_start(&self, weight: u32) -> Option<LookupPermit> {
        let mut table = self.shares.lock();
        let total = table.running + weight;
        let each = match self.asker {
            LookupOrigin::Configuration => MAX_RUNNING,
            _ if total > SCARCITY_THRESHOLD => MAX_PER_ASKER_WHEN_SCARCE,
            _ => MAX_PER_ASKER,
        };
        let user = identified_user(self.asker);
        let of_user = user.map_or(0, |user| table.users.get(&user).copied().unwrap_or(0));
        let is_greedy = total > SCARCITY_THRESHOLD
            && of_user > 0
            && of_user + weight > MAX_PER_USER_WHEN_SCARCE;
        let party = table.askers.get_mut(&self.asker)?;
        // At least one may run, whatever its weight.
        let is_first = party.running == 0;
        if total > MAX_RUNNING || is_greedy || (party.running + weight > each && !is_first) {
            return None;
        }
        party.running += weight;
        table.running = total;
        if let Some(user) = user {
            table.users.insert(user, of_user + weight);
        }
        Some(LookupPermit {
            shares: self.shares.clone(),
            asker: self.asker,
            weight,
        })
    }

    /// Waits until another call of [`try_start`](Self::try_start) may succeed.
    pub(super) async fn wait_for_release(&self) {
        // The end of another asker's lookup is not announced, so check again after a while.
        let _ = timeout(RETRY_INTERVAL, self.ended.notified()).await;
    }
}

impl Drop for LookupSlot {
    fn drop(&mut self) {
        let mut table = self.shares.lock();
        if let Some(party) = table.askers.get_mut(&self.asker) {
            party.slots -= 1;
            if party.is_idle() {
                table.askers.remove(&self.asker);
            }
        }
    }
}

/// The permit of a running lookup; dropping it ends the lookup.
#[derive(Debug)]
pub(super) struct LookupPermit {
    shares: Arc<LookupLimiter>,
    asker: LookupOrigin,
    weight: u32,
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        let mut table = self.shares.lock();
        table.running -= self.weight;
        if let Some(Entry::Occupied(mut user)) =
            identified_user(self.asker).map(|user| table.users.entry(user))
        {
            *user.get_mut() -= self.weight;
            if *user.get() == 0 {
                user.remove();
            }
        }
        if let Some(party) = table.askers.get_mut(&self.asker) {
            party.running -= self.weight;
            party.ended.notify_one();
            if party.is_idle() {
                table.askers.remove(&self.asker);
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
        let shares = Arc::new(LookupLimiter::default());
        let mut held = Vec::new();
        for user in 0..20 {
            for _ in 0..MAX_SLOTS {
                let place = shares.reserve_slot(client(user)).unwrap();
                if let Some(running) = place.try_start(1) {
                    held.push(running);
                }
                held.last().unwrap();
                std::mem::forget(place);
            }
            let refused = shares.reserve_slot(client(user)).unwrap_err();
            assert!(
                refused.to_string().contains("too many lookups"),
                "{refused}"
            );
        }
        let newcomer = shares.reserve_slot(client(99)).unwrap();
        let first = newcomer.try_start(1).expect("a new asker need not wait");
        assert!(shares.running() < MAX_RUNNING);
        drop((held, first));
        assert_eq!(shares.running(), 0);
    }

    #[test]
    fn a_user_with_many_sources_leaves_room_for_others() {
        let shares = Arc::new(LookupLimiter::default());
        let from = |user, source: u16| {
            let [a, b] = source.to_be_bytes();
            let source = [10, 0, a, b].into();
            shares
                .reserve_slot(LookupOrigin::Client { user, source })
                .unwrap()
        };
        let (mut places, mut held) = (Vec::new(), Vec::new());
        for source in 0..600 {
            let place = from(1, source);
            held.extend(place.try_start(1));
            places.push(place);
        }
        assert_eq!(shares.running(), SCARCITY_THRESHOLD);
        // Users that are not identified are distinguished by their sources.
        for user in [2, 3, 0] {
            let newcomer = from(user, 7);
            held.push(newcomer.try_start(1).expect("a new asker need not wait"));
            places.push(newcomer);
        }
        drop((held, places));
        let table = shares.lock();
        assert!(table.users.is_empty() && table.askers.is_empty());
    }

    #[test]
    fn who_has_nothing_is_forgotten() {
        let shares = Arc::new(LookupLimiter::default());
        let place = shares.reserve_slot(client(1)).unwrap();
        let running = place.try_start(4);
        assert!(running.is_some());
        drop(place);
        assert_eq!(shares.lock().askers.len(), 1);
        drop(running);
        assert!(shares.lock().askers.is_empty());
    }
}
