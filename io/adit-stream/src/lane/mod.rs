//! Lanes for tasks: bulk has threads of its own.
//!
//! On threads that are always at work, whatever is small waits: a request of nine bytes is looked
//! at when the flow before it has used up its slice, and the kernel runs such a thread when the
//! other busy threads of the machine have had their turns. A thread that mostly sleeps is run at
//! once when it wakes. So a relay that keeps a processor busy leaves for threads of its own, the
//! *bulk lane*, and comes back when it is quiet; accepting, handshakes, names and small flows
//! stay on threads that are nearly always free. The kernel, which sees all programs of the
//! machine, does the sharing.
//!
//! A session that carries several channels is one task, which all of them wait for, and with the
//! relays of its channels it has more work than one thread can do. On two threads they take turns
//! at keeping each other from the processor; so such a session goes, while it is busy, to a lane of
//! one thread ([`SessionLane`]), and the relays of its channels follow it: they run where
//! [`Stream::lane`](crate::Stream::lane) says. Beside four bulk channels an echo took 1.3 to 1.7 ms
//! at the median with two threads at each end and takes 0.7 to 1.0 with one, at p99 6.0 to 9.5 and
//! 3.4 to 7.7.
//!
//! A KCP session stays where its socket is watched, with the relays of its streams
//! ([`RelayLane::Home`]): with those in the bulk lane every chunk changed threads, which cost 5 % of
//! the processor time or more. Beside four unpaced flows an echo took 7 ms at p99 either way.
//!
//! A task that is begun with [`spawn`] can change lanes: what it works on is handed over whole,
//! between two polls, and its task waits until that comes back. Sockets have to be watched by the
//! other lane's runtime from there on.

mod load;
mod threads;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinSet;

pub use load::Load;
#[cfg(test)]
pub(crate) use threads::bulk_lane;
pub(crate) use threads::is_bulk;
pub use threads::{OwnLane, SessionLane, close};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is polled now, as far as lanes are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Polled {
    /// It cannot change lanes.
    Fixed,
    /// It can.
    Free,
    /// It has said where it wants to go.
    Leaving,
}

thread_local! {
    static POLLED: Cell<Polled> = const { Cell::new(Polled::Fixed) };
    /// The lane that it wants to go to. Looked at only when there is one: nearly never.
    static WANTED: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// Whether what is polled now can change lanes.
fn can_change() -> bool {
    POLLED.get() != Polled::Fixed
}

/// Polls; returns where the work wants to go if it is pending.
fn poll(work: &mut Work, cx: &mut Context<'_>) -> (Poll<()>, Option<Handle>) {
    let outer = POLLED.replace(Polled::Free);
    let done = work.as_mut().poll(cx);
    let lane = match POLLED.replace(outer) {
        Polled::Leaving => WANTED.take().filter(|_| done.is_pending()),
        Polled::Free | Polled::Fixed => None,
    };
    (done, lane)
}

/// A task where its work began.
enum Home {
    Here(Work),
    /// In another lane. It ends with the runtime in which it began, since its timers belong to
    /// that: a set that is dropped ends its tasks.
    Away(JoinSet<Option<Work>>),
    Over,
}

/// Work in another lane, until it is done (`None`) or comes back.
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
                    let (done, lane) = poll(work, cx);
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
        let (done, lane) = poll(work, cx);
        // Whatever lane that is, the way leads home first.
        if lane.is_some() {
            return Poll::Ready(self.0.take());
        }
        done.map(|()| None)
    }
}

/// Where a relay runs that works on a stream.
#[derive(Debug, Clone, Default)]
pub enum RelayLane {
    /// Where its own work puts it.
    #[default]
    ByLoad,
    /// Where its task began, however much it works: the session below the stream runs there, and
    /// each chunk would be handed to another thread.
    Home,
    /// In the lane of the session on whose channel it works.
    Session(OwnLane),
}

impl RelayLane {
    /// What the one side of a relay wants, or else the other.
    #[must_use]
    pub fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::ByLoad => other(),
            Self::Home | Self::Session(_) => self,
        }
    }
}

/// Has the task that is polled now go to `lane` once this poll is over, which [`Load`] has named. It
/// has to be pending then, and what it waits for has to be of that runtime already.
pub fn change(lane: Handle) {
    debug_assert!(can_change(), "this task cannot change lanes");
    POLLED.set(Polled::Leaving);
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
            change(bulk_lane().unwrap());
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
}
