//! Limits on open connections and associations, and the accept loop that enforces them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adit_net::accept::{self, AcceptOutcome};
use adit_net::memory;
use adit_stream::Tcp;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::HandlerSlot;
use super::accept_switch::AcceptPermit;
use super::busy_timer::BusyTimer;
use crate::ConnectionAddrs;
use crate::loop_detection;

/// Minimum interval between warnings about exhaustion.
const WARN_INTERVAL: Duration = Duration::from_secs(10);

/// Number of simultaneous connections after which it is worth returning memory to the system.
const TRIM_THRESHOLD: usize = 1024;
/// Divisor of their number below which it is returned, and again: the last eighth of a crowd may end much later.
const TRIM_DIVISOR: usize = 8;
/// Number of connections whose memory is left to the allocator: about a megabyte.
const TRIM_MIN: usize = 64;
/// Delay of that, for those that end at the same time.
const TRIM_DELAY: Duration = Duration::from_secs(1);

/// The kind of a client's slot, which says how many descriptors it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    /// A connection with a descriptor of its own, and one for its outgoing side.
    Connection,
    /// A stream of a connection that has many, with a descriptor for its outgoing side alone.
    Stream,
}

impl SlotKind {
    const fn descriptors(self) -> usize {
        match self {
            Self::Connection => 2,
            Self::Stream => 1,
        }
    }
}

/// The descriptors of a process, shared by connections and associations. Either may take more than the
/// other, but not all: half is reserved for connections, an eighth for associations.
#[derive(Debug)]
pub(crate) struct DescriptorPool {
    total: usize,
    connections: AtomicUsize,
    associations: AtomicUsize,
}

impl DescriptorPool {
    /// Creates a pool of `total` descriptors.
    pub(crate) const fn new(total: usize) -> Self {
        Self {
            total,
            connections: AtomicUsize::new(0),
            associations: AtomicUsize::new(0),
        }
    }

    /// Returns the total number.
    pub(crate) const fn total(&self) -> usize {
        self.total
    }

    /// Takes the descriptors of a connection or stream; returns false if there are too few.
    fn take_for_connection(&self, kind: SlotKind) -> bool {
        let count = kind.descriptors();
        let connections = self.connections.fetch_add(count, Ordering::SeqCst);
        let associations = self.associations.load(Ordering::SeqCst);
        let fits = self.total.saturating_sub(associations.max(self.total / 8));
        if connections + count <= fits {
            return true;
        }
        self.return_of_connection(kind);
        false
    }

    fn return_of_connection(&self, kind: SlotKind) {
        self.connections
            .fetch_sub(kind.descriptors(), Ordering::SeqCst);
    }

    /// Takes the descriptors of an association; returns false if there are too few.
    pub(crate) fn take_for_association(&self, count: usize) -> bool {
        let associations = self.associations.fetch_add(count, Ordering::SeqCst);
        let connections = self.connections.load(Ordering::SeqCst);
        let fits = self.total.saturating_sub(connections.max(self.total / 2));
        if associations + count <= fits {
            return true;
        }
        self.return_of_association(count);
        false
    }

    /// Returns the descriptors of an association.
    pub(crate) fn return_of_association(&self, count: usize) {
        self.associations.fetch_sub(count, Ordering::SeqCst);
    }
}

/// Counts connections and refuses those beyond the limit.
#[derive(Debug)]
pub struct ConnectionLimiter {
    open: AtomicUsize,
    /// Maximum number of open connections since memory was last returned.
    high_water_mark: AtomicUsize,
    max: AtomicUsize,
    /// The descriptors of the process, if this is its limiter.
    descriptors: Option<Arc<DescriptorPool>>,
    /// The limiter of the process, if this is that of a listener.
    process_limiter: Option<Arc<Self>>,
}

impl ConnectionLimiter {
    /// Creates a limiter for `max` connections, which also obeys `outer`.
    #[must_use]
    pub const fn new(max: usize, process_limiter: Option<Arc<Self>>) -> Self {
        Self {
            open: AtomicUsize::new(0),
            high_water_mark: AtomicUsize::new(0),
            max: AtomicUsize::new(max),
            descriptors: None,
            process_limiter,
        }
    }

    /// Creates the limiter of a process: the descriptors are its limit.
    pub(crate) fn for_process(descriptors: Arc<DescriptorPool>) -> Self {
        Self {
            open: AtomicUsize::new(0),
            high_water_mark: AtomicUsize::new(0),
            max: AtomicUsize::new(descriptors.total / SlotKind::Connection.descriptors()),
            descriptors: Some(descriptors),
            process_limiter: None,
        }
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the lowest limit that applies.
    pub(crate) fn limit(&self) -> usize {
        let outer = self
            .process_limiter
            .as_ref()
            .map_or(usize::MAX, |outer| outer.limit());
        self.max().min(outer)
    }

    fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Limits new connections to `max` in total. Open ones stay open.
    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// Returns the reason why a connection is refused.
    fn refusal_reason(&self) -> String {
        match &self.process_limiter {
            Some(outer) if self.open_count() < self.max() => outer.refusal_reason(),
            _ => format!(
                "{} connections are open: closing new ones",
                self.open_count()
            ),
        }
    }

    /// Returns true if memory is to be returned now that `open` connections are left of a crowd. What is left is the
    /// crowd of the next time.
    fn is_below_mark(&self, open: usize) -> bool {
        let mark = self.high_water_mark.load(Ordering::Relaxed);
        let left = mark / TRIM_DIVISOR;
        let next = if left < TRIM_MIN { 0 } else { left };
        open < left
            && self
                .high_water_mark
                .compare_exchange(mark, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    pub(super) fn try_acquire(self: &Arc<Self>, kind: SlotKind) -> Option<ConnectionPermit> {
        if let Some(outer) = &self.process_limiter
            && !outer.take_slot(kind)
        {
            return None;
        }
        if self.take_slot(kind) {
            let limiter = self.clone();
            return Some(ConnectionPermit { limiter, kind });
        }
        if let Some(outer) = &self.process_limiter {
            outer.return_slot(kind);
        }
        None
    }

    /// Counts a connection, without that of the process. Returns false if there are too many.
    fn take_slot(&self, kind: SlotKind) -> bool {
        let descriptors = self.descriptors.as_ref();
        if descriptors.is_some_and(|d| !d.take_for_connection(kind)) {
            return false;
        }
        let others = self.open.fetch_add(1, Ordering::Relaxed);
        if self.process_limiter.is_none() && others >= TRIM_THRESHOLD {
            self.high_water_mark.fetch_max(others, Ordering::Relaxed);
        }
        // The maximum of a process is that of connections: streams need fewer descriptors.
        let fits = self.descriptors.is_some() || others < self.max();
        if !fits {
            self.return_slot(kind);
        }
        fits
    }

    fn return_slot(&self, kind: SlotKind) {
        if let Some(descriptors) = &self.descriptors {
            descriptors.return_of_connection(kind);
        }
        let open = self.open.fetch_sub(1, Ordering::Relaxed) - 1;
        if self.is_below_mark(open) {
            trim_memory_later();
        }
    }
}

/// The slot of one connection; freed when dropped, even by a panic.
pub(super) struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    kind: SlotKind,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.limiter.return_slot(self.kind);
        if let Some(outer) = &self.limiter.process_limiter {
            outer.return_slot(self.kind);
        }
    }
}

/// Returns memory to the system, once the connections that have just ended are gone.
fn trim_memory_later() {
    // Without a runtime the process is about to end.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async {
            sleep(TRIM_DELAY).await;
            let _ = spawn_blocking(memory::release_free_pages).await;
        });
    }
}

/// Accepts connections until the listener closes; each is served in a task of its own.
pub(crate) async fn accept_loop(
    // Dropped last: then the socket is closed.
    mut permit: AcceptPermit,
    mut socket: accept::TcpAcceptor,
    slot: HandlerSlot,
) {
    let mut complained: Option<Instant> = None;
    let mut timer = BusyTimer::new();
    if let Ok(address) = socket.local_addr() {
        loop_detection::register_port(address.port());
    }
    loop {
        // A socket that always has connections must not keep the loop from noticing.
        if !permit.is_open() && !permit.wait_until_open().await {
            return;
        }
        // A connection that was accepted is served in any case. The socket comes first, so that the rest is polled once
        // per connection.
        let outcome = tokio::select! {
            biased;
            outcome = socket.next() => outcome,
            () = permit.is_paused_or_closed() => continue,
            () = timer.wait(), if timer.is_running() => continue,
        };
        let complaint = match outcome {
            AcceptOutcome::Connection(stream, remote) => {
                timer.count_connection();
                let local = socket.local_addr_of(&stream).unwrap_or(remote);
                let peer = ConnectionAddrs { remote, local };
                let io = Box::new(Tcp::new(stream));
                let worker = slot.current();
                // Further clients wait in the kernel's backlog meanwhile.
                if worker.serve_or_wait(io, peer).await {
                    continue;
                }
                worker.connection_limiter.refusal_reason()
            }
            AcceptOutcome::Exhausted(e) => format!("cannot accept connections: {e}"),
        };
        if complained.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            complained = Some(Instant::now());
            warn!(
                "{complaint} (reported once in {} s)",
                WARN_INTERVAL.as_secs()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_connections_nor_associations_take_the_last_descriptors() {
        let count = |mut open: Box<dyn FnMut() -> bool>| (0..1000).take_while(|_| open()).count();
        let all = || Arc::new(DescriptorPool::new(80));
        let connections = |of: &Arc<DescriptorPool>| {
            let of = of.clone();
            count(Box::new(move || {
                of.take_for_connection(SlotKind::Connection)
            }))
        };
        let associations = |of: &Arc<DescriptorPool>| {
            let of = of.clone();
            count(Box::new(move || of.take_for_association(1)))
        };
        let first = all();
        assert_eq!((connections(&first), associations(&first)), (35, 10));
        let first = all();
        assert_eq!((associations(&first), connections(&first)), (40, 20));
        first.return_of_association(15);
        assert_eq!((connections(&first), associations(&first)), (7, 1));
    }

    #[test]
    fn the_memory_of_a_crowd_is_returned_each_time_that_an_eighth_of_it_is_left() {
        let gate = ConnectionLimiter::new(10_000, None);
        gate.high_water_mark.store(8000, Ordering::Relaxed);
        let returned = (0..8000).rev().filter(|open| gate.is_below_mark(*open));
        assert_eq!(returned.collect::<Vec<_>>(), [999, 124, 14]);
        assert!(!gate.is_below_mark(0));
    }

    #[test]
    fn a_gate_within_a_gate() {
        let outer = Arc::new(ConnectionLimiter::new(3, None));
        let (a, b) = [2, 9]
            .map(|max| Arc::new(ConnectionLimiter::new(max, Some(outer.clone()))))
            .into();
        let acquire = |from: &Arc<ConnectionLimiter>| from.try_acquire(SlotKind::Connection);
        let (one, two) = (acquire(&a), acquire(&a));
        assert!(
            one.is_some() && two.is_some() && acquire(&a).is_none(),
            "two of its own"
        );
        assert_eq!(
            (a.open_count(), outer.open_count()),
            (2, 2),
            "a refusal leaves no trace"
        );
        let three = acquire(&b);
        assert!(three.is_some() && acquire(&b).is_none(), "three in all");
        drop((one, three));
        assert!(acquire(&b).is_some());
    }

    #[test]
    fn a_stream_needs_one_descriptor_and_a_connection_two() {
        let process = ConnectionLimiter::for_process(Arc::new(DescriptorPool::new(80)));
        let listener = Arc::new(ConnectionLimiter::new(usize::MAX, Some(Arc::new(process))));
        let open = |kind| {
            let permits = std::iter::from_fn(|| listener.try_acquire(kind));
            permits.take(1000).collect::<Vec<_>>()
        };
        assert_eq!(open(SlotKind::Connection).len(), 35);
        let streams = open(SlotKind::Stream);
        assert_eq!(streams.len(), 70);
        drop(streams);
        assert_eq!(open(SlotKind::Connection).len(), 35, "all were returned");
    }
}
