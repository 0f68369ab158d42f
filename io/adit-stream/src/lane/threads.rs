//! The threads of the lanes, from the first that needs them to the end of the process.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

/// Those of the process: who is bulk in two engines shares them.
static THREADS: Mutex<Threads> = Mutex::new(Threads {
    bulk: None,
    sessions: Vec::new(),
    is_closed: false,
});

const BULK: &str = "bulk";

struct Threads {
    bulk: Option<Runtime>,
    sessions: Vec<Thread>,
    /// For good: the process ends.
    is_closed: bool,
}

/// A lane of one thread.
struct Thread {
    runtime: Runtime,
    /// Busy sessions that have it.
    sessions: usize,
}

fn lock() -> MutexGuard<'static, Threads> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static IS_BULK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is a thread of the bulk lane, where nothing small waits.
pub(crate) fn is_bulk() -> bool {
    IS_BULK.get()
}

fn build(name: &str, workers: usize) -> Option<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).thread_name(name);
    if name == BULK {
        builder.on_thread_start(|| IS_BULK.set(true));
    }
    builder.enable_all().build().ok()
}

/// The runtime of the bulk lane, with as many threads as this one has. Without threads of its own,
/// bulk stays where it is.
pub(crate) fn bulk_lane() -> Option<Handle> {
    let mut threads = lock();
    if threads.bulk.is_none() && !threads.is_closed {
        threads.bulk = build(BULK, Handle::current().metrics().num_workers());
    }
    let runtime = threads.bulk.as_ref()?;
    Some(runtime.handle().clone())
}

/// A lane of one thread, for a busy session and the relays of its channels.
#[derive(Debug)]
pub struct SessionLane(OwnLane);

/// Where a busy session runs, for those who work for it.
#[derive(Debug, Clone)]
pub struct OwnLane {
    pub(super) number: usize,
    pub(super) handle: Handle,
}

impl SessionLane {
    /// The least used of as many as this runtime has threads.
    pub(super) fn take() -> Option<Self> {
        let most = Handle::current().metrics().num_workers();
        let mut threads = lock();
        let all_used = threads.sessions.iter().all(|lane| lane.sessions > 0);
        if all_used && threads.sessions.len() < most && !threads.is_closed {
            // Without another thread, sessions share those that there are.
            let built = build("session", 1);
            threads.sessions.extend(built.map(|runtime| Thread {
                runtime,
                sessions: 0,
            }));
        }
        let lanes = threads.sessions.iter_mut().enumerate();
        let (number, lane) = lanes.min_by_key(|(_, lane)| lane.sessions)?;
        lane.sessions += 1;
        let handle = lane.runtime.handle().clone();
        Some(Self(OwnLane { number, handle }))
    }

    /// For those who work for the session.
    #[must_use]
    pub const fn own(&self) -> &OwnLane {
        &self.0
    }
}

impl Drop for SessionLane {
    fn drop(&mut self) {
        if let Some(lane) = lock().sessions.get_mut(self.0.number) {
            lane.sessions = lane.sessions.saturating_sub(1);
        }
    }
}

/// Ends the lanes for good, and what still runs there: before the runtime ends where their tasks
/// began, since their timers belong to that.
pub fn close(patience: Duration) {
    let mut threads = lock();
    threads.is_closed = true;
    let bulk = threads.bulk.take();
    let sessions = std::mem::take(&mut threads.sessions);
    // Who runs there may drop a lane.
    drop(threads);
    let sessions = sessions.into_iter().map(|lane| lane.runtime);
    for runtime in bulk.into_iter().chain(sessions) {
        runtime.shutdown_timeout(patience);
    }
}
