//! Limits on running and waiting lookups, in total and per client.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::asker::Asker;

/// Maximum number of lookups that run at a time. Each has two sockets, and a machine may have 1,024
/// descriptors.
const TOTAL: u32 = 256;
/// The same for one asker.
const EACH: u32 = 64;
/// Total above which an asker gets no more than [`SCARCE_EACH`]: the rest is for those that have no
/// lookup yet.
const SCARCE: u32 = 128;
/// Maximum number for one asker when lookups are scarce.
const SCARCE_EACH: u32 = 4;
/// Maximum number for one user with all their sources when lookups are scarce: datagrams can arrive
/// from any number of addresses.
const SCARCE_USER: u32 = 16;
/// Maximum number of waiting and running lookups of one asker, including those that wait for the result of
/// another's.
const PLACES: u32 = 256;
/// Time an asker waits for one of its lookups to end before it checks the others.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The limits of all askers.
#[derive(Debug, Default)]
pub(super) struct Shares(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    running: u32,
    parties: HashMap<Asker, Party>,
    /// Running lookups of each identified user.
    users: HashMap<u64, u32>,
}

#[derive(Debug, Default)]
struct Party {
    places: u32,
    running: u32,
    ended: Arc<Notify>,
}

impl Party {
    fn is_idle(&self) -> bool {
        self.places == 0 && self.running == 0
    }
}

impl Shares {
    /// Reserves a slot for a lookup of `asker`.
    ///
    /// # Errors
    /// All slots of `asker` are in use.
    pub(super) fn enter(self: &Arc<Self>, asker: Asker) -> io::Result<Place> {
        let mut table = self.lock();
        let party = table.parties.entry(asker).or_default();
        // The number of names in a configuration is bounded by the configuration.
        if party.places >= PLACES && asker != Asker::Configuration {
            return Err(too_many());
        }
        party.places += 1;
        Ok(Place {
            shares: self.clone(),
            asker,
            ended: party.ended.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn running(&self) -> u32 {
        self.lock().running
    }
}

/// Returns the user, if users are identified.
const fn user_of(asker: Asker) -> Option<u64> {
    match asker {
        Asker::Client { user, .. } if user != 0 => Some(user),
        Asker::Client { .. } | Asker::Configuration => None,
    }
}

/// Returns the error for an asker with too many lookups.
pub(super) fn too_many() -> io::Error {
    super::no_address("too many lookups of this client are waiting")
}

/// A slot of a waiting or running lookup.
#[derive(Debug)]
pub(super) struct Place {
    shares: Arc<Shares>,
    asker: Asker,
    ended: Arc<Notify>,
}

impl Place {
    /// Permits a lookup of this weight to run, if the limits allow it now.
    pub(super) fn start(&self, weight: u32) -> Option<Running> {
        let mut table = self.shares.lock();
        let total = table.running + weight;
        let each = match self.asker {
            Asker::Configuration => TOTAL,
            _ if total > SCARCE => SCARCE_EACH,
            _ => EACH,
        };
        let user = user_of(self.asker);
        let of_user = user.map_or(0, |user| table.users.get(&user).copied().unwrap_or(0));
        let is_greedy = total > SCARCE && of_user > 0 && of_user + weight > SCARCE_USER;
        let party = table.parties.get_mut(&self.asker)?;
        // At least one may run, whatever its weight.
        let is_first = party.running == 0;
        if total > TOTAL || is_greedy || (party.running + weight > each && !is_first) {
            return None;
        }
        party.running += weight;
        table.running = total;
        if let Some(user) = user {
            table.users.insert(user, of_user + weight);
        }
        Some(Running {
            shares: self.shares.clone(),
            asker: self.asker,
            weight,
        })
    }

    /// Waits until another call of [`start`](Self::start) may succeed.
    pub(super) async fn wait(&self) {
        // The end of another asker's lookup is not announced, so check again after a while.
        let _ = timeout(LOOK_AGAIN, self.ended.notified()).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.shares.lock();
        if let Some(party) = table.parties.get_mut(&self.asker) {
            party.places -= 1;
            if party.is_idle() {
                table.parties.remove(&self.asker);
            }
        }
    }
}

/// The permit of a running lookup; dropping it ends the lookup.
#[derive(Debug)]
pub(super) struct Running {
    shares: Arc<Shares>,
    asker: Asker,
    weight: u32,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut table = self.shares.lock();
        table.running -= self.weight;
        if let Some(Entry::Occupied(mut user)) =
            user_of(self.asker).map(|user| table.users.entry(user))
        {
            *user.get_mut() -= self.weight;
            if *user.get() == 0 {
                user.remove();
            }
        }
        if let Some(party) = table.parties.get_mut(&self.asker) {
            party.running -= self.weight;
            party.ended.notify_one();
            if party.is_idle() {
                table.parties.remove(&self.asker);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(user: u64) -> Asker {
        let source = [192, 0, 2, 1].into();
        Asker::Client { user, source }
    }

    #[test]
    fn however_many_are_greedy_a_newcomer_has_a_share() {
        let shares = Arc::new(Shares::default());
        let mut held = Vec::new();
        for user in 0..20 {
            for _ in 0..PLACES {
                let place = shares.enter(client(user)).unwrap();
                if let Some(running) = place.start(1) {
                    held.push(running);
                }
                held.last().unwrap();
                std::mem::forget(place);
            }
            let refused = shares.enter(client(user)).unwrap_err();
            assert!(
                refused.to_string().contains("too many lookups"),
                "{refused}"
            );
        }
        let newcomer = shares.enter(client(99)).unwrap();
        let first = newcomer.start(1).expect("a new asker need not wait");
        assert!(shares.running() < TOTAL);
        drop((held, first));
        assert_eq!(shares.running(), 0);
    }

    #[test]
    fn a_user_with_many_sources_leaves_room_for_others() {
        let shares = Arc::new(Shares::default());
        let from = |user, source: u16| {
            let [a, b] = source.to_be_bytes();
            let source = [10, 0, a, b].into();
            shares.enter(Asker::Client { user, source }).unwrap()
        };
        let (mut places, mut held) = (Vec::new(), Vec::new());
        for source in 0..600 {
            let place = from(1, source);
            held.extend(place.start(1));
            places.push(place);
        }
        assert_eq!(shares.running(), SCARCE);
        // Users that are not identified are told apart by their sources.
        for user in [2, 3, 0] {
            let newcomer = from(user, 7);
            held.push(newcomer.start(1).expect("a new asker need not wait"));
            places.push(newcomer);
        }
        drop((held, places));
        let table = shares.lock();
        assert!(table.users.is_empty() && table.parties.is_empty());
    }

    #[test]
    fn who_has_nothing_is_forgotten() {
        let shares = Arc::new(Shares::default());
        let place = shares.enter(client(1)).unwrap();
        let running = place.start(4);
        assert!(running.is_some());
        drop(place);
        assert_eq!(shares.lock().parties.len(), 1);
        drop(running);
        assert!(shares.lock().parties.is_empty());
    }
}
