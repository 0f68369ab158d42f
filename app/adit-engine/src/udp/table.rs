//! The table of associations behind one UDP socket.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use adit_net::{PacketBuf, Udp};
use adit_stream::slice::give_way;
use adit_stream::{Count, Meter};
use adit_wire::Target;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tracing::{debug, trace, warn};

use super::near::{Ear, Mouth, Near};
use super::transparent::{Contacts, Interception};
use super::{BoxDatagrams, Key, PacketCodec};
use crate::Router;
use crate::account::{Account, Open, asker, during};

/// Associations of one listener.
const MAX_ASSOCIATIONS: usize = 16_384;
/// Datagrams that wait while the way of an association is being opened.
const WAITING: usize = 8;
/// Batches that are moved in one go before others get their turn.
const BATCHES: usize = 8;
/// An idle time is looked at this often within itself.
const PARTS: u32 = 4;

/// How long associations are kept without traffic.
#[derive(Debug, Clone, Copy)]
pub struct Ttl {
    /// Any traffic.
    pub idle: Duration,
    /// Associations that only asked for names (port 53).
    pub dns: Duration,
}

/// Receives on one socket for all associations of a listener.
pub struct Listener {
    near: Near,
    router: Arc<Router>,
    meter: Arc<Meter>,
    ttl: Ttl,
    /// Whether the listener exists for one association and ends with it.
    single: bool,
    table: HashMap<Key, Arc<Entry>>,
}

/// What the receiving side and the association's own task share.
struct Entry {
    way: OnceLock<BoxDatagrams>,
    waiting: Mutex<Vec<(Target, PacketBuf)>>,
    /// Whose association it is.
    account: Option<Arc<Account>>,
    /// Where answers go: the address of the last authentic packet.
    back: Mutex<SocketAddr>,
    moved: AtomicU64,
    dns_only: AtomicBool,
    /// Whom the client has written to, where that decides who may answer.
    contacts: Option<Arc<Contacts>>,
}

impl Entry {
    fn lock<'a, T>(mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packet came from `from`: that is where answers go from now on.
    fn came(&self, from: SocketAddr, target: &Target) {
        let mut back = Self::lock(&self.back);
        if *back != from {
            debug!("an association moves from {back} to {from}");
            *back = from;
        }
        drop(back);
        self.moved.fetch_add(1, Ordering::Relaxed);
        if target.port != 53 {
            self.dns_only.store(false, Ordering::Relaxed);
        }
        if let Some(contacts) = &self.contacts {
            contacts.note(target);
        }
    }

    fn send(&self, packet: &mut PacketBuf, target: &Target) {
        if let Some(way) = self.way.get() {
            if let Err(e) = way.send(packet, target) {
                trace!("datagram to {target} is lost: {e}");
            }
            return;
        }
        let mut waiting = Self::lock(&self.waiting);
        // The way may have opened between the look above and the lock.
        if self.way.get().is_some() {
            drop(waiting);
            self.send(packet, target);
        } else if waiting.len() < WAITING {
            waiting.push((target.clone(), PacketBuf::from_payload(packet.payload())));
        }
    }

    fn flush(&self) {
        if let Some(Err(e)) = self.way.get().map(|way| way.flush()) {
            trace!("datagrams are lost: {e}");
        }
    }

    fn opened(&self, way: BoxDatagrams) {
        let mut waiting = Self::lock(&self.waiting);
        // Only the association's own task opens its way, once.
        let _ = self.way.set(way);
        for (target, mut packet) in waiting.drain(..) {
            if let Some(way) = self.way.get()
                && let Err(e) = way.send(&mut packet, &target)
            {
                trace!("datagram to {target} is lost: {e}");
            }
        }
        drop(waiting);
        self.flush();
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
    ) -> Self {
        Self::with(Near::Spoken(socket, codec), router, meter, ttl)
    }

    /// A table for datagrams that are taken on their way.
    #[must_use]
    pub fn transparent(
        interception: Interception,
        router: Arc<Router>,
        meter: Arc<Meter>,
        ttl: Ttl,
    ) -> Self {
        Self::with(Near::Taken(Arc::new(interception)), router, meter, ttl)
    }

    fn with(near: Near, router: Arc<Router>, meter: Arc<Meter>, ttl: Ttl) -> Self {
        Self {
            near,
            router,
            meter,
            ttl,
            single: false,
            table: HashMap::new(),
        }
    }

    /// Ends with its first association.
    #[must_use]
    pub fn single(mut self) -> Self {
        self.single = true;
        self
    }

    /// Receives for ever, or until its only association ends. Associations end with it.
    pub async fn run(mut self) {
        let (ended_tx, mut ended) = mpsc::channel(256);
        let mut tasks = JoinSet::new();
        let ear = self.near.ear();
        loop {
            tokio::select! {
                biased;
                Some(key) = ended.recv() => {
                    self.table.remove(&key);
                    self.near.forget(key);
                    while tasks.try_join_next().is_some() {}
                    if self.single {
                        return;
                    }
                }
                () = sleep(self.ttl.idle), if self.single && self.table.is_empty() => return,
                ready = ear.readable() => {
                    let received = ready.and_then(|()| self.batches(&ear, &ended_tx, &mut tasks));
                    if let Err(e) = received {
                        warn!("receiving datagrams: {e}");
                        sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
    }

    /// Receives what there is, but not for ever.
    fn batches(
        &mut self,
        ear: &Ear,
        ended: &mpsc::Sender<Key>,
        tasks: &mut JoinSet<()>,
    ) -> std::io::Result<()> {
        SCRATCH.with_borrow_mut(|packet| {
            for _ in 0..BATCHES {
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
                        last = self
                            .entry(key, from, &target, ended, tasks)
                            .map(|e| (key, e));
                    }
                    if let Some((_, entry)) = &last {
                        self.meter.add_up(packet.payload().len());
                        if let Some(account) = &entry.account {
                            account.packet_up(packet.payload().len());
                        }
                        entry.came(from, &target);
                        entry.send(packet, &target);
                    }
                });
                if let Some((_, entry)) = last {
                    entry.flush();
                }
                match received {
                    Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                    received => received?,
                }
            }
            Ok(())
        })
    }

    /// The association of a packet; a new one if there is none and there is room.
    fn entry(
        &mut self,
        key: Key,
        from: SocketAddr,
        target: &Target,
        ended: &mpsc::Sender<Key>,
        tasks: &mut JoinSet<()>,
    ) -> Option<Arc<Entry>> {
        if let Some(entry) = self.table.get(&key) {
            return Some(entry.clone());
        }
        if self.table.len() >= MAX_ASSOCIATIONS {
            // Never push out a living one: a 2022 session must be remembered for its window.
            self.near.forget(key);
            debug!("datagram from {from} dropped: {MAX_ASSOCIATIONS} associations");
            return None;
        }
        let mouth = self.near.mouth(key)?;
        debug!("association from {from} begins with {target}");
        let account = self.near.account(key);
        if let Some(account) = &account {
            account.begin_udp();
        }
        let entry = Arc::new(Entry {
            account,
            way: OnceLock::new(),
            waiting: Mutex::default(),
            back: Mutex::new(from),
            moved: AtomicU64::new(0),
            dns_only: AtomicBool::new(true),
            contacts: mouth.contacts(),
        });
        self.table.insert(key, entry.clone());
        let task = Association {
            entry: entry.clone(),
            mouth,
            meter: self.meter.clone(),
            ttl: self.ttl,
        };
        let (router, ended, target) = (self.router.clone(), ended.clone(), target.clone());
        tasks.spawn(async move {
            let account = task.entry.account.clone();
            let over = during(account.as_deref(), task.run(&router, &target)).await;
            if over.is_none() {
                debug!("an association ends: the user was removed");
            }
            // The listener may be gone already.
            let _ = ended.send(key).await;
        });
        Some(entry)
    }
}

/// The way back of one association.
struct Association {
    entry: Arc<Entry>,
    mouth: Mouth,
    meter: Arc<Meter>,
    ttl: Ttl,
}

thread_local! {
    /// One buffer for all associations of a thread: none is held while nothing arrives.
    static SCRATCH: RefCell<PacketBuf> = RefCell::new(PacketBuf::default());
}

impl Association {
    async fn run(mut self, router: &Router, target: &Target) {
        let meter = self.meter.clone();
        let _open = Open::new(&meter);
        let from = Entry::lock(&self.entry.back).ip();
        let asker = asker(self.entry.account.as_ref(), from);
        match asker.scope(router.pick(target).associate()).await {
            Ok(way) => {
                self.entry.opened(way);
                self.pump().await;
            }
            Err(why) => debug!("no way for datagrams to {target}: {why}"),
        }
    }

    async fn pump(&mut self) {
        let mut quiet = (0, 0);
        let mut timer = pin!(sleep(self.idle() / PARTS));
        poll_fn(|cx| {
            if self.bring_back(cx).is_ready() {
                return Poll::Ready(());
            }
            while timer.as_mut().poll(cx).is_ready() {
                let moved = self.entry.moved.load(Ordering::Relaxed);
                quiet = if quiet.0 == moved {
                    (moved, quiet.1 + 1)
                } else {
                    (moved, 0)
                };
                if quiet.1 >= PARTS {
                    return Poll::Ready(());
                }
                timer.as_mut().reset(Instant::now() + self.idle() / PARTS);
            }
            Poll::Pending
        })
        .await;
    }

    fn idle(&self) -> Duration {
        if self.entry.dns_only.load(Ordering::Relaxed) {
            self.ttl.dns
        } else {
            self.ttl.idle
        }
    }

    /// Brings back what has arrived; ready when the way is broken.
    fn bring_back(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            entry,
            mouth,
            meter,
            ..
        } = self;
        let Some(way) = entry.way.get() else {
            return Poll::Ready(());
        };
        SCRATCH.with_borrow_mut(|packet| {
            for _ in 0..BATCHES {
                let back = *Entry::lock(&entry.back);
                let received = way.poll_recv(cx, packet, &mut |packet, source| {
                    entry.moved.fetch_add(1, Ordering::Relaxed);
                    meter.add_down(packet.payload().len());
                    if let Some(account) = &entry.account {
                        account.packet_down(packet.payload().len());
                    }
                    if let Err(e) = mouth.queue(packet, source, back) {
                        trace!("datagram to {back} is lost: {e}");
                    }
                });
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
