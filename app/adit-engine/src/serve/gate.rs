//! Limits on open connections and associations, and the accept loop that enforces them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adit_net::accept::{self, Turn};
use adit_net::memory;
use adit_stream::Tcp;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::Worker;
use crate::Peer;
use crate::circle;

/// Minimum interval between warnings about exhaustion.
const QUIET: Duration = Duration::from_secs(10);

/// Number of simultaneous connections after which it is worth returning memory to the system.
const MANY: usize = 1024;
/// Delay of that after most of them have ended.
const SETTLED: Duration = Duration::from_secs(1);

/// Descriptors of a connection: its own, and that of its outgoing side.
const OF_CONNECTION: usize = 2;

/// The descriptors of a process, shared by connections and associations. Either may take more than the
/// other, but not all: half is reserved for connections, an eighth for associations.
#[derive(Debug)]
pub(crate) struct Descriptors {
    total: usize,
    connections: AtomicUsize,
    associations: AtomicUsize,
}

impl Descriptors {
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

    /// Takes the descriptors of a connection; returns false if there are too few.
    fn open_connection(&self) -> bool {
        let connections = self.connections.fetch_add(OF_CONNECTION, Ordering::SeqCst);
        let associations = self.associations.load(Ordering::SeqCst);
        let fits = self.total.saturating_sub(associations.max(self.total / 8));
        if connections + OF_CONNECTION <= fits {
            return true;
        }
        self.close_connection();
        false
    }

    fn close_connection(&self) {
        self.connections.fetch_sub(OF_CONNECTION, Ordering::SeqCst);
    }

    /// Takes the descriptors of an association; returns false if there are too few.
    pub(crate) fn open_association(&self, count: usize) -> bool {
        let associations = self.associations.fetch_add(count, Ordering::SeqCst);
        let connections = self.connections.load(Ordering::SeqCst);
        let fits = self.total.saturating_sub(connections.max(self.total / 2));
        if associations + count <= fits {
            return true;
        }
        self.close_association(count);
        false
    }

    /// Returns the descriptors of an association.
    pub(crate) fn close_association(&self, count: usize) {
        self.associations.fetch_sub(count, Ordering::SeqCst);
    }
}

/// Counts connections and refuses those beyond the limit.
#[derive(Debug)]
pub struct Gate {
    open: AtomicUsize,
    /// Maximum number of open connections since memory was last returned.
    high: AtomicUsize,
    max: usize,
    /// The descriptors of the process, if this is its limiter.
    descriptors: Option<Arc<Descriptors>>,
    /// The limiter of the process, if this is that of a listener.
    outer: Option<Arc<Self>>,
}

impl Gate {
    /// Creates a limiter for `max` connections, which also obeys `outer`.
    #[must_use]
    pub const fn new(max: usize, outer: Option<Arc<Self>>) -> Self {
        Self {
            open: AtomicUsize::new(0),
            high: AtomicUsize::new(0),
            max,
            descriptors: None,
            outer,
        }
    }

    /// Creates the limiter of a process: the descriptors are its limit.
    pub(crate) fn of_process(descriptors: Arc<Descriptors>) -> Self {
        Self {
            open: AtomicUsize::new(0),
            high: AtomicUsize::new(0),
            max: descriptors.total / OF_CONNECTION,
            descriptors: Some(descriptors),
            outer: None,
        }
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the lowest limit that applies.
    pub(crate) fn limit(&self) -> usize {
        let outer = self
            .outer
            .as_ref()
            .map_or(usize::MAX, |outer| outer.limit());
        self.max.min(outer)
    }

    /// Returns the reason why a connection is refused.
    fn complaint(&self) -> String {
        match &self.outer {
            Some(outer) if self.open() < self.max => outer.complaint(),
            _ => format!("{} connections are open: closing new ones", self.open()),
        }
    }

    pub(super) fn enter(self: &Arc<Self>) -> Option<Ticket> {
        let outer = match &self.outer {
            Some(outer) => Some(Box::new(outer.enter()?)),
            None => None,
        };
        if self
            .descriptors
            .as_ref()
            .is_some_and(|d| !d.open_connection())
        {
            return None;
        }
        let ticket = Ticket {
            gate: self.clone(),
            _outer: outer,
        };
        let others = self.open.fetch_add(1, Ordering::Relaxed);
        if self.outer.is_none() && others >= MANY {
            self.high.fetch_max(others, Ordering::Relaxed);
        }
        (others < self.max).then_some(ticket)
    }
}

/// The slot of one connection; freed when dropped, even by a panic.
pub(super) struct Ticket {
    gate: Arc<Gate>,
    _outer: Option<Box<Self>>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(descriptors) = &self.gate.descriptors {
            descriptors.close_connection();
        }
        let open = self.gate.open.fetch_sub(1, Ordering::Relaxed) - 1;
        if open < self.gate.high.load(Ordering::Relaxed) / 8
            && self.gate.high.swap(0, Ordering::Relaxed) > 0
        {
            give_memory_back();
        }
    }
}

/// Returns memory to the system, once the connections that have just ended are gone.
fn give_memory_back() {
    // Without a runtime the process is about to end.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async {
            sleep(SETTLED).await;
            let _ = spawn_blocking(memory::give_back).await;
        });
    }
}

/// Accepts connections forever; each is served in a task of its own.
pub async fn accept_loop(mut socket: accept::Acceptor, worker: Arc<Worker>) {
    let mut complained: Option<Instant> = None;
    if let Ok(address) = socket.local_addr() {
        circle::listens_on(address.port());
    }
    loop {
        let complaint = match socket.next().await {
            Turn::Connection(stream, remote) => {
                let local = socket.address_of(&stream).unwrap_or(remote);
                let peer = Peer { remote, local };
                let io = Box::new(Tcp::new(stream));
                // Further clients wait in the kernel's backlog meanwhile.
                if worker.admit_soon(io, peer).await {
                    continue;
                }
                worker.gate.complaint()
            }
            Turn::Exhausted(e) => format!("cannot accept connections: {e}"),
        };
        if complained.is_none_or(|at| at.elapsed() >= QUIET) {
            complained = Some(Instant::now());
            warn!("{complaint} (reported once in {} s)", QUIET.as_secs());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_connections_nor_associations_take_the_last_descriptors() {
        let count = |mut open: Box<dyn FnMut() -> bool>| (0..1000).take_while(|_| open()).count();
        let all = || Arc::new(Descriptors::new(80));
        let connections = |of: &Arc<Descriptors>| {
            let of = of.clone();
            count(Box::new(move || of.open_connection()))
        };
        let associations = |of: &Arc<Descriptors>| {
            let of = of.clone();
            count(Box::new(move || of.open_association(1)))
        };
        let first = all();
        assert_eq!((connections(&first), associations(&first)), (35, 10));
        let first = all();
        assert_eq!((associations(&first), connections(&first)), (40, 20));
        first.close_association(15);
        assert_eq!((connections(&first), associations(&first)), (7, 1));
    }

    #[test]
    fn a_gate_within_a_gate() {
        let outer = Arc::new(Gate::new(3, None));
        let (a, b) = [2, 9]
            .map(|max| Arc::new(Gate::new(max, Some(outer.clone()))))
            .into();
        let (one, two) = (a.enter(), a.enter());
        assert!(
            one.is_some() && two.is_some() && a.enter().is_none(),
            "two of its own"
        );
        assert_eq!(
            (a.open(), outer.open()),
            (2, 2),
            "a refusal leaves no trace"
        );
        let three = b.enter();
        assert!(three.is_some() && b.enter().is_none(), "three in all");
        drop((one, three));
        assert!(b.enter().is_some());
    }
}
