//! The table of associations of one UDP socket.

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

/// Minimum interval between warnings about lost datagrams.
const QUIET: Duration = Duration::from_secs(60);
/// Maximum number of batches moved in one go before other tasks run.
const BATCHES: usize = 8;
/// Number of descriptors of an association: its outgoing socket.
const DESCRIPTORS: u8 = 1;

/// Receives on one socket for all associations of a listener.
pub struct Listener {
    near: ClientSide,
    common: Arc<Common>,
    room: Room,
    table: HashMap<Key, Known>,
    /// True if an association had to be refused.
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

/// State that all associations of a table share.
struct Common {
    router: Arc<Router>,
    meter: Arc<Meter>,
    ttl: Ttl,
    /// Time of the last warning about lost datagrams.
    complained: Mutex<Option<Time>>,
    /// Associations that have ended but are still in the table; each is listed once.
    ended: Mutex<Vec<Key>>,
    some_ended: Notify,
}

/// The slots of associations.
enum Room {
    /// Each association takes a slot of the listener's quota.
    Shared(Arc<Share>),
    /// The listener exists for one association and ends with it; its creator owns the slot.
    Single(Arc<Place>),
}

/// State shared by the receiving side and the association's own task.
struct Entry {
    way: OnceLock<BoxDatagrams>,
    /// Datagrams that wait for the path; `None` once it is open.
    waiting: Mutex<Option<Box<Backlog<Target>>>>,
    /// The account of the association's user.
    account: Option<Arc<Account>>,
    place: Hold,
    /// Destination of replies: the source of the last authentic packet.
    back: Mutex<SocketAddr>,
    dns_only: AtomicBool,
    /// The addresses that the client has sent to, where these decide which replies are accepted.
    contacts: Option<Arc<Contacts>>,
}

/// The slot of an association.
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

    /// Records a packet from `from`, which replies are sent to from now on.
    fn came(&self, from: SocketAddr, target: &Target, now: Time) {
        let mut back = Self::lock(&self.back);
        if *back != from {
            debug!("the client of an association moved from {back} to {from}");
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

    /// Sends a packet, or keeps it until the path is open.
    fn send(&self, packet: &mut PacketBuf, target: &Target) -> io::Result<()> {
        if let Some(way) = self.way.get() {
            return way.send(packet, target);
        }
        let mut waiting = Self::lock(&self.waiting);
        // The path may have opened between the first check and the lock.
        if let Some(way) = self.way.get() {
            return way.send(packet, target);
        }
        let waiting = waiting.get_or_insert_default();
        let taken = waiting.push(target.clone(), packet.payload());
        let full = "too many datagrams wait for their path to open";
        let full = || io::Error::new(io::ErrorKind::QuotaExceeded, full);
        taken.then_some(()).ok_or_else(full)
    }

    fn flush(&self) {
        if let Some(Err(e)) = self.way.get().map(|way| way.flush()) {
            trace!("datagrams were lost: {e}");
        }
    }

    fn opened(&self, way: BoxDatagrams, lost: impl Fn(&io::Error)) {
        let mut waiting = Self::lock(&self.waiting);
        // Only the association's own task opens its path, and does so once.
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
    /// Marks an association as ended.
    fn end(&self, key: Key) {
        Entry::lock(&self.ended).push(key);
        self.some_ended.notify_one();
    }

    /// Reports the loss of a client's datagram.
    fn lost(&self, why: &io::Error) {
        trace!("a datagram was lost: {why}");
        self.meter.lose();
        // Denials by a rule are expected, and network failures are not in our control.
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
                "datagrams were lost: {why} (reported once in {} s)",
                QUIET.as_secs()
            );
        }
    }
}

impl Listener {
    /// Creates an empty table.
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

    /// Creates a table for one association that has its slot already, and ends with it.
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

    /// Creates a table for intercepted datagrams.
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

    /// Receives forever, or until its only association ends. When dropped, all associations end.
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
                        // Lets associations that were asked to end do so.
                        yield_now().await;
                    }
                    if let Err(e) = received {
                        warn!("cannot receive datagrams: {e}");
                        sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
    }

    /// Receives what is available, up to [`BATCHES`].
    fn batches(&mut self, ear: &ClientReceiver) -> io::Result<()> {
        SCRATCH.with_borrow_mut(|packet| {
            for _ in 0..BATCHES {
                let now = ambient::now();
                // Consecutive packets of one association are flushed together.
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

    /// Returns the association of a packet, which is created if there is none and a slot is free.
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
            let why = "the limit of associations is reached";
            let why = io::Error::new(io::ErrorKind::QuotaExceeded, why);
            self.common.lost(&why);
            return None;
        };
        let connector = self.common.router.pick(target);
        let asker = asker(account.as_ref(), from.ip());
        let associate = async move { connector.associate().await };
        let mut opening: Opening = Box::pin(asker.scope(associate));
        // Most paths open without waiting.
        let way = match opening
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(Ok(way)) => OnceLock::from(way),
            Poll::Ready(Err(why)) => {
                // Treated as an association that started and ended.
                self.common.end(key);
                debug!("cannot open a path for datagrams to {target}: {why}");
                return None;
            }
            Poll::Pending => OnceLock::new(),
        };
        let stage = match way.get() {
            Some(_) => Stage::Open(Box::pin(sleep(self.common.ttl.dns))),
            None => Stage::Opening(opening),
        };
        let mouth = self.near.mouth(key)?;
        debug!("association from {from} starts with {target}");
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

/// A path that is being opened.
type Opening = Pin<Box<dyn Future<Output = Result<BoxDatagrams, DialError>> + Send>>;

/// The task of one association, which returns its replies. Kept small because there are many.
struct Association {
    entry: Arc<Entry>,
    mouth: ClientSender,
    common: Arc<Common>,
    stage: Stage,
    /// Completes when the user is removed. The end of all users is the end of the table.
    removed: Option<Pin<Box<OwnedNotified>>>,
    key: Key,
}

enum Stage {
    Opening(Opening),
    /// With the timer of the next check for idleness.
    Open(Pin<Box<Sleep>>),
}

impl Drop for Association {
    fn drop(&mut self) {
        self.common.meter.close();
        self.common.end(self.key);
    }
}

thread_local! {
    /// One buffer for all associations of a thread, so that idle ones need none.
    static SCRATCH: RefCell<PacketBuf> = RefCell::new(PacketBuf::default());
}

impl Future for Association {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        // A borrowed slot is managed by its owner.
        if let Hold::Own(place) = &this.entry.place
            && place.is_needed(cx)
        {
            debug!("an association ends: its slot is needed");
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
                    debug!("cannot open a path for datagrams: {why}");
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
    /// Completes when the association has been idle for its timeout.
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

    /// Returns the replies that have arrived; completes when the path has failed.
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
                        trace!("datagram to {back} was lost: {e}");
                    }
                });
                if came {
                    entry.place.touch(ambient::now());
                }
                if let Err(e) = mouth.flush() {
                    trace!("datagrams to {back} were lost: {e}");
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
