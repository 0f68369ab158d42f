//! Lanes for tasks: bulk traffic has its own threads.
//!
//! On threads that are always busy, small requests wait: a request of nine bytes is handled when
//! the flow before it has used up its slice, and the kernel runs such a thread when the other busy
//! threads of the machine have had their turns. A thread that mostly sleeps is run immediately when
//! it wakes. So a relay that keeps a processor busy moves to separate threads, the *bulk lane*, and
//! returns when it is quiet. Accepting, handshakes, name resolution and small flows stay on threads
//! that are nearly always free, the *interactive lane*. The kernel, which sees all programs of the
//! machine, does the sharing.
//!
//! A session that carries several channels is one task, which all of them wait for, and together
//! with the relays of its channels it has more work than one thread can do. On two threads they
//! keep each other from the processor; so such a session moves, while it is busy, to a lane of one
//! thread ([`SessionLane`]), and the relays of its channels follow: they run where
//! [`Stream::lane`](crate::Stream::lane) says. Beside four bulk channels an echo took 1.3 to 1.7 ms
//! at the median with two threads at each end, and takes 0.7 to 1.0 ms with one; at p99 it took 6.0
//! to 9.5 ms and takes 3.4 to 7.7 ms.
//!
//! A KCP session stays where its socket is watched, together with the relays of its streams
//! ([`RelayLane::Home`]): with those in the bulk lane every chunk changed threads, which cost 5 %
//! of the processor time or more. Beside four unpaced flows an echo took 7 ms at p99 either way.
//!
//! A task that is started with [`spawn_movable`] can change lanes: its future is moved between two polls,
//! and the original task waits until it comes back. From then on the runtime of the other lane has
//! to watch the sockets.

mod load;
mod threads;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinSet;

pub use load::TaskLoad;
#[cfg(test)]
pub(crate) use threads::bulk_lane;
pub(crate) use threads::is_bulk;
pub use threads::{SessionLane, SessionLaneRef, close_lanes};

type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// State of the future that is polled now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneRequest {
    /// It cannot change lanes.
    Fixed,
    /// It can change lanes.
    Free,
    /// It has requested another lane.
    Leaving,
}

thread_local! {
    static POLLED: Cell<LaneRequest> = const { Cell::new(LaneRequest::Fixed) };
    /// The requested lane. Read only if there is one: nearly never.
    static WANTED: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// True if the future that is polled now can change lanes.
fn can_change_lane() -> bool {
    POLLED.get() != LaneRequest::Fixed
}

/// Polls the future. Returns the lane that it requests if it is pending.
fn poll_task(work: &mut TaskFuture, cx: &mut Context<'_>) -> (Poll<()>, Option<Handle>) {
    let outer = POLLED.replace(LaneRequest::Free);
    let done = work.as_mut().poll(cx);
    let lane = match POLLED.replace(outer) {
        LaneRequest::Leaving => WANTED.take().filter(|_| done.is_pending()),
        LaneRequest::Free | LaneRequest::Fixed => None,
    };
    (done, lane)
}

/// A task in the lane where it started.
enum LaneTask {
    Here(TaskFuture),
    /// In another lane. It ends with the runtime in which it started, since its timers belong to
    /// that: a set that is dropped aborts its tasks.
    Away(JoinSet<Option<TaskFuture>>),
    Over,
}

/// A future in another lane, until it is done (`None`) or moves back.
struct MovedTask(Option<TaskFuture>);

/// Starts a task that can change lanes. The current runtime is the lane for small flows; a
/// single-threaded runtime has no other.
///
/// # Panics
///
/// Panics outside of a runtime.
pub fn spawn_movable(work: impl Future<Output = ()> + Send + 'static) {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        tokio::spawn(LaneTask::Here(Box::pin(work)));
    } else {
        tokio::spawn(work);
    }
}

impl Future for LaneTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut *self {
                Self::Here(work) => {
                    let (done, lane) = poll_task(work, cx);
                    let Some(lane) = lane else {
                        return done;
                    };
                    let Self::Here(work) = std::mem::replace(&mut *self, Self::Over) else {
                        return Poll::Ready(());
                    };
                    let mut away = JoinSet::new();
                    away.spawn_on(MovedTask(Some(work)), &lane);
                    *self = Self::Away(away);
                }
                Self::Away(away) => {
                    let ended = ready!(away.poll_join_next(cx));
                    // Otherwise the future is done, or was aborted: with its lane, or by a panic,
                    // which has been reported.
                    let Some(Ok(Some(work))) = ended else {
                        *self = Self::Over;
                        return Poll::Ready(());
                    };
                    *self = Self::Here(work);
                }
                Self::Over => return Poll::Ready(()),
            }
        }
    }
}

impl Future for MovedTask {
    type Output = Option<TaskFuture>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TaskFuture>> {
        let Some(work) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let (done, lane) = poll_task(work, cx);
        // Any other lane is reached by way of the first one.
        if lane.is_some() {
            return Poll::Ready(self.0.take());
        }
        done.map(|()| None)
    }
}

/// The lane in which a relay over a stream runs.
#[derive(Debug, Clone, Default)]
pub enum RelayLane {
    /// The lane that the relay's own work requires.
    #[default]
    ByLoad,
    /// The lane in which its task started, however much it works: the session below the stream runs
    /// there, and each chunk would be passed to another thread.
    Home,
    /// The lane of the session on whose channel the relay works.
    Session(SessionLaneRef),
}

impl RelayLane {
    /// Returns this lane if it is a requirement, else the `other`.
    #[must_use]
    pub fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::ByLoad => other(),
            Self::Home | Self::Session(_) => self,
        }
    }
}

/// Moves the task that is polled now to `lane`, returned by [`TaskLoad`], once this poll is over.
///
/// The poll has to return pending, and the task has to wait for resources of that runtime only.
pub fn change_lane(lane: Handle) {
    debug_assert!(can_change_lane(), "this task cannot change lanes");
    POLLED.set(LaneRequest::Leaving);
    WANTED.set(Some(lane));
}

#[cfg(test)]
pub(crate) mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    fn in_bulk_lane() -> bool {
        let named = thread::current().name() == Some("bulk");
        assert_eq!(is_bulk(), named);
        named
    }

    /// Changes lanes, as a relay without sockets would.
    async fn change_lanes() {
        let mut asked = false;
        poll_fn(|_| {
            if std::mem::replace(&mut asked, true) {
                return Poll::Ready(());
            }
            change_lane(bulk_lane().unwrap());
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn runtime() -> Runtime {
        Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    }

    #[test]
    fn a_task_goes_to_the_bulk_lane_and_comes_back() {
        let lanes = runtime().block_on(async {
            let (tell, told) = oneshot::channel();
            spawn_movable(async {
                let mut lanes = vec![in_bulk_lane()];
                for _ in 0..3 {
                    change_lanes().await;
                    lanes.push(in_bulk_lane());
                    tokio::task::yield_now().await;
                    lanes.push(in_bulk_lane());
                }
                let _ = tell.send(lanes);
            });
            told.await.unwrap()
        });
        assert_eq!(lanes, [false, true, true, false, false, true, true]);
    }

    #[test]
    fn a_task_in_the_bulk_lane_ends_with_the_runtime_it_began_in() {
        let home = runtime();
        let held = Arc::new(());
        let (theirs, (tell, mut told)) = (held.clone(), mpsc::channel(1));
        home.block_on(async {
            spawn_movable(async move {
                change_lanes().await;
                tell.send(in_bulk_lane()).await.unwrap();
                std::future::pending::<()>().await;
                drop(theirs);
            });
            assert_eq!(told.recv().await, Some(true));
        });
        drop(home);
        for _ in 0..500 {
            if Arc::strong_count(&held) == 1 {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the task still runs");
    }
}
