//! Wakeups of the operations that share one stream.
//!
//! The stream stores one waker. It is that of [`Wakers`], which wakes all waiting operations: the first
//! of them that is polled moves the bytes of all. So no task of its own is needed, and an operation
//! that is not polled any more stalls no other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The wakers of all waiting operations, with the number of each operation.
#[derive(Debug, Default)]
pub(super) struct Wakers(Mutex<Vec<(u64, Waker)>>);

impl Wakers {
    /// Registers an operation, or renews its waker.
    pub(super) fn register(&self, operation: u64, waker: &Waker) {
        let mut all = self.lock();
        match all.iter_mut().find(|(other, _)| *other == operation) {
            Some((_, known)) => known.clone_from(waker),
            None => all.push((operation, waker.clone())),
        }
    }

    /// Removes an operation without waking it.
    pub(super) fn remove(&self, operation: u64) {
        self.lock().retain(|(other, _)| *other != operation);
    }

    /// Wakes one operation, if it waits.
    pub(super) fn wake_one(&self, operation: u64) {
        let mut all = self.lock();
        let place = all.iter().position(|(other, _)| *other == operation);
        let found = place.map(|place| all.swap_remove(place));
        drop(all);
        if let Some((_, waker)) = found {
            waker.wake();
        }
    }

    /// Wakes all waiting operations.
    pub(super) fn wake_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        for (_, waker) in all {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Waker)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}
