//! Who has how many associations in the whole process, and which one ends when another one needs
//! its room.
//!
//! An association belongs to a party: a known user, or everybody at a listener who is none. Within
//! a party it belongs to a source, an IPv4 address or an IPv6 /64. A user, and a source that is no
//! known user, has a share of its own; whatever exceeds it ends the idlest one of that share. When
//! the listener or the process has no room, the largest source of the largest party loses its
//! idlest ones, so that nobody is left without UDP by somebody else's appetite.

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

/// Associations of one user, or of one source that is no known user.
const EACH: usize = 512;
/// Associations of one listener.
const OF_LISTENER: usize = 16_384;
/// One in this many of a source's associations ends at a time: looking for the idlest one means to
/// look at all, which has to pay for several.
const PART: usize = 64;
/// Associations that were told to end and have not done so yet. Beyond that none begins: each still
/// has its descriptor and its memory.
const LEAVING: usize = 256;
/// Nor beyond one in this many of the descriptors of the process: those that leave are not counted
/// among them any more, and a busy machine takes a while to close them.
const LEAVING_PART: usize = 16;

/// All associations of a process.
#[derive(Debug)]
pub(crate) struct Associations {
    descriptors: Arc<Descriptors>,
    book: Mutex<Book>,
    /// How many may have been told to end and not have done so yet.
    leaving: usize,
}

#[derive(Debug, Default)]
struct Book {
    /// What the last listener and the last association were called.
    last: u64,
    parties: HashMap<Name, Party>,
    /// All parties by the number of their associations.
    sizes: BTreeSet<(usize, Name)>,
    listeners: HashMap<u64, Crowd>,
    /// Associations that were told to end and have not done so yet.
    leaving: usize,
}

/// The parties of one listener.
#[derive(Debug, Default)]
struct Crowd {
    count: usize,
    sizes: BTreeSet<(usize, Name)>,
}

/// A listener, and the address of the account of one of its users; 0 for all others.
type Name = (u64, usize);

#[derive(Debug, Default)]
struct Party {
    count: usize,
    sources: HashMap<IpAddr, HashMap<u64, Arc<Slot>>>,
    /// The sources by the number of their associations.
    sizes: BTreeSet<(usize, IpAddr)>,
}

/// What the book and the association share.
#[derive(Debug, Default)]
struct Slot {
    /// When something passed, in microseconds.
    active: AtomicU64,
    evicted: AtomicBool,
    descriptors: u8,
    waker: Mutex<Option<Waker>>,
}

/// The associations of one listener.
#[derive(Debug)]
pub struct Share {
    all: Arc<Associations>,
    listener: u64,
    /// How many there may be of one source that is no known user.
    each: usize,
    /// How many there may be.
    most: usize,
}

/// A descriptor that serves several associations; returned when dropped.
#[derive(Debug)]
pub(crate) struct Held(Arc<Descriptors>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.close_association(1);
    }
}

/// The place of one association; leaves when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    share: Arc<Share>,
    slot: Arc<Slot>,
    number: u64,
    source: IpAddr,
    /// Keeps the address that names the party from being used again.
    user: Option<Arc<Account>>,
}

impl Associations {
    /// None yet, within these descriptors.
    pub(crate) fn new(descriptors: Arc<Descriptors>) -> Arc<Self> {
        let leaving = (descriptors.total() / LEAVING_PART).clamp(1, LEAVING);
        Arc::new(Self {
            descriptors,
            book: Mutex::default(),
            leaving,
        })
    }

    /// The associations of one more listener. Where `strangers` come, each source has a share.
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

    /// Ends the idlest associations of a source; says whether there was one.
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

    /// A party has `now` associations instead of `before`.
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

    /// The largest source of a party.
    fn largest_of(&self, name: Name) -> Option<(Name, IpAddr)> {
        let (_, source) = self.parties.get(&name)?.sizes.last()?;
        Some((name, *source))
    }

    /// The largest source of the largest party, at one listener or at all.
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
    /// A descriptor that serves several associations; nobody loses anything for it.
    pub(crate) fn hold(&self) -> Option<Held> {
        let descriptors = &self.all.descriptors;
        let held = descriptors.open_association(1);
        held.then(|| Held(descriptors.clone()))
    }

    /// A place for one more association that takes this many descriptors, of a known user or of
    /// whoever comes from `from`. Where there is none, others lose theirs; `None` if there is
    /// nothing to be had that way.
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
    /// Something passed at `now`.
    pub(crate) fn touch(&self, now: Time) {
        self.slot.active.store(now.0, Ordering::Relaxed);
    }

    /// When something passed last.
    pub(crate) fn active(&self) -> Time {
        Time(self.slot.active.load(Ordering::Relaxed))
    }

    /// Whether the place is needed for another; the task of `cx` is woken when it is. For one task.
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
        // First the ear, then the look: an end between the two is heard.
        slot.evicted.load(Ordering::Acquire)
    }

    /// Does `work` until it is done or the place is needed for another; `None` is the latter. For
    /// one task.
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

    /// Those that were told to end leave, as their tasks would.
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
                // A user is one wherever they are.
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
