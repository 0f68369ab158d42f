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

use adit_net::ambient;
use adit_wire::{Time, source_network};

use crate::account::Account;
use crate::serve::Descriptors;

/// Maximum number of associations of one user, or of one source without a known user.
const EACH: usize = 512;
/// Maximum number of associations of one listener.
const OF_LISTENER: usize = 16_384;
/// A source loses 1/`PART` of its associations at a time: finding the longest idle one requires a look
/// at all of them, which should yield several.
const PART: usize = 64;
/// Maximum number of associations that were asked to end but still exist. Beyond it no new one starts,
/// because each of them still occupies a descriptor and memory.
const LEAVING: usize = 256;
/// The same limit as 1/`LEAVING_PART` of the process's descriptors: associations that are ending do not
/// count as open any more, and a busy machine takes a while to close them.
const LEAVING_PART: usize = 16;

/// The associations of a process.
#[derive(Debug)]
pub(crate) struct Associations {
    descriptors: Arc<Descriptors>,
    book: Mutex<Book>,
    /// Maximum number of associations that were asked to end but still exist.
    leaving: usize,
}

#[derive(Debug, Default)]
struct Book {
    /// The last number assigned to a listener or an association.
    last: u64,
    parties: HashMap<Name, Party>,
    /// All owners, by their number of associations.
    sizes: BTreeSet<(usize, Name)>,
    listeners: HashMap<u64, Crowd>,
    /// Number of associations that were asked to end but still exist.
    leaving: usize,
}

/// The owners at one listener.
#[derive(Debug, Default)]
struct Crowd {
    count: usize,
    sizes: BTreeSet<(usize, Name)>,
}

/// The name of an owner: a listener and the address of a user's account, or 0 for all other clients.
type Name = (u64, usize);

#[derive(Debug, Default)]
struct Party {
    count: usize,
    sources: HashMap<IpAddr, HashMap<u64, Arc<Slot>>>,
    /// The sources, by their number of associations.
    sizes: BTreeSet<(usize, IpAddr)>,
}

/// State shared by the table and the association.
#[derive(Debug, Default)]
struct Slot {
    /// Time of the last datagram, in microseconds.
    active: AtomicU64,
    evicted: AtomicBool,
    descriptors: u8,
    waker: Mutex<Option<Waker>>,
}

/// The quota of one listener.
#[derive(Debug)]
pub struct Share {
    all: Arc<Associations>,
    listener: u64,
    /// Maximum number of associations of one source without a known user.
    each: usize,
    /// Maximum number of associations of the listener.
    most: usize,
}

/// A descriptor that several associations use; returned when dropped.
#[derive(Debug)]
pub(crate) struct Held(Arc<Descriptors>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.close_association(1);
    }
}

/// The slot of one association; freed when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    share: Arc<Share>,
    slot: Arc<Slot>,
    number: u64,
    source: IpAddr,
    /// Keeps the address that names the owner from being reused.
    user: Option<Arc<Account>>,
}

impl Associations {
    /// Creates an empty table for these descriptors.
    pub(crate) fn new(descriptors: Arc<Descriptors>) -> Arc<Self> {
        let leaving = (descriptors.total() / LEAVING_PART).clamp(1, LEAVING);
        Arc::new(Self {
            descriptors,
            book: Mutex::default(),
            leaving,
        })
    }

    /// Registers a listener. If `strangers` is set, each of its sources has a quota.
    pub(crate) fn of_listener(self: &Arc<Self>, strangers: bool) -> Arc<Share> {
        let mut book = self.book();
        book.last += 1;
        Arc::new(Share {
            all: self.clone(),
            listener: book.last,
            each: if strangers { EACH } else { OF_LISTENER },
            most: OF_LISTENER,
        })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the longest idle associations of a source; returns false if it has none.
    fn evict(&self, book: &mut Book, name: Name, source: IpAddr) -> bool {
        let slots = book.parties.get(&name).and_then(|p| p.sources.get(&source));
        let Some(slots) = slots else { return false };
        let mut by_age: Vec<(u64, u64)> = slots
            .iter()
            .map(|(number, slot)| (slot.active.load(Ordering::Relaxed), *number))
            .collect();
        let count = (by_age.len() / PART).max(1);
        if by_age.len() > count {
            by_age.select_nth_unstable(count - 1);
        }
        by_age.truncate(count);
        for (_, number) in &by_age {
            if let Some(slot) = book.remove(name, source, *number) {
                book.leaving += 1;
                self.descriptors.close_association(slot.descriptors.into());
                slot.evict();
            }
        }
        !by_age.is_empty()
    }
}

impl Book {
    fn insert(&mut self, name: Name, source: IpAddr, slot: &Arc<Slot>) -> u64 {
        self.last += 1;
        let number = self.last;
        let party = self.parties.entry(name).or_default();
        let slots = party.sources.entry(source).or_default();
        party.sizes.remove(&(slots.len(), source));
        slots.insert(number, slot.clone());
        party.sizes.insert((slots.len(), source));
        party.count += 1;
        let count = party.count;
        self.resize(name, count - 1, count);
        number
    }

    fn remove(&mut self, name: Name, source: IpAddr, number: u64) -> Option<Arc<Slot>> {
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
        self.resize(name, count + 1, count);
        Some(slot)
    }

    /// Moves an owner from `before` to `now` associations.
    fn resize(&mut self, name: Name, before: usize, now: usize) {
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

    fn of_listener(&self, listener: u64) -> usize {
        self.listeners.get(&listener).map_or(0, |crowd| crowd.count)
    }

    fn of_party(&self, name: Name) -> usize {
        self.parties.get(&name).map_or(0, |party| party.count)
    }

    fn of_source(&self, name: Name, source: IpAddr) -> usize {
        let slots = self.parties.get(&name).and_then(|p| p.sources.get(&source));
        slots.map_or(0, HashMap::len)
    }

    /// Returns the largest source of an owner.
    fn largest_of(&self, name: Name) -> Option<(Name, IpAddr)> {
        let (_, source) = self.parties.get(&name)?.sizes.last()?;
        Some((name, *source))
    }

    /// Returns the largest source of the largest owner, at one listener or in the process.
    fn largest(&self, listener: Option<u64>) -> Option<(Name, IpAddr)> {
        let sizes = match listener {
            Some(listener) => &self.listeners.get(&listener)?.sizes,
            None => &self.sizes,
        };
        let (_, name) = sizes.last()?;
        self.largest_of(*name)
    }
}

impl Share {
    /// Reserves a descriptor for several associations, without ending others.
    pub(crate) fn hold(&self) -> Option<Held> {
        let descriptors = &self.all.descriptors;
        let held = descriptors.open_association(1);
        held.then(|| Held(descriptors.clone()))
    }

    /// Reserves a slot for a further association that uses this many descriptors, for a known user or else
    /// for the source `from`. Ends other associations if necessary; returns `None` if that does not help.
    pub(crate) fn enter(
        self: &Arc<Self>,
        user: Option<&Arc<Account>>,
        from: IpAddr,
        descriptors: u8,
    ) -> Option<Place> {
        let user = user.filter(|account| account.is_one_user()).cloned();
        let address = user
            .as_ref()
            .map_or(0, |account| Arc::as_ptr(account).addr());
        let (name, source) = ((self.listener, address), source_network(from));
        let mut book = self.all.book();
        if book.leaving >= self.all.leaving {
            return None;
        }
        let own = match user {
            Some(_) if book.of_party(name) >= EACH => book.largest_of(name),
            None if book.of_source(name, source) >= self.each => Some((name, source)),
            _ if book.of_listener(self.listener) >= self.most => book.largest(Some(self.listener)),
            _ => None,
        };
        if let Some((name, source)) = own {
            self.all.evict(&mut book, name, source);
        }
        while !self.all.descriptors.open_association(descriptors.into()) {
            let (name, source) = book.largest(None)?;
            if book.leaving >= self.all.leaving || !self.all.evict(&mut book, name, source) {
                return None;
            }
        }
        let slot = Arc::new(Slot {
            active: AtomicU64::new(ambient::now().0),
            evicted: AtomicBool::new(false),
            waker: Mutex::default(),
            descriptors,
        });
        let number = book.insert(name, source, &slot);
        drop(book);
        Some(Place {
            share: self.clone(),
            slot,
            number,
            source,
            user,
        })
    }
}

impl Slot {
    fn evict(&self) {
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

impl Place {
    /// Records a datagram at `now`.
    pub(crate) fn touch(&self, now: Time) {
        self.slot.active.store(now.0, Ordering::Relaxed);
    }

    /// Returns the time of the last datagram.
    pub(crate) fn active(&self) -> Time {
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
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|cx| match self.is_needed(cx) {
            true => Poll::Ready(None),
            false => work.as_mut().poll(cx).map(Some),
        })
        .await
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let address = self
            .user
            .as_ref()
            .map_or(0, |user| Arc::as_ptr(user).addr());
        let all = &self.share.all;
        let mut book = all.book();
        match book.remove((self.share.listener, address), self.source, self.number) {
            Some(slot) => all.descriptors.close_association(slot.descriptors.into()),
            None => book.leaving = book.leaving.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: usize) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + u32::try_from(n).unwrap()).into())
    }

    fn associations(descriptors: usize) -> Arc<Associations> {
        Associations::new(Arc::new(Descriptors::new(descriptors)))
    }

    /// Frees the slots of associations that were asked to end, as their tasks would.
    fn leave(places: &mut Vec<Place>) -> usize {
        let before = places.len();
        places.retain(|place| !place.slot.evicted.load(Ordering::Relaxed));
        before - places.len()
    }

    #[test]
    fn a_user_and_a_source_have_their_share_and_lose_their_own_idlest() {
        let share = associations(usize::MAX).of_listener(true);
        let ann = Arc::new(Account::of_a_user());
        for user in [Some(&ann), None] {
            let mut other = vec![share.enter(None, ip(9), 1).unwrap()];
            let mut own = Vec::new();
            for n in 0..2 * EACH {
                // A user counts as one whatever the source address.
                let from = if user.is_some() { ip(n % 3) } else { ip(1) };
                own.push(share.enter(user, from, 1).unwrap());
                own[n.min(own.len() - 1)].touch(Time(n as u64));
                leave(&mut own);
                assert!(own.len() <= EACH, "{}", own.len());
            }
            assert!(own.len() > EACH - 2 * EACH / PART, "{}", own.len());
            assert_eq!(leave(&mut other), 0, "another one lost theirs");
        }
        let book = share.all.book();
        assert!(book.parties.is_empty() && book.sizes.is_empty() && book.listeners.is_empty());
        assert_eq!(book.leaving, 0);
    }

    #[test]
    fn the_idlest_one_goes() {
        let share = associations(usize::MAX).of_listener(true);
        let mut own: Vec<_> = (0..EACH)
            .map(|_| share.enter(None, ip(1), 1).unwrap())
            .collect();
        for (n, place) in own.iter().enumerate() {
            place.touch(Time(1_000 + n as u64));
        }
        let idle: Vec<_> = [7, 300, 301].into_iter().chain(50..55).collect();
        assert_eq!(idle.len(), EACH / PART);
        for n in &idle {
            own[*n].touch(Time(1));
        }
        let gone: Vec<_> = idle.iter().map(|n| own[*n].number).collect();
        own.push(share.enter(None, ip(1), 1).unwrap());
        leave(&mut own);
        assert_eq!(own.len(), EACH + 1 - gone.len());
        assert!(own.iter().all(|place| !gone.contains(&place.number)));
    }

    #[test]
    fn a_full_listener_and_a_full_process_take_from_the_largest() {
        let all = associations(4000);
        let (one, two) = (all.of_listener(true), all.of_listener(false));
        let mut few: Vec<_> = (0..5).map(|n| one.enter(None, ip(n), 1).unwrap()).collect();
        let mut many = Vec::new();
        for _ in 0..6000 {
            many.push(two.enter(None, ip(77), 1).unwrap());
            leave(&mut many);
        }
        assert!(
            many.len() <= 2000,
            "half of the descriptors: {}",
            many.len()
        );
        assert_eq!(leave(&mut few), 0);
        few.extend((0..50).map(|n| one.enter(None, ip(n), 1).unwrap()));
        assert!(leave(&mut many) > 0 && leave(&mut few) == 0);

        let share = associations(usize::MAX).of_listener(true);
        let users = OF_LISTENER / EACH;
        let accounts: Vec<_> = (0..users).map(|_| Arc::new(Account::of_a_user())).collect();
        let each = accounts
            .iter()
            .flat_map(|user| std::iter::repeat_n(user, EACH));
        let mut full: Vec<_> = each
            .filter_map(|u| share.enter(Some(u), ip(1), 1))
            .collect();
        assert_eq!(full.len(), OF_LISTENER);
        let mut small = vec![share.enter(None, ip(1), 1).unwrap()];
        assert!(leave(&mut full) > 0 && leave(&mut small) == 0);
    }

    #[test]
    fn who_does_not_leave_keeps_others_out() {
        let share = associations(usize::MAX).of_listener(true);
        let places: Vec<_> = (0..10 * EACH)
            .map_while(|_| share.enter(None, ip(1), 1))
            .collect();
        assert!(places.len() < EACH + 2 * LEAVING, "{}", places.len());
        drop(places);
        assert!(share.enter(None, ip(1), 1).is_some());
        assert_eq!(share.all.book().leaving, 0);
    }

    #[test]
    fn those_that_leave_slowly_do_not_take_the_descriptors_of_connections() {
        let share = associations(400).of_listener(true);
        let places: Vec<_> = (0..600)
            .filter_map(|n| share.enter(None, ip(n), 1))
            .collect();
        let most = 400 / 2 + 400 / LEAVING_PART;
        assert!(places.len() <= most, "{} are open", places.len());
    }

    #[tokio::test]
    async fn an_end_is_heard_before_and_during_the_work() {
        let all = associations(2);
        let share = all.of_listener(false);
        let place = share.enter(None, ip(1), 1).unwrap();
        assert_eq!(place.during(async { 7 }).await, Some(7));
        let task = tokio::spawn(async move { place.during(std::future::pending::<()>()).await });
        tokio::task::yield_now().await;
        let next = share.enter(None, ip(2), 1).unwrap();
        assert_eq!(task.await.unwrap(), None);
        let third = share.enter(None, ip(3), 1).unwrap();
        assert_eq!(next.during(std::future::pending::<()>()).await, None);
        drop((next, third));
    }
}
