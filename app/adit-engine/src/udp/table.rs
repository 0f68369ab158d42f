//! The table of associations behind one UDP socket.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use adit_net::{PacketBuf, Udp, ambient};
use adit_stream::slice::give_way;
use adit_stream::{Count, Meter};
use adit_wire::{Target, Time};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{Instant, Sleep, sleep};
use tracing::{debug, trace, warn};

use super::backlog::Backlog;
use super::client_side::{ClientReceiver, ClientSender, ClientSide};
use super::transparent::{Contacts, Interception};
use super::ttl::Ttl;
use super::{BoxDatagrams, Key, PacketCodec, Place, Share};
use crate::account::{Account, asker};
use crate::{DialError, Router};

/// Complaints about datagrams that are lost are at least this far apart.
const QUIET: Duration = Duration::from_secs(60);
/// Batches that are moved in one go before others get their turn.
const BATCHES: usize = 8;
/// Descriptors that an association takes: its way out.
const DESCRIPTORS: u8 = 1;

/// Receives on one socket for all associations of a listener.
pub struct Listener {
    near: ClientSide,
    common: Arc<Common>,
    room: Room,
    table: HashMap<Key, Known>,
    /// An association had to be refused.
    crowded: bool,
}

/// An association and its task.
struct Known {
    entry: Arc<Entry>,
    task: AbortHandle,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.table.values().for_each(|known| known.task.abort());
    }
}

/// What all associations of a table have in common.
struct Common {
    router: Arc<Router>,
    meter: Arc<Meter>,
    ttl: Ttl,
    /// When a loss was last spoken of.
    complained: Mutex<Option<Time>>,
    /// Associations that have ended and are in the table still: each comes here once.
    ended: Mutex<Vec<Key>>,
    some_ended: Notify,
}

/// Where associations have their places.
enum Room {
    /// Each has one of its own among those of the listener.
    Shared(Arc<Share>),
    /// The listener exists for one association and ends with it; whoever made it looks after its
    /// place.
    Single(Arc<Place>),
}

/// What the receiving side and the association's own task share.
struct Entry {
    way: OnceLock<BoxDatagrams>,
    /// What waits for the way; nothing once it is open.
    waiting: Mutex<Option<Box<Backlog<Target>>>>,
    /// Whose association it is.
    account: Option<Arc<Account>>,
    place: Hold,
    /// Where answers go: the address of the last authentic packet.
    back: Mutex<SocketAddr>,
    dns_only: AtomicBool,
    /// Whom the client has written to, where that decides who may answer.
    contacts: Option<Arc<Contacts>>,
}

/// The place of an association.
enum Hold {
    Own(Place),
    Lent(Arc<Place>),
}

impl Deref for Hold {
    type Target = Place;

    fn deref(&self) -> &Place {
        match self {
            Self::Own(place) => place,
            Self::Lent(place) => place,
        }
    }
}

impl Entry {
    fn lock<'a, T>(mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packet came from `from`: that is where answers go from now on.
    fn came(&self, from: SocketAddr, target: &Target, now: Time) {
        let mut back = Self::lock(&self.back);
        if *back != from {
            debug!("an association moves from {back} to {from}");
            *back = from;
        }
        drop(back);
        self.place.touch(now);
        if target.port != 53 && self.dns_only.load(Ordering::Relaxed) {
            self.dns_only.store(false, Ordering::Relaxed);
        }
        if let Some(contacts) = &self.contacts {
            contacts.note(target);
        }
    }

    /// Sends a packet, or keeps it until the way is open.
    fn send(&self, packet: &mut PacketBuf, target: &Target) -> io::Result<()> {
        if let Some(way) = self.way.get() {
            return way.send(packet, target);
        }
        let mut waiting = Self::lock(&self.waiting);
        // The way may have opened between the look above and the lock.
        if let Some(way) = self.way.get() {
            return way.send(packet, target);
        }
        let waiting = waiting.get_or_insert_default();
        let taken = waiting.push(target.clone(), packet.payload());
        let full = "too many datagrams wait for their way to open";
        let full = || io::Error::new(io::ErrorKind::QuotaExceeded, full);
        taken.then_some(()).ok_or_else(full)
    }

    fn flush(&self) {
        if let Some(Err(e)) = self.way.get().map(|way| way.flush()) {
            trace!("datagrams are lost: {e}");
        }
    }

    fn opened(&self, way: BoxDatagrams, lost: impl Fn(&io::Error)) {
        let mut waiting = Self::lock(&self.waiting);
        // Only the association's own task opens its way, once.
        let _ = self.way.set(way);
        let (Some(way), Some(mut backlog)) = (self.way.get(), waiting.take()) else {
            return;
        };
        SCRATCH.with_borrow_mut(|packet| {
            for (target, payload) in backlog.take() {
                if !packet.load(&payload) {
                    continue;
                }
                if let Err(e) = way.send(packet, &target) {
                    lost(&e);
                }
            }
        });
        drop(waiting);
        self.flush();
    }
}

impl Common {
    /// An association has ended.
    fn end(&self, key: Key) {
        Entry::lock(&self.ended).push(key);
        self.some_ended.notify_one();
    }

    /// A datagram of a client is lost.
    fn lost(&self, why: &io::Error) {
        trace!("a datagram is lost: {why}");
        self.meter.lose();
        // What a rule forbids is no surprise, and what the network does is not our doing.
        if !matches!(
            why.kind(),
            io::ErrorKind::QuotaExceeded | io::ErrorKind::WouldBlock
        ) {
            return;
        }
        let now = ambient::now();
        let mut complained = Entry::lock(&self.complained);
        if complained.is_none_or(|at| now.since(at) >= QUIET) {
            *complained = Some(now);
            warn!(
                "datagrams are lost: {why} (said once in {} s)",
                QUIET.as_secs()
            );
        }
    }
}

impl Listener {
    /// A table without associations.
    #[must_use]
    pub fn new(
        socket: Arc<Udp>,
        codec: Box<dyn PacketCodec>,
        router: Arc<Router>,
        meter: Arc<Meter>,
        ttl: Ttl,
        share: Arc<Share>,
    ) -> Self {
        let near = ClientSide::Spoken(socket, codec);
        Self::with(near, router, meter, ttl, Room::Shared(share))
    }

    /// A table for one association, which has its place: it ends with it.
    pub(crate) fn single(
        socket: Arc<Udp>,
        codec: Box<dyn PacketCodec>,
        router: Arc<Router>,
        meter: Arc<Meter>,
        ttl: Ttl,
        place: Arc<Place>,
    ) -> Self {
        let near = ClientSide::Spoken(socket, codec);
        Self::with(near, router, meter, ttl, Room::Single(place))
    }

    /// A table for datagrams that are taken on their way.
    #[must_use]
    pub fn transparent(
        interception: Interception,
        router: Arc<Router>,
        meter: Arc<Meter>,
        ttl: Ttl,
        share: Arc<Share>,
    ) -> Self {
        let near = ClientSide::Taken(Arc::new(interception.counted_by(share.clone())));
        Self::with(near, router, meter, ttl, Room::Shared(share))
    }

    fn with(
        near: ClientSide,
        router: Arc<Router>,
        meter: Arc<Meter>,
        ttl: Ttl,
        room: Room,
    ) -> Self {
        let common = Arc::new(Common {
            router,
            meter,
            ttl,
            complained: Mutex::default(),
            ended: Mutex::default(),
            some_ended: Notify::new(),
        });
        Self {
            near,
            common,
            room,
            table: HashMap::new(),
            crowded: false,
        }
    }

    /// Receives for ever, or until its only association ends. Associations end with it.
    pub async fn run(mut self) {
        let common = self.common.clone();
        let ear = self.near.ear();
        let single = matches!(self.room, Room::Single(_));
        let idle = self.common.ttl.idle;
        loop {
            tokio::select! {
                biased;
                () = common.some_ended.notified() => {
                    let ended = std::mem::take(&mut *Entry::lock(&common.ended));
                    for key in &ended {
                        self.table.remove(key);
                        self.near.forget(*key);
                    }
                    if single && !ended.is_empty() {
                        return;
                    }
                }
                () = sleep(idle), if single && self.table.is_empty() => return,
                ready = ear.readable() => {
                    let received = ready.and_then(|()| self.batches(&ear));
                    if std::mem::take(&mut self.crowded) {
                        // Those that were told to end come to do so.
                        yield_now().await;
                    }
                    if let Err(e) = received {
                        warn!("receiving datagrams: {e}");
                        sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
    }

    /// Receives what there is, but not for ever.
    fn batches(&mut self, ear: &ClientReceiver) -> io::Result<()> {
        SCRATCH.with_borrow_mut(|packet| {
            for _ in 0..BATCHES {
                let now = ambient::now();
                // Packets of one association follow each other; they leave together.
                let mut last: Option<(Key, Arc<Entry>)> = None;
                let received = ear.try_recv(packet, |packet, from, to| {
                    let (key, target) = match self.near.open(packet, from, to) {
                        Ok(opened) => opened,
                        Err(why) => return trace!("datagram from {from} dropped: {why}"),
                    };
                    if last.as_ref().is_none_or(|(known, _)| *known != key) {
                        if let Some((_, entry)) = last.take() {
                            entry.flush();
                        }
                        last = self.entry(key, from, &target).map(|e| (key, e));
                    }
                    if let Some((_, entry)) = &last {
                        self.common.meter.add_up(packet.payload().len());
                        if let Some(account) = &entry.account {
                            account.packet_up(packet.payload().len());
                        }
                        entry.came(from, &target, now);
                        if let Err(e) = entry.send(packet, &target) {
                            self.common.lost(&e);
                        }
                    }
                });
                if let Some((_, entry)) = last {
                    entry.flush();
                }
                match received {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    received => received?,
                }
            }
            Ok(())
        })
    }

    /// The association of a packet; a new one if there is none and there is room.
    fn entry(&mut self, key: Key, from: SocketAddr, target: &Target) -> Option<Arc<Entry>> {
        if let Some(known) = self.table.get(&key) {
            return Some(known.entry.clone());
        }
        let account = self.near.account(key);
        let place = match &self.room {
            Room::Shared(share) => share
                .enter(account.as_ref(), from.ip(), DESCRIPTORS)
                .map(Hold::Own),
            Room::Single(place) => Some(Hold::Lent(place.clone())),
        };
        let Some(place) = place else {
            self.crowded = true;
            self.near.forget(key);
            let why = "no room for another association";
            let why = io::Error::new(io::ErrorKind::QuotaExceeded, why);
            self.common.lost(&why);
            return None;
        };
        let connector = self.common.router.pick(target);
        let asker = asker(account.as_ref(), from.ip());
        let associate = async move { connector.associate().await };
        let mut opening: Opening = Box::pin(asker.scope(associate));
        // Most ways need nothing that has to be waited for, and are open at once.
        let way = match opening
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(Ok(way)) => OnceLock::from(way),
            Poll::Ready(Err(why)) => {
                // As if it had begun and ended.
                self.common.end(key);
                debug!("no way for datagrams to {target}: {why}");
                return None;
            }
            Poll::Pending => OnceLock::new(),
        };
        let stage = match way.get() {
            Some(_) => Stage::Open(Box::pin(sleep(self.common.ttl.dns))),
            None => Stage::Opening(opening),
        };
        let mouth = self.near.mouth(key)?;
        debug!("association from {from} begins with {target}");
        let mut removed = None;
        if let Some(account) = &account {
            if account.is_one_user() {
                let Some(leaves) = account.leaves() else {
                    self.common.end(key);
                    return None;
                };
                removed = Some(leaves);
            }
            account.begin_udp();
        }
        let entry = Arc::new(Entry {
            account,
            place,
            way,
            waiting: Mutex::default(),
            back: Mutex::new(from),
            dns_only: AtomicBool::new(true),
            contacts: mouth.contacts(),
        });
        self.common.meter.open();
        let task = tokio::spawn(Association {
            entry: entry.clone(),
            mouth,
            common: self.common.clone(),
            stage,
            removed,
            key,
        });
        let task = task.abort_handle();
        let known = Known {
            entry: entry.clone(),
            task,
        };
        self.table.insert(key, known);
        Some(entry)
    }
}

/// A way that is being opened.
type Opening = Pin<Box<dyn Future<Output = Result<BoxDatagrams, DialError>> + Send>>;

/// The way back of one association: a task of few bytes, since there are many.
struct Association {
    entry: Arc<Entry>,
    mouth: ClientSender,
    common: Arc<Common>,
    stage: Stage,
    /// Ready when the user is removed. The end of all users is the end of the table.
    removed: Option<Pin<Box<OwnedNotified>>>,
    key: Key,
}

enum Stage {
    Opening(Opening),
    /// With the time at which to look whether it has been quiet for long.
    Open(Pin<Box<Sleep>>),
}

impl Drop for Association {
    fn drop(&mut self) {
        self.common.meter.close();
        self.common.end(self.key);
    }
}

thread_local! {
    /// One buffer for all associations of a thread: none is held while nothing arrives.
    static SCRATCH: RefCell<PacketBuf> = RefCell::new(PacketBuf::default());
}

impl Future for Association {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        // Whoever lent it looks after it.
        if let Hold::Own(place) = &this.entry.place
            && place.is_needed(cx)
        {
            debug!("an association ends: its room is needed");
            return Poll::Ready(());
        }
        if let Some(removed) = &mut this.removed
            && removed.as_mut().poll(cx).is_ready()
        {
            debug!("an association ends: the user was removed");
            return Poll::Ready(());
        }
        if let Stage::Opening(opening) = &mut this.stage {
            match ready!(opening.as_mut().poll(cx)) {
                Ok(way) => {
                    let common = &this.common;
                    this.entry.opened(way, |why| common.lost(why));
                    this.stage = Stage::Open(Box::pin(sleep(this.idle())));
                }
                Err(why) => {
                    debug!("no way for datagrams: {why}");
                    return Poll::Ready(());
                }
            }
        }
        if this.bring_back(cx).is_ready() {
            return Poll::Ready(());
        }
        this.watch_quiet(cx)
    }
}

impl Association {
    /// Ready when nothing has passed for as long as the association may be idle.
    fn watch_quiet(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let idle = self.idle();
        let Stage::Open(timer) = &mut self.stage else {
            return Poll::Pending;
        };
        loop {
            ready!(timer.as_mut().poll(cx));
            let quiet = ambient::now().since(self.entry.place.active());
            match idle.checked_sub(quiet) {
                Some(left) if !left.is_zero() => timer.as_mut().reset(Instant::now() + left),
                _ => return Poll::Ready(()),
            }
        }
    }

    fn idle(&self) -> Duration {
        let ttl = &self.common.ttl;
        if self.entry.dns_only.load(Ordering::Relaxed) {
            ttl.dns
        } else {
            ttl.idle
        }
    }

    /// Brings back what has arrived; ready when the way is broken.
    fn bring_back(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            entry,
            mouth,
            common,
            ..
        } = self;
        let Some(way) = entry.way.get() else {
            return Poll::Ready(());
        };
        SCRATCH.with_borrow_mut(|packet| {
            for _ in 0..BATCHES {
                let back = *Entry::lock(&entry.back);
                let mut came = false;
                let received = way.poll_recv(cx, packet, &mut |packet, source| {
                    came = true;
                    common.meter.add_down(packet.payload().len());
                    if let Some(account) = &entry.account {
                        account.packet_down(packet.payload().len());
                    }
                    if let Err(e) = mouth.queue(packet, source, back) {
                        trace!("datagram to {back} is lost: {e}");
                    }
                });
                if came {
                    entry.place.touch(ambient::now());
                }
                if let Err(e) = mouth.flush() {
                    trace!("datagrams to {back} are lost: {e}");
                }
                match received {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(e)) => {
                        debug!("association ends: {e}");
                        return Poll::Ready(());
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            give_way(cx);
            Poll::Pending
        })
    }
}
