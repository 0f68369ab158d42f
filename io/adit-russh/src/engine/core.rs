//! The state of a session, behind a lock.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use adit_ssh_proto::connection::{
    CallError, ChannelId as Id, ChannelKind, Connection, GlobalAnswer, GlobalId, GlobalRequest,
    Limits, Request, Role, WantReply,
};
use tokio::sync::oneshot;

use super::{Live, Mailbox};
use crate::{Disconnect, Error};

/// The state of a session, behind a lock.
pub(crate) struct Core {
    state: Mutex<State>,
    /// Messages without bytes that may wait in a channel's mailbox.
    mailbox: usize,
}

/// What is behind the lock.
pub(crate) struct State {
    pub(crate) connection: Connection,
    pub(crate) lives: HashMap<Id, Live>,
    /// Our requests outside of channels; `None`: a sign of life.
    pub(crate) globals: HashMap<GlobalId, Option<oneshot::Sender<Result<GlobalAnswer, Error>>>>,
    /// The user is in.
    pub(crate) ready: bool,
    /// The session is over.
    pub(crate) over: bool,
    /// The words to end it with.
    pub(super) goodbye: Option<(Disconnect, String)>,
    /// New keys are wanted.
    pub(super) rekey: bool,
    /// Those who may still use it.
    pub(super) holds: usize,
    /// Channels that could not go on for a full output.
    pub(super) stalled: Vec<Id>,
    /// Pieces that may wait in one channel before a writer does.
    pub(super) pieces: usize,
    /// Requests of the peer are answered by the handler; a client refuses them.
    pub(super) serves: bool,
    /// Bytes of a channel were sent since the task has looked.
    pub(super) sent_data: bool,
    driver: Option<Waker>,
    /// Who waits for room for messages that are no data.
    waiters: Vec<Waker>,
}

impl Core {
    /// `mailbox`: messages that may wait for a channel's reader; `pieces`: pieces of data that may
    /// wait in a channel before its writer does.
    pub(crate) fn new(role: Role, limits: Limits, mailbox: usize, pieces: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                connection: Connection::new(role, limits),
                lives: HashMap::new(),
                globals: HashMap::new(),
                ready: false,
                over: false,
                goodbye: None,
                rekey: false,
                holds: 0,
                stalled: Vec::new(),
                pieces: pieces.max(1),
                serves: role == Role::Server,
                sent_data: false,
                driver: None,
                waiters: Vec::new(),
            }),
            mailbox,
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something that the task is to see.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let done = work(&mut state);
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        done
    }

    /// A mailbox for a new channel.
    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::new(Mailbox::new(self.mailbox))
    }

    /// The task: remembers who is to be woken.
    pub(super) fn sleep(&self, cx: &Context<'_>) {
        let mut state = self.lock();
        match &mut state.driver {
            Some(old) => old.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Calls the protocol's machine, once there is room in its output.
    async fn call<T>(
        &self,
        mut work: impl FnMut(&mut State) -> Result<T, CallError>,
    ) -> Result<T, Error> {
        poll_fn(|cx| {
            self.with(|state| {
                if let Err(why) = state.check() {
                    return Poll::Ready(Err(why));
                }
                match work(state) {
                    Err(CallError::Full) => {
                        state.waiters.push(cx.waker().clone());
                        Poll::Pending
                    }
                    done => Poll::Ready(done.map_err(Error::from)),
                }
            })
        })
        .await
    }

    /// Opens a channel.
    pub(crate) async fn open(&self, kind: ChannelKind) -> Result<(Id, Arc<Mailbox>), Error> {
        let mailbox = self.mailbox();
        let (opening, answer) = oneshot::channel();
        let mut opening = Some(opening);
        let id = self.call(|state| {
            let id = state.connection.open(&kind)?;
            let mut live = Live::new(Arc::clone(&mailbox));
            live.opening = opening.take();
            state.lives.insert(id, live);
            Ok(id)
        });
        let id = id.await?;
        // Whoever gives up the wait closes the channel, when it opens.
        let given_up = GivenUp { core: self, id };
        let answer = answer.await.map_err(|_| Error::Disconnect)?;
        std::mem::forget(given_up);
        answer.map(|()| (id, mailbox))
    }

    /// Asks for something in a channel. The answer comes to its mailbox.
    pub(crate) async fn request(
        &self,
        id: Id,
        request: Request,
        want_reply: bool,
    ) -> Result<(), Error> {
        let want = want(want_reply);
        self.call(|state| gone_is_fine(state.connection.request(id, &request, want)))
            .await
    }

    /// Asks for something outside of channels, and waits for the answer if there is one.
    pub(crate) async fn global(&self, request: GlobalRequest) -> Result<GlobalAnswer, Error> {
        let (reply, answer) = oneshot::channel();
        let mut reply = Some(reply);
        let asked = self.call(|state| {
            let id = state.connection.global_request(&request)?;
            if let Some(id) = id {
                state.globals.insert(id, reply.take());
            }
            Ok(id.is_some())
        });
        if !asked.await? {
            return Ok(GlobalAnswer::Granted { data: Vec::new() });
        }
        match answer.await {
            Ok(Ok(GlobalAnswer::Refused)) => Err(Error::RequestDenied),
            Ok(answer) => answer,
            Err(_) => Err(Error::Disconnect),
        }
    }

    /// Ends the session, once what waits now was sent.
    pub(crate) fn disconnect(&self, reason: Disconnect, words: &str) -> Result<(), Error> {
        self.with(|state| {
            if state.over {
                return Err(Error::Disconnect);
            }
            state
                .goodbye
                .get_or_insert_with(|| (reason, words.to_owned()));
            Ok(())
        })
    }

    /// Makes new keys.
    pub(crate) fn rekey(&self) -> Result<(), Error> {
        self.with(|state| {
            state.rekey = true;
            state.check()
        })
    }

    /// The task: the session is over.
    pub(crate) fn finish(&self) {
        let (lives, globals) = self.with(|state| {
            state.over = true;
            state.wake_waiters();
            let lives = std::mem::take(&mut state.lives);
            (lives, std::mem::take(&mut state.globals))
        });
        drop(globals);
        for (_, mut live) in lives {
            live.wake();
            live.mailbox.close();
        }
    }
}

/// Closes a channel that nobody waits for any more.
struct GivenUp<'a> {
    core: &'a Core,
    id: Id,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.core.with(|state| state.connection.close(self.id));
    }
}

impl State {
    /// Whether anything can be asked for.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.over {
            return Err(Error::Disconnect);
        }
        if !self.ready {
            return Err(Error::NotAuthenticated);
        }
        Ok(())
    }

    /// There is room again.
    pub(super) fn wake_waiters(&mut self) {
        self.waiters.drain(..).for_each(Waker::wake);
    }
}

/// What is asked of a channel that has closed is done without, as russh does it: its reader learns
/// of the end, and whoever races with it is no worse for it.
pub(super) const fn gone_is_fine(done: Result<(), CallError>) -> Result<(), CallError> {
    match done {
        Err(CallError::Gone | CallError::Ended) => Ok(()),
        other => other,
    }
}

pub(crate) const fn want(reply: bool) -> WantReply {
    if reply { WantReply::Yes } else { WantReply::No }
}

/// One who may use a session. A client's ends when the last one is gone.
pub(crate) struct Hold(Arc<Core>);

impl Hold {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        core.with(|state| state.holds += 1);
        Self(Arc::clone(core))
    }
}

impl Clone for Hold {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.with(|state| state.holds -= 1);
    }
}

impl std::ops::Deref for Hold {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.0
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hold")
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Core")
    }
}

/// Whoever waits is told also when the runtime ends the task.
pub(crate) struct Over(pub(crate) Arc<Core>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.finish();
    }
}
