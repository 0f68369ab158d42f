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
use adit_stream::Meter;
use adit_wire::Target;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::{debug, trace, warn};

use super::{BoxDatagrams, Key, PacketCodec, ReplySeal};
use crate::Router;

/// Associations of one listener.
const MAX_ASSOCIATIONS: usize = 16_384;
/// Datagrams that wait while the way of an association is being opened.
const WAITING: usize = 8;
/// Datagrams brought back in one go before others get their turn.
const BATCH: usize = 64;
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
    socket: Arc<Udp>,
    codec: Box<dyn PacketCodec>,
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
    /// Where answers go: the address of the last authentic packet.
    back: Mutex<SocketAddr>,
    moved: AtomicU64,
    dns_only: AtomicBool,
}

impl Entry {
    fn lock<'a, T>(mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, packet: &mut PacketBuf, target: &Target) {
        if let Some(way) = self.way.get() {
            if let Err(e) = way.try_send(packet, target) {
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

    fn opened(&self, way: BoxDatagrams) {
        let mut waiting = Self::lock(&self.waiting);
        // Only the association's own task opens its way, once.
        let _ = self.way.set(way);
        for (target, mut packet) in waiting.drain(..) {
            if let Some(way) = self.way.get()
                && let Err(e) = way.try_send(&mut packet, &target)
            {
                trace!("datagram to {target} is lost: {e}");
            }
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
    ) -> Self {
        Self {
            socket,
            codec,
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
        let mut packet = PacketBuf::default();
        let (ended_tx, mut ended) = mpsc::channel(256);
        let mut tasks = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                biased;
                Some(key) = ended.recv() => {
                    self.table.remove(&key);
                    self.codec.forget(key);
                    while tasks.try_join_next().is_some() {}
                    if self.single {
                        return;
                    }
                }
                () = sleep(self.ttl.idle), if self.single && self.table.is_empty() => return,
                received = self.socket.recv(&mut packet) => match received {
                    Ok(from) => self.receive(&mut packet, from, &ended_tx, &mut tasks),
                    Err(e) => {
                        warn!("receiving datagrams: {e}");
                        sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
    }

    fn receive(
        &mut self,
        packet: &mut PacketBuf,
        from: SocketAddr,
        ended: &mpsc::Sender<Key>,
        tasks: &mut tokio::task::JoinSet<()>,
    ) {
        let (key, target) = match self.codec.open(packet, from) {
            Ok(opened) => opened,
            Err(why) => return trace!("datagram from {from} dropped: {why}"),
        };
        self.meter.add_up(packet.payload().len());
        if let Some(entry) = self.table.get(&key) {
            let mut back = Entry::lock(&entry.back);
            if *back != from {
                debug!("association {key:?} moves from {back} to {from}");
                *back = from;
            }
            drop(back);
            entry.moved.fetch_add(1, Ordering::Relaxed);
            if target.port != 53 {
                entry.dns_only.store(false, Ordering::Relaxed);
            }
            return entry.send(packet, &target);
        }
        if self.table.len() >= MAX_ASSOCIATIONS {
            // Never push out a living one: a 2022 session must be remembered for its window.
            self.codec.forget(key);
            return debug!("datagram from {from} dropped: {MAX_ASSOCIATIONS} associations");
        }
        let Some(sealer) = self.codec.sealer(key) else {
            return;
        };
        debug!("association from {from} begins with {target}");
        let entry = Arc::new(Entry {
            way: OnceLock::new(),
            waiting: Mutex::default(),
            back: Mutex::new(from),
            moved: AtomicU64::new(1),
            dns_only: AtomicBool::new(target.port == 53),
        });
        entry.send(packet, &target);
        self.table.insert(key, entry.clone());
        let task = Association {
            entry,
            sealer,
            socket: self.socket.clone(),
            meter: self.meter.clone(),
            ttl: self.ttl,
        };
        let (router, ended) = (self.router.clone(), ended.clone());
        tasks.spawn(async move {
            task.run(&router, &target).await;
            // The listener may be gone already.
            let _ = ended.send(key).await;
        });
    }
}

/// The way back of one association.
struct Association {
    entry: Arc<Entry>,
    sealer: Box<dyn ReplySeal>,
    socket: Arc<Udp>,
    meter: Arc<Meter>,
    ttl: Ttl,
}

thread_local! {
    /// One buffer for all associations of a thread: none is held while nothing arrives.
    static SCRATCH: RefCell<PacketBuf> = RefCell::new(PacketBuf::default());
}

impl Association {
    async fn run(mut self, router: &Router, target: &Target) {
        self.meter.open();
        match router.pick(target).associate().await {
            Ok(way) => {
                self.entry.opened(way);
                self.pump().await;
            }
            Err(why) => debug!("no way for datagrams to {target}: {why}"),
        }
        self.meter.close();
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
        let entry = self.entry.clone();
        let Some(way) = entry.way.get() else {
            return Poll::Ready(());
        };
        SCRATCH.with_borrow_mut(|packet| {
            for _ in 0..BATCH {
                let source = match way.poll_recv(cx, packet) {
                    Poll::Ready(Ok(source)) => source,
                    Poll::Ready(Err(e)) => {
                        debug!("association ends: {e}");
                        return Poll::Ready(());
                    }
                    Poll::Pending => return Poll::Pending,
                };
                entry.moved.fetch_add(1, Ordering::Relaxed);
                self.meter.add_down(packet.payload().len());
                let back = *Entry::lock(&entry.back);
                let sent = match self.sealer.seal(packet, &source) {
                    Ok(()) => self.socket.try_send(packet.payload(), back),
                    Err(why) => Err(std::io::Error::other(why)),
                };
                if let Err(e) = sent {
                    trace!("datagram to {back} is lost: {e}");
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }
}
