//! The state shared by a session's handles and its task: commands in one direction, results in the
//! other.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use adit_ssh_proto::Disconnect;
use adit_ssh_proto::connection::{
    ChannelId, ChannelKind, GlobalAnswer, GlobalRequest, OpenFailureReason, PendingGlobalReply,
    PendingReply, SshChannelRequest, WantReply,
};
use adit_stream::lane::SessionLaneRef;
use tokio::sync::{Notify, oneshot};

use super::channel::ChannelHandle;
use super::error::{OpenError, RequestError, SessionEnd};
use super::routes::{Route, RouteKind};
use super::shared_channel::SharedChannel;
use super::spare_buffers::SpareBuffers;

/// Maximum size of the peer's application-defined global requests that wait for an answer, in bytes.
const MAX_WAITING: usize = 256 << 10;

/// A command for the task.
pub(super) enum Command {
    /// Open a channel.
    Open {
        kind: ChannelKind,
        reply: oneshot::Sender<Result<ChannelHandle, OpenError>>,
    },
    /// Accept a channel that the peer asked for.
    Confirm(Arc<SharedChannel>),
    /// Refuse a channel that the peer asked for.
    Refuse {
        pipe: Arc<SharedChannel>,
        why: OpenFailureReason,
        text: String,
    },
    /// Send a request in a channel.
    Request {
        pipe: Arc<SharedChannel>,
        request: SshChannelRequest,
        want: WantReply,
        reply: oneshot::Sender<Result<(), RequestError>>,
    },
    /// Reply to a request of the peer in a channel.
    Answer { to: PendingReply, ok: bool },
    /// Send a global request. If it is granted, the resulting arrivals go to `route`.
    Global {
        request: GlobalRequest,
        route: Option<Route>,
        reply: oneshot::Sender<Result<GlobalAnswer, RequestError>>,
    },
    /// Answer a global request of the peer.
    AnswerGlobal {
        to: PendingGlobalReply,
        answer: GlobalAnswer,
    },
    /// Send arrivals of this kind to `route` from now on.
    Route(Route),
    /// Remove a route.
    Unroute(RouteKind),
    /// Measure the round-trip time.
    Ping(oneshot::Sender<Result<Duration, SessionEnd>>),
    /// Start a key re-exchange.
    Rekey,
    /// Send a disconnect message and end the session immediately.
    Disconnect { text: String },
    /// Send a disconnect message once the data that the peer accepts now was sent.
    Leave { reason: Disconnect, text: String },
}

/// The state that handles and task share.
pub(super) struct SharedSession {
    inner: Mutex<Inner>,
    /// Buffers that the session's tasks exchange.
    pub(super) spares: SpareBuffers,
    /// True if the task runs in a lane of its own. Read each time a relay is polled, hence outside of
    /// the mutex.
    is_away: AtomicBool,
    /// Size of the application-defined global requests that wait for an answer, in bytes.
    waiting: AtomicUsize,
    /// Notified when the session is over.
    ended: Notify,
}

#[derive(Default)]
struct Inner {
    commands: VecDeque<Command>,
    dirty: Vec<Arc<SharedChannel>>,
    driver: Option<Waker>,
    /// Number of handles and channels in use.
    handles: usize,
    end: Option<SessionEnd>,
    rtt: Option<Duration>,
    lane: Option<SessionLaneRef>,
    /// Channels in message mode, by number.
    channels: HashMap<ChannelId, Arc<SharedChannel>>,
}

/// True if a pipe is in the list of dirty pipes.
#[derive(Debug, Default)]
pub(super) struct DirtyFlag(AtomicBool);

impl DirtyFlag {
    /// Clears the flag. Call it before you look at the pipe, so that no change is missed.
    pub(super) fn clear_flag(&self) {
        self.0.store(false, Ordering::Release);
    }
}

impl SharedSession {
    /// Creates the state with one handle.
    pub(super) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                handles: 1,
                ..Inner::default()
            }),
            spares: SpareBuffers::default(),
            is_away: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            ended: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update_and_wake<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let done = work(&mut inner);
        let waker = inner.driver.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
        done
    }

    /// Queues a command for the task; returns the reason if the session is over.
    pub(super) fn send_command(&self, command: Command) -> Result<(), SessionEnd> {
        self.update_and_wake(|inner| match &inner.end {
            Some(end) => Err(end.clone()),
            None => {
                inner.commands.push_back(command);
                Ok(())
            }
        })
    }

    /// Sends the command that `make` creates around a reply channel, and waits for the reply.
    pub(super) async fn call_driver<T, E: From<SessionEnd>>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, E>>) -> Command,
    ) -> Result<T, E> {
        let (reply, answer) = oneshot::channel();
        self.send_command(make(reply))?;
        match answer.await {
            Ok(done) => done,
            Err(_) => Err(self.end_reason().unwrap_or(SessionEnd::Closed).into()),
        }
    }

    /// Opens a channel.
    pub(super) async fn open_channel(&self, kind: ChannelKind) -> Result<ChannelHandle, OpenError> {
        self.call_driver(|reply| Command::Open { kind, reply })
            .await
    }

    /// Sends a global request. If it is granted, the resulting arrivals go to `route`.
    pub(super) async fn send_global_request(
        &self,
        request: GlobalRequest,
        route: Option<Route>,
    ) -> Result<GlobalAnswer, RequestError> {
        let asked = self.call_driver(|reply| Command::Global {
            request,
            route,
            reply,
        });
        asked.await
    }

    /// Marks `pipe` as dirty, so that the task looks at it.
    pub(super) fn mark_dirty(&self, pipe: &Arc<SharedChannel>) {
        if !pipe.dirty.0.swap(true, Ordering::AcqRel) {
            self.update_and_wake(|inner| inner.dirty.push(Arc::clone(pipe)));
        }
    }

    /// Counts one more handle.
    pub(super) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    /// Counts one handle less, and wakes the task after the last.
    pub(super) fn remove_handle(&self) {
        let mut inner = self.lock();
        inner.handles = inner.handles.saturating_sub(1);
        let last = inner.handles == 0;
        let waker = inner.driver.take_if(|_| last);
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the reason why the session is over, or `None` if it is not.
    pub(super) fn end_reason(&self) -> Option<SessionEnd> {
        self.lock().end.clone()
    }

    /// Waits until the session ends and returns the reason.
    pub(super) async fn wait_end(&self) -> SessionEnd {
        loop {
            let over = self.ended.notified();
            tokio::pin!(over);
            // Enabled before the check, so that an end between the two is not missed.
            over.as_mut().enable();
            if let Some(end) = self.end_reason() {
                return end;
            }
            over.await;
        }
    }

    /// For the task: records that the session is over.
    pub(super) fn set_ended(&self, end: &SessionEnd) {
        let mut inner = self.lock();
        inner.end.get_or_insert_with(|| end.clone());
        // Dropped outside of the lock: this wakes the tasks that wait for replies.
        let left = (
            core::mem::take(&mut inner.commands),
            core::mem::take(&mut inner.dirty),
            core::mem::take(&mut inner.channels),
        );
        drop(inner);
        drop(left);
        self.ended.notify_waiters();
    }

    /// For the task: takes the queued commands and dirty pipes; returns false if no handle is left.
    pub(super) fn take_work(
        &self,
        commands: &mut VecDeque<Command>,
        dirty: &mut Vec<Arc<SharedChannel>>,
    ) -> bool {
        let mut inner = self.lock();
        commands.append(&mut inner.commands);
        dirty.append(&mut inner.dirty);
        inner.handles > 0
    }

    /// For the task: stores the waker; returns false if there is work already.
    pub(super) fn store_waker(&self, waker: &Waker) -> bool {
        let mut inner = self.lock();
        if !inner.commands.is_empty() || !inner.dirty.is_empty() {
            return false;
        }
        match &mut inner.driver {
            Some(old) => old.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        true
    }

    /// For the task: registers a channel in message mode, or removes a closed one (`None`).
    pub(super) fn set_message_channel(&self, id: ChannelId, pipe: Option<Arc<SharedChannel>>) {
        let channels = &mut self.lock().channels;
        match pipe {
            Some(pipe) => channels.insert(id, pipe),
            None => channels.remove(&id),
        };
    }

    /// Returns a channel in message mode.
    pub(super) fn message_channel(&self, id: ChannelId) -> Option<Arc<SharedChannel>> {
        self.lock().channels.get(&id).cloned()
    }

    /// Wakes the task so that it checks its work again.
    pub(super) fn wake_driver(&self) {
        self.update_and_wake(|_| ());
    }

    /// For the task: adds `octets` to the size of waiting requests; returns false if the limit is
    /// exceeded. Only the task adds, so check and addition need not be atomic together.
    pub(super) fn reserve_waiting(&self, octets: usize) -> bool {
        let fits = self.waiting.load(Ordering::Relaxed) + octets <= MAX_WAITING;
        if fits {
            self.waiting.fetch_add(octets, Ordering::Relaxed);
        }
        fits
    }

    /// Subtracts `octets` from the size of waiting requests.
    pub(super) fn release_waiting(&self, octets: usize) {
        let before = self.waiting.fetch_sub(octets, Ordering::Relaxed);
        debug_assert!(before >= octets, "more bytes were released than reserved");
    }

    /// Returns the last measured round-trip time.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.lock().rtt
    }

    pub(super) fn set_rtt(&self, rtt: Duration) {
        self.lock().rtt = Some(rtt);
    }

    /// Returns the task's own lane, or `None` if it runs where it was spawned.
    pub(super) fn lane(&self) -> Option<SessionLaneRef> {
        if !self.is_away.load(Ordering::Relaxed) {
            return None;
        }
        self.lock().lane.clone()
    }

    pub(super) fn set_lane(&self, lane: Option<SessionLaneRef>) {
        self.is_away.store(lane.is_some(), Ordering::Relaxed);
        self.lock().lane = lane;
    }
}

impl fmt::Debug for SharedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("Mail")
            .field("handles", &inner.handles)
            .field("end", &inner.end)
            .finish_non_exhaustive()
    }
}
