//! A store in memory, whose clock and content a test can change.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adit_net::system::unix_now;
use tokio::sync::Notify;

use super::local::StateHolder;
use super::state::{Mutation, Outcome, RealmState};
use super::{StoreError, StoreHealth};

/// A store in memory. Clones share the content.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<RealmState>,
    changed: Notify,
    /// Milliseconds since 1970; 0 is the system's clock.
    clock: AtomicU64,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the clock at a time in milliseconds since 1970, or continues with the system's for `None`.
    pub fn set_clock(&self, unix_ms: Option<u64>) {
        self.0.clock.store(unix_ms.unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns a copy of the content: a backup.
    #[must_use]
    pub fn copy_state(&self) -> RealmState {
        self.lock().clone()
    }

    /// Replaces the content by that of a backup.
    pub fn restore_state(&self, state: RealmState) {
        *self.lock() = state;
        self.0.changed.notify_waiters();
    }

    /// Removes everything.
    pub fn flush_all(&self) {
        self.restore_state(RealmState::default());
    }

    /// Changes the content as an intruder could.
    pub fn tamper(&self, change: impl FnOnce(&mut RealmState)) {
        change(&mut self.lock());
        self.0.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, RealmState> {
        // A panic leaves nothing half done: a mutation is checked before it is made.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateHolder for MemoryStore {
    fn now(&self) -> u64 {
        match self.0.clock.load(Ordering::Relaxed) {
            0 => unix_now().0.saturating_mul(1000),
            clock => clock,
        }
    }

    fn with_state<T>(&self, read: impl FnOnce(&mut RealmState) -> T) -> Result<T, StoreError> {
        Ok(read(&mut self.lock()))
    }

    fn mutate(&self, mutation: Mutation) -> Result<Outcome, StoreError> {
        let outcome = self.lock().apply(StateHolder::now(self), &mutation);
        self.0.changed.notify_waiters();
        outcome
    }

    fn changed(&self) -> impl Future<Output = ()> + Send {
        self.0.changed.notified()
    }

    fn health(&self) -> StoreHealth {
        StoreHealth {
            is_up: true,
            ..StoreHealth::default()
        }
    }
}
