//! Quotas: the limits on associations of the process, and the choice of those that end when they are
//! reached.
//!
//! An association belongs to an owner: a known user, or all unknown clients of a listener together.
//! Within an owner it belongs to a source, an IPv4 address or an IPv6 /64. Each user, and each source
//! without a known user, has a quota. An association beyond it ends the longest idle ones of the
//! same quota. When the listener or the process is full, the largest source of the largest owner loses
//! its longest idle associations, so that one client cannot deprive others of UDP.

use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use adit_net::system;
use adit_wire::{Time, source_network};

use crate::serve::DescriptorPool;
use crate::user_account::UserAccount;

/// Maximum number of associations of one user, or of one source without a known user.
const MAX_PER_SOURCE: usize = 512;
/// Maximum number of associations of one listener.
const MAX_PER_LISTENER: usize = 16_384;
/// A source loses 1/`EVICTED_PART` of its associations at a time: finding the longest idle one requires a look
/// at all of them, which should yield several.
const EVICTED_PART: usize = 64;
/// Maximum number of associations that were asked to end but still exist. Beyond it no new one starts,
/// because each of them still occupies a descriptor and memory.
const MAX_ENDING: usize = 256;
/// The same limit as 1/`MAX_ENDING_PART` of the process's descriptors: associations that are ending do not
/// count as open any more, and a busy machine takes a while to close them.
const MAX_ENDING_PART: usize = 16;

/// The associations of a process.
#[derive(Debug)]
pub(crate) struct AssociationRegistry {
    descriptors: Arc<DescriptorPool>,
    book: Mutex<RegistryState>,
    /// Maximum number of associations that were asked to end but still exist.
    max_ending: usize,
}

#[derive(Debug, Default)]
struct RegistryState {
    /// The last number assigned to a listener or an association.
    last_number: u64,
    parties: HashMap<OwnerName, OwnerAssociations>,
    /// All owners, by their number of associations.
    sizes: BTreeSet<(usize, OwnerName)>,
    listeners: HashMap<u64, ListenerOwners>,
    /// Number of associations that were asked to end but still exist.
    ending: usize,
}

/// The owners at one listener.
#[derive(Debug, Default)]
struct ListenerOwners {
    count: usize,
    sizes: BTreeSet<(usize, OwnerName)>,
}

/// The name of an owner: a listener and the address of a user's account, or 0 for all other clients.
type OwnerName = (u64, usize);

#[derive(Debug, Default)]
struct OwnerAssociations {
    count: usize,
    sources: HashMap<IpAddr, HashMap<u64, Arc<SlotState>>>,
    /// The sources, by their number of associations.
    sizes: BTreeSet<(usize, IpAddr)>,
}

/// State shared by the table and the association.
#[derive(Debug, Default)]
struct SlotState {
    /// Time of the last datagram, in microseconds.
    active: AtomicU64,
    evicted: AtomicBool,
    descriptors: u8,
    waker: Mutex<Option<Waker>>,
}

/// The quota of one listener.
#[derive(Debug)]
pub struct ListenerQuota {
    all: Arc<AssociationRegistry>,
    listener: u64,
    /// Maximum number of associations of one source without a known user.
    max_per_source: usize,
    /// Maximum number of associations of the listener.
    max_total: usize,
}

/// A descriptor that several associations use; returned when dropped.
#[derive(Debug)]
pub(crate) struct HeldDescriptor(Arc<DescriptorPool>);

impl Drop for HeldDescriptor {
    fn drop(&mut self) {
        self.0.return_of_association(1);
    }
}

/// The slot of one association; freed when dropped.
#[derive(Debug)]
pub(crate) struct AssociationSlot {
    share: Arc<ListenerQuota>,
    slot: Arc<SlotState>,
    number: u64,
    source: IpAddr,
    /// Keeps the address that names the owner from being reused.
    user: Option<Arc<UserAccount>>,
}

impl AssociationRegistry {
    /// Creates an empty table for these descriptors.
    pub(crate) fn new(descriptors: Arc<DescriptorPool>) -> Arc<Self> {
        let leaving = (descriptors.total() / MAX_ENDING_PART).clamp(1, MAX_ENDING);
        Arc::new(Self {
            descriptors,
            book: Mutex::default(),
            max_ending: leaving,
        })
    }

    /// Returns the number of associations.
    pub(crate) fn open_count(&self) -> usize {
        let state = self.lock_state();
        state
            .listeners
            .values()
            .map(|listener| listener.count)
            .sum()
    }

    /// Registers a listener. If `strangers` is set, each of its sources has a quota.
    pub(crate) fn register_listener(self: &Arc<Self>, strangers: bool) -> Arc<ListenerQuota> {
        let mut book = self.lock_state();
        book.last_number += 1;
        Arc::new(ListenerQuota {
            all: self.clone(),
            listener: book.last_number,
            max_per_source: if strangers {
                MAX_PER_SOURCE
            } else {
                MAX_PER_LISTENER
            },
            max_total: MAX_PER_LISTENER,
        })
    }

    fn lock_state(&self) -> MutexGuard<'_, RegistryState> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the longest idle associations of a source; returns false if it has none.
    fn evict_idlest(&self, book: &mut RegistryState, name: OwnerName, source: IpAddr) -> bool {
        let slots = book.parties.get(&name).and_then(|p| p.sources.get(&source));
        let Some(slots) = slots else { return false };
        let mut by_age: Vec<(u64, u64)> = slots
            .iter()
            .map(|(number, slot)| (slot.active.load(Ordering::Relaxed), *number))
            .collect();
        let count = (by_age.len() / EVICTED_PART).max(1);
        if by_age.len() > count {
            by_age.select_nth_unstable(count - 1);
        }
        by_age.truncate(count);
        for (_, number) in &by_age {
            if let Some(slot) = book.remove_association(name, source, *number) {
                book.ending += 1;
                self.descriptors
                    .return_of_association(slot.descriptors.into());
                slot.evict_and_wake();
            }
        }
        !by_age.is_empty()
    }
}

impl RegistryState {
    fn insert_association(
        &mut self,
        name: OwnerName,
        source: IpAddr,
        slot: &Arc<SlotState>,
    ) -> u64 {
        self.last_number += 1;
        let number = self.last_number;
        let party = self.parties.entry(name).or_default();
        let slots = party.sources.entry(source).or_default();
        party.sizes.remove(&(slots.len(), source));
        slots.insert(number, slot.clone());
        party.sizes.insert((slots.len(), source));
        party.count += 1;
        let count = party.count;
        self.resize_owner(name, count - 1, count);
        number
    }

    fn remove_association(
        &mut self,
        name: OwnerName,
        source: IpAddr,
        number: u64,
    ) -> Option<Arc<SlotState>> {
        let party = self.parties.get_mut(&name)?;
        let slots = party.sources.get_mut(&source)?;
        let slot = slots.remove(&number)?;
        party.sizes.remove(&(slots.len() + 1, source));
        if slots.is_empty() {
            party.sources.remove(&source);
        } else {
            party.sizes.insert((slots.len(), source));
        }
        party.count -= 1;
        let count = party.count;
        if count == 0 {
            self.parties.remove(&name);
        }
        self.resize_owner(name, count + 1, count);
        Some(slot)
    }

    /// Moves an owner from `before` to `now` associations.
    fn resize_owner(&mut self, name: OwnerName, before: usize, now: usize) {
        let crowd = self.listeners.entry(name.0).or_default();
        crowd.count = (crowd.count + now).saturating_sub(before);
        for sizes in [&mut self.sizes, &mut crowd.sizes] {
            sizes.remove(&(before, name));
            if now > 0 {
                sizes.insert((now, name));
            }
        }
        if crowd.count == 0 {
            self.listeners.remove(&name.0);
        }
    }

    fn count_of_listener(&self, listener: u64) -> usize {
        self.listeners.get(&listener).map_or(0, |crowd| crowd.count)
    }

    fn count_of_owner(&self, name: OwnerName) -> usize {
        self.parties.get(&name).map_or(0, |party| party.count)
    }

    fn count_of_source(&self, name: OwnerName, source: IpAddr) -> usize {
        let slots = self.parties.get(&name).and_then(|p| p.sources.get(&source));
        slots.map_or(0, HashMap::len)
    }

    /// Returns the largest source of an owner.
    fn largest_source_of(&self, name: OwnerName) -> Option<(OwnerName, IpAddr)> {
        let (_, source) = self.parties.get(&name)?.sizes.last()?;
        Some((name, *source))
    }

    /// Returns the largest source of the largest owner, at one listener or in the process.
    fn largest_source(&self, listener: Option<u64>) -> Option<(OwnerName, IpAddr)> {
        let sizes = match listener {
            Some(listener) => &self.listeners.get(&listener)?.sizes,
            None => &self.sizes,
        };
        let (_, name) = sizes.last()?;
        self.largest_source_of(*name)
    }
}

impl ListenerQuota {
    /// Reserves a descriptor for several associations, without ending others.
    pub(crate) fn hold_descriptor(&self) -> Option<HeldDescriptor> {
        let descriptors = &self.all.descriptors;
        let held = descriptors.take_for_association(1);
        held.then(|| HeldDescriptor(descriptors.clone()))
    }

    /// Reserves a slot for a further association that uses this many descriptors, for a known user or else
    /// for the source `from`. Ends other associations if necessary; returns `None` if that does not help.
    pub(crate) fn reserve_slot(
        self: &Arc<Self>,
        user: Option<&Arc<UserAccount>>,
        from: IpAddr,
        descriptors: u8,
    ) -> Option<AssociationSlot> {
        let user = user.filter(|account| account.is_one_user()).cloned();
        let address = user
            .as_ref()
            .map_or(0, |account| Arc::as_ptr(account).addr());
        let (name, source) = ((self.listener, address), source_network(from));
        let mut book = self.all.lock_state();
        if book.ending >= self.all.max_ending {
            return None;
        }
        let own = match user {
            Some(_) if book.count_of_owner(name) >= MAX_PER_SOURCE => book.largest_source_of(name),
            None if book.count_of_source(name, source) >= self.max_per_source => {
                Some((name, source))
            }
            _ if book.count_of_listener(self.listener) >= self.max_total => {
                book.largest_source(Some(self.listener))
            }
            _ => None,
        };
        if let Some((name, source)) = own {
            self.all.evict_idlest(&mut book, name, source);
        }
        while !self
            .all
            .descriptors
            .take_for_association(descriptors.into())
        {
            let (name, source) = book.largest_source(None)?;
            if book.ending >= self.all.max_ending || !self.all.evict_idlest(&mut book, name, source)
            {
                return None;
            }
        }
        let slot = Arc::new(SlotState {
            active: AtomicU64::new(system::monotonic_now().0),
            evicted: AtomicBool::new(false),
            waker: Mutex::default(),
            descriptors,
        });
        let number = book.insert_association(name, source, &slot);
        drop(book);
        Some(AssociationSlot {
            share: self.clone(),
            slot,
            number,
            source,
            user,
        })
    }
}

impl SlotState {
    fn evict_and_wake(&self) {
        self.evicted.store(true, Ordering::Release);
        let waker = self
            .waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl AssociationSlot {
    /// Records a datagram at `now`.
    pub(crate) fn record_activity(&self, now: Time) {
        self.slot.active.store(now.0, Ordering::Relaxed);
    }

    /// Returns the time of the last datagram.
    pub(crate) fn last_activity(&self) -> Time {
        Time(self.slot.active.load(Ordering::Relaxed))
    }

    /// Returns true if the slot is needed for another association, otherwise wakes the task of `cx` when it
    /// is. Only one task may wait.
    pub(crate) fn is_needed(&self, cx: &Context<'_>) -> bool {
        let slot = &self.slot;
        let mut waker = slot.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if waker
            .as_ref()
            .is_none_or(|known| !known.will_wake(cx.waker()))
        {
            *waker = Some(cx.waker().clone());
        }
        drop(waker);
        // Register before reading the flag, so that an end in between is noticed.
        slot.evicted.load(Ordering::Acquire)
    }

    /// Runs `work` until it completes or the slot is needed for another association; returns `None` in the
    /// latter case. Only one task may wait.
    pub(crate) async fn run_until_evicted<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|cx| match self.is_needed(cx) {
            true => Poll::Ready(None),
            false => work.as_mut().poll(cx).map(Some),
        })
        .await
    }
}

impl Drop for AssociationSlot {
    fn drop(&mut self) {
        let address = self
            .user
            .as_ref()
            .map_or(0, |user| Arc::as_ptr(user).addr());
        let all = &self.share.all;
        let mut book = all.lock_state();
        match book.remove_association((self.share.listener, address), self.source, self.number) {
            Some(slot) => all
                .descriptors
                .return_of_association(slot.descriptors.into()),
            None => book.ending = book.ending.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: usize) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + u32::try_from(n).unwrap()).into())
    }

    fn associations(descriptors: usize) -> Arc<AssociationRegistry> {
        AssociationRegistry::new(Arc::new(DescriptorPool::new(descriptors)))
    }

    /// Frees the slots of associations that were asked to end, as their tasks would.
    fn leave(places: &mut Vec<AssociationSlot>) -> usize {
        let before = places.len();
        places.retain(|place| !place.slot.evicted.load(Ordering::Relaxed));
        before - places.len()
    }

    #[test]
    fn a_user_and_a_source_have_their_share_and_lose_their_own_idlest() {
        let share = associations(usize::MAX).register_listener(true);
        let ann = Arc::new(UserAccount::for_one_user());
        for user in [Some(&ann), None] {
            let mut other = vec![share.reserve_slot(None, ip(9), 1).unwrap()];
            let mut own = Vec::new();
            for n in 0..2 * MAX_PER_SOURCE {
                // A user counts as one whatever the source address.
                let from = if user.is_some() { ip(n % 3) } else { ip(1) };
                own.push(share.reserve_slot(user, from, 1).unwrap());
                own[n.min(own.len() - 1)].record_activity(Time(n as u64));
                leave(&mut own);
                assert!(own.len() <= MAX_PER_SOURCE, "{}", own.len());
            }
            assert!(
                own.len() > MAX_PER_SOURCE - 2 * MAX_PER_SOURCE / EVICTED_PART,
                "{}",
                own.len()
            );
            assert_eq!(leave(&mut other), 0, "another one lost theirs");
        }
        let book = share.all.lock_state();
        assert!(book.parties.is_empty() && book.sizes.is_empty() && book.listeners.is_empty());
        assert_eq!(book.ending, 0);
    }

    #[test]
    fn the_idlest_one_goes() {
        let share = associations(usize::MAX).register_listener(true);
        let mut own: Vec<_> = (0..MAX_PER_SOURCE)
            .map(|_| share.reserve_slot(None, ip(1), 1).unwrap())
            .collect();
        for (n, place) in own.iter().enumerate() {
            place.record_activity(Time(1_000 + n as u64));
        }
        let idle: Vec<_> = [7, 300, 301].into_iter().chain(50..55).collect();
        assert_eq!(idle.len(), MAX_PER_SOURCE / EVICTED_PART);
        for n in &idle {
            own[*n].record_activity(Time(1));
        }
        let gone: Vec<_> = idle.iter().map(|n| own[*n].number).collect();
        own.push(share.reserve_slot(None, ip(1), 1).unwrap());
        leave(&mut own);
        assert_eq!(own.len(), MAX_PER_SOURCE + 1 - gone.len());
        assert!(own.iter().all(|place| !gone.contains(&place.number)));
    }

    #[test]
    fn a_full_listener_and_a_full_process_take_from_the_largest() {
        let all = associations(4000);
        let (one, two) = (all.register_listener(true), all.register_listener(false));
        let mut few: Vec<_> = (0..5)
            .map(|n| one.reserve_slot(None, ip(n), 1).unwrap())
            .collect();
        let mut many = Vec::new();
        for _ in 0..6000 {
            many.push(two.reserve_slot(None, ip(77), 1).unwrap());
            leave(&mut many);
        }
        assert!(
            many.len() <= 2000,
            "half of the descriptors: {}",
            many.len()
        );
        assert_eq!(leave(&mut few), 0);
        few.extend((0..50).map(|n| one.reserve_slot(None, ip(n), 1).unwrap()));
        assert!(leave(&mut many) > 0 && leave(&mut few) == 0);

        let share = associations(usize::MAX).register_listener(true);
        let users = MAX_PER_LISTENER / MAX_PER_SOURCE;
        let accounts: Vec<_> = (0..users)
            .map(|_| Arc::new(UserAccount::for_one_user()))
            .collect();
        let each = accounts
            .iter()
            .flat_map(|user| std::iter::repeat_n(user, MAX_PER_SOURCE));
        let mut full: Vec<_> = each
            .filter_map(|u| share.reserve_slot(Some(u), ip(1), 1))
            .collect();
        assert_eq!(full.len(), MAX_PER_LISTENER);
        let mut small = vec![share.reserve_slot(None, ip(1), 1).unwrap()];
        assert!(leave(&mut full) > 0 && leave(&mut small) == 0);
    }

    #[test]
    fn who_does_not_leave_keeps_others_out() {
        let share = associations(usize::MAX).register_listener(true);
        let places: Vec<_> = (0..10 * MAX_PER_SOURCE)
            .map_while(|_| share.reserve_slot(None, ip(1), 1))
            .collect();
        assert!(
            places.len() < MAX_PER_SOURCE + 2 * MAX_ENDING,
            "{}",
            places.len()
        );
        drop(places);
        assert!(share.reserve_slot(None, ip(1), 1).is_some());
        assert_eq!(share.all.lock_state().ending, 0);
    }

    #[test]
    fn those_that_leave_slowly_do_not_take_the_descriptors_of_connections() {
        let share = associations(400).register_listener(true);
        let places: Vec<_> = (0..600)
            .filter_map(|n| share.reserve_slot(None, ip(n), 1))
            .collect();
        let most = 400 / 2 + 400 / MAX_ENDING_PART;
        assert!(places.len() <= most, "{} are open", places.len());
    }

    #[tokio::test]
    async fn an_end_is_heard_before_and_during_the_work() {
        let all = associations(2);
        let share = all.register_listener(false);
        let place = share.reserve_slot(None, ip(1), 1).unwrap();
        assert_eq!(place.run_until_evicted(async { 7 }).await, Some(7));
        let task =
            tokio::spawn(
                async move { place.run_until_evicted(std::future::pending::<()>()).await },
            );
        tokio::task::yield_now().await;
        let next = share.reserve_slot(None, ip(2), 1).unwrap();
        assert_eq!(task.await.unwrap(), None);
        let third = share.reserve_slot(None, ip(3), 1).unwrap();
        assert_eq!(
            next.run_until_evicted(std::future::pending::<()>()).await,
            None
        );
        drop((next, third));
    }
}
