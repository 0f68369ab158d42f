//! Two lanes for tasks: bulk has threads of its own.
//!
//! On threads that are always at work, whatever is small waits: a request of nine bytes is looked
//! at when the flow before it has used up its slice, and the kernel runs such a thread when the
//! other busy threads of the machine have had their turns. A thread that mostly sleeps is run at
//! once when it wakes. So a relay that keeps a processor busy leaves for threads of its own, the
//! *bulk lane*, and comes back when it is quiet; accepting, handshakes, names and small flows
//! stay on threads that are nearly always free. The kernel, which sees all programs of the
//! machine, does the sharing.
//!
//! A task that is begun with [`spawn`] can change lanes: it is handed over whole, between two
//! polls, by itself. Its sockets have to be watched by the other lane's runtime from there on.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

/// The time over which a flow's work is looked at.
const WINDOW: Duration = Duration::from_millis(20);
/// Work in a window that makes a flow bulk: a tenth. A flow of 60 MB/s through a Shadowsocks
/// server has 3 % on a processor of 2024.
const BULK: Duration = Duration::from_millis(2);
/// The time over which a flow has to be quiet before it comes back.
const QUIET_WINDOW: Duration = Duration::from_millis(100);
/// Work in that time, or less, which is quiet: a fiftieth.
const QUIET: Duration = Duration::from_millis(2);

/// The threads for bulk, from the first bulk flow on.
static BULK_LANE: Mutex<Lane> = Mutex::new(Lane::Unused);

enum Lane {
    Unused,
    Open(Runtime),
    /// For good: the process ends.
    Closed,
}

thread_local! {
    /// What the task that is polled on this thread may do and wants to do.
    static TASK: Cell<Wish> = const { Cell::new(Wish::Fixed) };
}

/// What a task wants at the end of a poll.
#[derive(Default)]
enum Wish {
    /// It is no task that can change lanes.
    #[default]
    Fixed,
    Stay,
    GoTo(Handle),
}

/// A task that goes where it wants to.
struct Task(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

/// Begins a task that can change lanes. Where it began is the lane for small flows.
///
/// # Panics
/// Outside of a runtime.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        tokio::spawn(Task(Some(Box::pin(work))));
    } else {
        // One thread was asked for.
        tokio::spawn(work);
    }
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(work) = &mut self.0 else {
            return Poll::Ready(());
        };
        let outer = TASK.replace(Wish::Stay);
        let done = work.as_mut().poll(cx);
        let wish = TASK.replace(outer);
        if done.is_pending()
            && let Wish::GoTo(lane) = wish
        {
            lane.spawn(Task(self.0.take()));
            return Poll::Ready(());
        }
        done
    }
}

/// Whether the task that is polled now can change lanes.
fn can_change() -> bool {
    let wish = TASK.take();
    let can = !matches!(wish, Wish::Fixed);
    TASK.set(wish);
    can
}

/// The runtime of the bulk lane, with as many threads as this one has.
fn bulk_lane() -> Option<Handle> {
    let mut lane = BULK_LANE.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*lane, Lane::Unused) {
        let threads = Handle::current().metrics().num_workers();
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("bulk")
            .enable_all()
            .build();
        // Without threads of its own, bulk stays where it is.
        *lane = runtime.map_or(Lane::Closed, Lane::Open);
    }
    match &*lane {
        Lane::Open(runtime) => Some(runtime.handle().clone()),
        Lane::Unused | Lane::Closed => None,
    }
}

/// Ends the bulk lane for good, and what still runs there: before the runtime ends where its tasks
/// began, since their timers belong to that.
pub fn close(patience: Duration) {
    let mut lane = BULK_LANE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Lane::Open(runtime) = std::mem::replace(&mut *lane, Lane::Closed) {
        drop(lane);
        runtime.shutdown_timeout(patience);
    }
}

/// How busy a flow is, and in which lane that puts it.
#[derive(Debug, Default)]
pub(crate) struct Load {
    since: Option<Instant>,
    busy: Duration,
    /// Where it came from, while it is in the bulk lane.
    home: Option<Handle>,
}

impl Load {
    /// A flow has worked for `worked` in one poll, as far as it is measured. Returns the lane to
    /// [go to](go_to), if it is not in the right one.
    pub(crate) fn lane_after(&mut self, worked: Duration) -> Option<Handle> {
        if worked.is_zero() && self.home.is_none() {
            return None;
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        self.busy += worked;
        let time = now.duration_since(since);
        let lane = match &self.home {
            None if self.busy >= BULK => {
                let lane = bulk_lane().filter(|_| can_change());
                if lane.is_some() {
                    self.home = Some(Handle::current());
                }
                lane
            }
            Some(_) if time >= QUIET_WINDOW && self.busy <= QUIET => self.home.take(),
            Some(_) if time < QUIET_WINDOW => return None,
            None if time < WINDOW => return None,
            _ => None,
        };
        (self.since, self.busy) = (Some(now), Duration::ZERO);
        lane
    }
}

/// Has the task that is polled now go on in `lane` once this poll is over. It has to be pending
/// then, and what it waits for has to be of that runtime already.
pub(crate) fn go_to(lane: Handle) {
    debug_assert!(can_change(), "a task that cannot change lanes wants to");
    TASK.set(Wish::GoTo(lane));
}
