//! The part of an entry whose user is one of a fleet: the lease, and the usage that is not reported yet.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use crate::usage::ByteCounts;

/// The numbers of users whose lease is nearly used up.
#[derive(Debug, Default)]
pub(super) struct LeaseSignal {
    pub(super) wanted: Mutex<Vec<u32>>,
    pub(super) notify: Notify,
}

impl LeaseSignal {
    fn request(&self, id: u32) {
        let mut wanted = lock(&self.wanted);
        if !wanted.contains(&id) {
            wanted.push(id);
        }
        drop(wanted);
        self.notify.notify_one();
    }
}

/// The part of an entry whose user is one of a fleet.
#[derive(Debug)]
pub(super) struct FleetPart {
    /// The number of the user; 0 after the user was removed, and reported for the last time.
    pub(super) id: AtomicU32,
    /// The rest of the lease at which a new one is requested; `i64::MIN` once it was.
    pub(super) low: AtomicI64,
    /// Number of devices at other nodes.
    pub(super) devices_elsewhere: AtomicU32,
    /// The tasks that wait for a lease.
    waiting: Mutex<Vec<Waker>>,
    /// Usage that was reported.
    pub(super) reported: Mutex<ByteCounts>,
    signal: Arc<LeaseSignal>,
}

impl FleetPart {
    pub(super) fn new(signal: Arc<LeaseSignal>, used: ByteCounts) -> Self {
        Self {
            id: AtomicU32::new(0),
            low: AtomicI64::new(i64::MIN),
            devices_elsewhere: AtomicU32::new(0),
            waiting: Mutex::default(),
            // What was counted before is not the fleet's.
            reported: Mutex::new(used),
            signal,
        }
    }

    /// Returns the number of the user; `None` if the user is not one of a fleet any more.
    pub(super) fn id(&self) -> Option<u32> {
        Some(self.id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Requests a lease if less than a quarter of the last one is left.
    pub(super) fn check_lease(&self, left: i64) {
        let low = self.low.load(Ordering::Relaxed);
        if left <= low {
            self.request_lease();
        }
    }

    #[cold]
    pub(super) fn request_lease(&self) {
        if self.low.swap(i64::MIN, Ordering::Relaxed) == i64::MIN {
            return;
        }
        if let Some(id) = self.id() {
            self.signal.request(id);
        }
    }

    /// Wakes the task of `cx` when there is a lease again.
    pub(super) fn poll_lease(&self, cx: &Context<'_>, left: impl Fn() -> i64) -> Poll<()> {
        let mut waiting = lock(&self.waiting);
        // It may have been granted meanwhile.
        if left() > 0 {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        drop(waiting);
        self.request_lease();
        Poll::Pending
    }

    /// Wakes the tasks that wait for a lease.
    pub(super) fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns the bytes of `total` that were not reported.
    pub(super) fn unreported(&self, total: ByteCounts) -> ByteCounts {
        total.reduced_by(*lock(&self.reported))
    }
}

/// Ignores poisoning: a panic of another thread leaves the value intact.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
