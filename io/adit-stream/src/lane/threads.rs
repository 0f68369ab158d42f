//! The threads of the lanes, from their first use to the end of the process.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};

/// The lanes of the process, shared by all engines.
static LANE_THREADS: Mutex<LaneThreads> = Mutex::new(LaneThreads {
    bulk: None,
    sessions: Vec::new(),
    is_closed: false,
});

/// Name of the threads of the bulk lane.
const BULK_THREAD_NAME: &str = "bulk";

/// The lanes of the process.
struct LaneThreads {
    bulk: Option<Runtime>,
    sessions: Vec<SessionThread>,
    /// Permanent: the process is ending.
    is_closed: bool,
}

/// A lane of one thread.
struct SessionThread {
    runtime: Runtime,
    /// Number of busy sessions that use it.
    sessions: usize,
}

fn lock_threads() -> MutexGuard<'static, LaneThreads> {
    LANE_THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static IS_BULK: Cell<bool> = const { Cell::new(false) };
}

/// True on a thread of the bulk lane, where nothing small waits.
pub(crate) fn is_bulk() -> bool {
    IS_BULK.get()
}

fn build_runtime(name: &str, workers: usize) -> Option<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).thread_name(name);
    if name == BULK_THREAD_NAME {
        builder.on_thread_start(|| IS_BULK.set(true));
    }
    builder.enable_all().build().ok()
}

/// Returns the runtime of the bulk lane, which has as many threads as the current runtime. Returns
/// `None` if its threads cannot be started; then bulk flows stay where they are.
pub(crate) fn bulk_lane() -> Option<Handle> {
    let mut threads = lock_threads();
    if threads.bulk.is_none() && !threads.is_closed {
        threads.bulk = build_runtime(BULK_THREAD_NAME, Handle::current().metrics().num_workers());
    }
    let runtime = threads.bulk.as_ref()?;
    Some(runtime.handle().clone())
}

/// A lane of one thread, for a busy session and the relays of its channels.
#[derive(Debug)]
pub struct SessionLane(SessionLaneRef);

/// A reference to the lane of a busy session, for the tasks that work for it.
#[derive(Debug, Clone)]
pub struct SessionLaneRef {
    pub(super) number: usize,
    pub(super) handle: Handle,
}

impl SessionLane {
    /// Returns the least used lane. There are at most as many as this runtime has threads.
    pub(super) fn take_least_used() -> Option<Self> {
        let most = Handle::current().metrics().num_workers();
        let mut threads = lock_threads();
        let all_used = threads.sessions.iter().all(|lane| lane.sessions > 0);
        if all_used && threads.sessions.len() < most && !threads.is_closed {
            // If no further thread can be started, sessions share the existing ones.
            let built = build_runtime("session", 1);
            threads.sessions.extend(built.map(|runtime| SessionThread {
                runtime,
                sessions: 0,
            }));
        }
        let lanes = threads.sessions.iter_mut().enumerate();
        let (number, lane) = lanes.min_by_key(|(_, lane)| lane.sessions)?;
        lane.sessions += 1;
        let handle = lane.runtime.handle().clone();
        Some(Self(SessionLaneRef { number, handle }))
    }

    /// Returns the reference for the tasks that work for the session.
    #[must_use]
    pub const fn lane_ref(&self) -> &SessionLaneRef {
        &self.0
    }
}

impl Drop for SessionLane {
    fn drop(&mut self) {
        if let Some(lane) = lock_threads().sessions.get_mut(self.0.number) {
            lane.sessions = lane.sessions.saturating_sub(1);
        }
    }
}

/// Closes the lanes permanently, together with the tasks that still run there. Waits up to
/// `patience` for each lane.
///
/// Call this before the runtime ends in which the tasks started, since their timers belong to it.
pub fn close_lanes(patience: Duration) {
    let mut threads = lock_threads();
    threads.is_closed = true;
    let bulk = threads.bulk.take();
    let sessions = std::mem::take(&mut threads.sessions);
    // A task that runs there may drop a lane.
    drop(threads);
    let sessions = sessions.into_iter().map(|lane| lane.runtime);
    let until = Instant::now() + patience;
    for runtime in bulk.into_iter().chain(sessions) {
        runtime.shutdown_timeout(until.saturating_duration_since(Instant::now()));
    }
}
