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
//! A task that is begun with [`spawn`] can change lanes: what it works on is handed over whole,
//! between two polls, and its task waits until that comes back. Sockets have to be watched by the
//! other lane's runtime from there on.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::JoinSet;

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

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Whether what is polled now can change lanes, and whether it wants to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// It cannot.
    Fixed,
    Stay,
    Change,
}

thread_local! {
    static WISH: Cell<Wish> = const { Cell::new(Wish::Fixed) };
}

/// Polls; returns whether the work is pending and wants to change lanes as well.
fn poll(work: &mut Work, cx: &mut Context<'_>) -> (Poll<()>, bool) {
    let outer = WISH.replace(Wish::Stay);
    let done = work.as_mut().poll(cx);
    let changes = WISH.replace(outer) == Wish::Change && done.is_pending();
    (done, changes)
}

/// A task where its work began.
enum Home {
    Here(Work),
    /// In the bulk lane. It ends with the runtime in which it began, since its timers belong to
    /// that: a set that is dropped ends its tasks.
    Away(JoinSet<Option<Work>>),
    Over,
}

/// Work in the bulk lane, until it is done (`None`) or comes back.
struct Away(Option<Work>);

/// Begins a task that can change lanes. Where it began is the lane for small flows; a runtime of
/// one thread has no other.
///
/// # Panics
/// Outside of a runtime.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        tokio::spawn(Home::Here(Box::pin(work)));
    } else {
        tokio::spawn(work);
    }
}

impl Future for Home {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut *self {
                Self::Here(work) => {
                    let (done, changes) = poll(work, cx);
                    let lane = if changes { bulk_lane() } else { None };
                    let Some(lane) = lane else {
                        return done;
                    };
                    let Self::Here(work) = std::mem::replace(&mut *self, Self::Over) else {
                        return Poll::Ready(());
                    };
                    let mut away = JoinSet::new();
                    away.spawn_on(Away(Some(work)), &lane);
                    *self = Self::Away(away);
                }
                Self::Away(away) => {
                    let ended = ready!(away.poll_join_next(cx));
                    // Else it is done, or cut off: with its lane, or by a panic, which has been
                    // reported.
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

impl Future for Away {
    type Output = Option<Work>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Work>> {
        let Some(work) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let (done, changes) = poll(work, cx);
        if changes {
            return Poll::Ready(self.0.take());
        }
        done.map(|()| None)
    }
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

/// How busy a flow is, and in which lane that puts it. Nothing is kept of a small flow.
#[derive(Debug, Default)]
pub(crate) struct Load(Option<Box<Busy>>);

#[derive(Debug)]
struct Busy {
    since: Instant,
    worked: Duration,
    /// Where it came from, while it is in the bulk lane.
    home: Option<Handle>,
}

impl Load {
    /// A flow has worked for `worked` in one poll, as far as it is measured. Returns the lane to
    /// [change](change) to, if it is not in the right one.
    pub(crate) fn lane_after(&mut self, worked: Duration) -> Option<Handle> {
        let is_away = self.0.as_ref().is_some_and(|busy| busy.home.is_some());
        if worked.is_zero() && !is_away {
            return None;
        }
        let now = Instant::now();
        let busy = self.0.get_or_insert_with(|| {
            Box::new(Busy {
                since: now,
                worked: Duration::ZERO,
                home: None,
            })
        });
        busy.worked += worked;
        let time = now.duration_since(busy.since);
        let lane = if is_away {
            if time < QUIET_WINDOW {
                return None;
            }
            busy.home.take_if(|_| busy.worked <= QUIET)
        } else if busy.worked >= BULK {
            let can_change = WISH.get() == Wish::Stay;
            let lane = if can_change { bulk_lane() } else { None };
            busy.home = lane.as_ref().map(|_| Handle::current());
            lane
        } else if time < WINDOW {
            return None;
        } else {
            None
        };
        // Another window begins, in either lane.
        (busy.since, busy.worked) = (now, Duration::ZERO);
        lane
    }
}

/// Has the task that is polled now change lanes once this poll is over. It has to be pending then,
/// and what it waits for has to be of the other runtime already.
pub(crate) fn change() {
    debug_assert_ne!(WISH.get(), Wish::Fixed, "this task cannot change lanes");
    WISH.set(Wish::Change);
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::thread;

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    fn in_bulk_lane() -> bool {
        thread::current().name() == Some("bulk")
    }

    /// Changes lanes, as a relay without sockets would.
    async fn change_lanes() {
        let mut asked = false;
        poll_fn(|_| {
            if std::mem::replace(&mut asked, true) {
                return Poll::Ready(());
            }
            change();
            Poll::Pending
        })
        .await;
    }

    fn runtime() -> Runtime {
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
            spawn(async {
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
            spawn(async move {
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
        panic!("it goes on");
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_has_one_lane() {
        let (tell, told) = oneshot::channel();
        spawn(async {
            let mut load = Load::default();
            let _ = tell.send(load.lane_after(BULK).is_none());
        });
        assert!(told.await.unwrap());
    }

    #[test]
    fn a_flow_that_works_much_is_bulk_until_it_is_quiet() {
        let lanes = runtime().block_on(async {
            let (tell, told) = oneshot::channel();
            spawn(async {
                let mut load = Load::default();
                let goes = |load: &mut Load, worked| load.lane_after(worked).is_some();
                let mut seen = vec![goes(&mut load, Duration::ZERO)];
                assert!(load.0.is_none(), "nothing is kept of little");
                let age = |load: &mut Load, time| load.0.as_mut().unwrap().since -= time;
                seen.push(goes(&mut load, BULK / 2));
                // A window later it has done too little.
                age(&mut load, WINDOW);
                seen.push(goes(&mut load, BULK / 4));
                seen.push(goes(&mut load, BULK / 2));
                seen.push(goes(&mut load, BULK / 2));
                // There.
                seen.push(goes(&mut load, BULK));
                age(&mut load, QUIET_WINDOW);
                seen.push(goes(&mut load, QUIET));
                age(&mut load, QUIET_WINDOW);
                seen.push(goes(&mut load, QUIET));
                let _ = tell.send((seen, load.0.unwrap().home.is_none()));
            });
            told.await.unwrap()
        });
        let seen = [false, false, false, false, true, false, false, true];
        assert_eq!(lanes, (seen.to_vec(), true));
    }
}
