//! What the handles of a session tell its task, and the other way round.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use adit_ssh_proto::Disconnect;
use adit_ssh_proto::connection::{
    ChannelId, ChannelKind, GlobalAnswer, GlobalReplyTo, GlobalRequest, OpenFailure, ReplyTo,
    Request, WantReply,
};
use adit_stream::lane::OwnLane;
use tokio::sync::{Notify, oneshot};

use super::channel::Handle;
use super::error::{End, OpenError, RequestError};
use super::forwards::{Asked, Route};
use super::pipe::Pipe;
use super::spares::Spares;

/// Octets of the peer's global requests of own names that wait to be answered.
const MAX_WAITING: usize = 256 << 10;

/// Something the task is to do.
pub(super) enum Command {
    /// Open a channel.
    Open {
        kind: ChannelKind,
        reply: oneshot::Sender<Result<Handle, OpenError>>,
    },
    /// Open a channel that the peer wants.
    Confirm(Arc<Pipe>),
    /// Refuse a channel that the peer wants.
    Refuse {
        pipe: Arc<Pipe>,
        why: OpenFailure,
        text: String,
    },
    /// Ask for something in a channel.
    Request {
        pipe: Arc<Pipe>,
        request: Request,
        want: WantReply,
        reply: oneshot::Sender<Result<(), RequestError>>,
    },
    /// Answer a request of the peer in a channel.
    Answer { to: ReplyTo, ok: bool },
    /// Ask for something outside of channels; when it is granted, what comes goes to `route`.
    Global {
        request: GlobalRequest,
        route: Option<Route>,
        reply: oneshot::Sender<Result<GlobalAnswer, RequestError>>,
    },
    /// Answer a request of the peer outside of channels.
    AnswerGlobal {
        to: GlobalReplyTo,
        answer: GlobalAnswer,
    },
    /// Send what comes of this kind to `route` from now on.
    Route(Route),
    /// Forget a route.
    Unroute(Asked),
    /// Measure the round trip.
    Ping(oneshot::Sender<Result<Duration, End>>),
    /// Make new keys.
    Rekey,
    /// Tell the peer that this is the end.
    Disconnect { text: String },
    /// The same once what the peer takes now was sent.
    Leave { reason: Disconnect, text: String },
}

/// What both sides share.
pub(super) struct Mail {
    inner: Mutex<Inner>,
    /// Buffers between its tasks.
    pub(super) spares: Spares,
    /// Whether the task runs in a lane of its own; asked for each time a relay is polled.
    is_away: AtomicBool,
    /// Octets of global requests of own names that wait to be answered.
    waiting: AtomicUsize,
    /// Told when the session is over.
    over: Notify,
}

#[derive(Default)]
struct Inner {
    commands: VecDeque<Command>,
    dirty: Vec<Arc<Pipe>>,
    driver: Option<Waker>,
    /// Handles and channels that are held by somebody.
    handles: usize,
    end: Option<End>,
    rtt: Option<Duration>,
    lane: Option<OwnLane>,
    /// Channels that go message by message, by their numbers.
    channels: HashMap<ChannelId, Arc<Pipe>>,
}

/// Whether a pipe stands among the dirty ones.
#[derive(Debug, Default)]
pub(super) struct Listed(AtomicBool);

impl Listed {
    /// To be called before the pipe is looked at, so that nothing is missed.
    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Mail {
    /// With one handle.
    pub(super) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                handles: 1,
                ..Inner::default()
            }),
            spares: Spares::default(),
            is_away: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            over: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let done = work(&mut inner);
        let waker = inner.driver.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
        done
    }

    /// Tells the task to do something; gives the reason if it cannot any more.
    pub(super) fn send(&self, command: Command) -> Result<(), End> {
        self.change(|inner| match &inner.end {
            Some(end) => Err(end.clone()),
            None => {
                inner.commands.push_back(command);
                Ok(())
            }
        })
    }

    /// Asks the task for something that `make` writes the question of.
    pub(super) async fn ask<T, E: From<End>>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, E>>) -> Command,
    ) -> Result<T, E> {
        let (reply, answer) = oneshot::channel();
        self.send(make(reply))?;
        match answer.await {
            Ok(done) => done,
            Err(_) => Err(self.end().unwrap_or(End::Closed).into()),
        }
    }

    /// Opens a channel.
    pub(super) async fn open(&self, kind: ChannelKind) -> Result<Handle, OpenError> {
        self.ask(|reply| Command::Open { kind, reply }).await
    }

    /// Asks for something outside of channels; when it is granted, what comes goes to `route`.
    pub(super) async fn global(
        &self,
        request: GlobalRequest,
        route: Option<Route>,
    ) -> Result<GlobalAnswer, RequestError> {
        let asked = self.ask(|reply| Command::Global {
            request,
            route,
            reply,
        });
        asked.await
    }

    /// Tells the task that there is something to do for `pipe`.
    pub(super) fn poke(&self, pipe: &Arc<Pipe>) {
        if !pipe.listed.0.swap(true, Ordering::AcqRel) {
            self.change(|inner| inner.dirty.push(Arc::clone(pipe)));
        }
    }

    /// One more who may use the session.
    pub(super) fn hold(&self) {
        self.lock().handles += 1;
    }

    /// One less.
    pub(super) fn release(&self) {
        let mut inner = self.lock();
        inner.handles = inner.handles.saturating_sub(1);
        let last = inner.handles == 0;
        let waker = inner.driver.take_if(|_| last);
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Why the session is over, if it is.
    pub(super) fn end(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// Waits for the end.
    pub(super) async fn ended(&self) -> End {
        loop {
            let over = self.over.notified();
            tokio::pin!(over);
            // Before the look, so that no end is missed between the two.
            over.as_mut().enable();
            if let Some(end) = self.end() {
                return end;
            }
            over.await;
        }
    }

    /// The task: the session is over.
    pub(super) fn finish(&self, end: &End) {
        let mut inner = self.lock();
        inner.end.get_or_insert_with(|| end.clone());
        // Dropped outside of the lock: whoever waits is told by that.
        let left = (
            core::mem::take(&mut inner.commands),
            core::mem::take(&mut inner.dirty),
            core::mem::take(&mut inner.channels),
        );
        drop(inner);
        drop(left);
        self.over.notify_waiters();
    }

    /// The task: takes what there is; false if nobody can use the session any more.
    pub(super) fn collect(
        &self,
        commands: &mut VecDeque<Command>,
        dirty: &mut Vec<Arc<Pipe>>,
    ) -> bool {
        let mut inner = self.lock();
        commands.append(&mut inner.commands);
        dirty.append(&mut inner.dirty);
        inner.handles > 0
    }

    /// The task: remembers who is to be woken; false if there is something already.
    pub(super) fn sleep(&self, waker: &Waker) -> bool {
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

    /// The task: a channel that goes message by message, or is gone (`None`).
    pub(super) fn enter(&self, id: ChannelId, pipe: Option<Arc<Pipe>>) {
        let channels = &mut self.lock().channels;
        match pipe {
            Some(pipe) => channels.insert(id, pipe),
            None => channels.remove(&id),
        };
    }

    /// A channel that goes message by message.
    pub(super) fn channel(&self, id: ChannelId) -> Option<Arc<Pipe>> {
        self.lock().channels.get(&id).cloned()
    }

    /// Has the task look again.
    pub(super) fn nudge(&self) {
        self.change(|_| ());
    }

    /// The task: counts octets among those that wait; false if there is no room for them. Nobody
    /// else adds any.
    pub(super) fn wait(&self, octets: usize) -> bool {
        let fits = self.waiting.load(Ordering::Relaxed) + octets <= MAX_WAITING;
        if fits {
            self.waiting.fetch_add(octets, Ordering::Relaxed);
        }
        fits
    }

    /// They wait no more.
    pub(super) fn waits_no_more(&self, octets: usize) {
        let before = self.waiting.fetch_sub(octets, Ordering::Relaxed);
        debug_assert!(before >= octets, "more was answered than was asked");
    }

    /// The round trip as measured last.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.lock().rtt
    }

    pub(super) fn set_rtt(&self, rtt: Duration) {
        self.lock().rtt = Some(rtt);
    }

    /// The lane in which the task runs, if it is not where it began.
    pub(super) fn lane(&self) -> Option<OwnLane> {
        if !self.is_away.load(Ordering::Relaxed) {
            return None;
        }
        self.lock().lane.clone()
    }

    pub(super) fn set_lane(&self, lane: Option<OwnLane>) {
        self.is_away.store(lane.is_some(), Ordering::Relaxed);
        self.lock().lane = lane;
    }
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("Mail")
            .field("handles", &inner.handles)
            .field("end", &inner.end)
            .finish_non_exhaustive()
    }
}
