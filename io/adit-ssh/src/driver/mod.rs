//! The task of a session: moves bytes between its channels and the underlying stream, and handles
//! timers and wakeups.
//!
//! One turn executes the handles' commands (`commands`, and `output` for bytes), reads and opens
//! packets (`input`, `events`), and seals and writes what may be sent, until one side has to wait.

mod commands;
mod events;
mod input;
mod liveness;
mod messages;
mod output;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adit_net::system;
use adit_ssh_proto::connection::{
    ChannelId, Connection, ConnectionLimits, GlobalAnswer, GlobalRequestId,
};
use adit_ssh_proto::{Disconnect, Role, SshError};
use adit_stream::lane::{self, SessionLane, TaskLoad};
use adit_stream::time_slice::{TimeSlice, yield_to_others};
use adit_wire::Time;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use super::Keepalive;
use super::channel::ChannelHandle;
use super::error::{OpenError, RequestError, SessionEnd};
use super::messages::EventSender;
use super::peer::KeyExchangeInfo;
use super::routes::Route;
use super::shared_channel::SharedChannel;
use super::shared_session::{Command, SharedSession};
use super::transport_stream::{CLOSE_TIMEOUT, TransportStream};
use liveness::Liveness;

/// Number of turns before the task yields.
const MAX_TURNS: usize = 16;
/// Maximum time for the peer to close channels that have no handles any more.
const LINGER: Duration = Duration::from_secs(5);

/// Time that unused spare buffers are kept.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The parts of a new session.
pub(super) struct SessionParts {
    pub(super) line: TransportStream,
    pub(super) role: Role,
    pub(super) limits: ConnectionLimits,
    pub(super) keepalive: Option<Keepalive>,
    pub(super) inactivity: Option<Duration>,
    pub(super) mail: Arc<SharedSession>,
    pub(super) about: Arc<KeyExchangeInfo>,
    pub(super) routes: Vec<Route>,
    /// Set if the session is in message mode.
    pub(super) messages: Option<EventSender>,
}

/// The task that moves the bytes of a session until it is over.
pub(super) struct Driver {
    line: TransportStream,
    connection: Connection,
    mail: Arc<SharedSession>,
    channels: HashMap<ChannelId, OpenChannel>,
    globals: HashMap<GlobalRequestId, PendingGlobal>,
    routes: Vec<Route>,
    /// The feed of a session in message mode.
    messages: Option<EventSender>,
    commands: VecDeque<Command>,
    dirty: Vec<Arc<SharedChannel>>,
    /// Channels to look at again in the next turn.
    later: Vec<Arc<SharedChannel>>,
    alive: Liveness,
    /// The smallest window of a channel, in bytes.
    window: u32,
    /// True if a close without EOF is a reset.
    resets: bool,
    /// Number of contiguous bytes needed to open the next packet.
    needed: usize,
    /// True if the last turn ended before all input was processed.
    has_more_input: bool,
    /// True if the last turn ended before all that may be sent was sealed.
    unsealed: bool,
    /// True if a small message woke its reader on a shared line: the reader runs before more is sealed.
    yield_to_reader: bool,
    wake: Vec<Waker>,
    sleep: Pin<Box<Sleep>>,
    until: Option<Time>,
    /// The next check of the spare buffers, if there are any.
    sweep: Option<Time>,
    /// The time at which the last handle was dropped, or the session was left.
    unused_since: Option<Time>,
    /// The disconnect message of a session that was left.
    goodbye: Option<(Disconnect, String)>,
    /// The deadline for the last messages of a session that is over.
    ending: Option<Time>,
    load: TaskLoad,
    /// The session's own lane, while it moves bulk data for several channels.
    own_lane: Option<SessionLane>,
}

/// A channel that has not closed.
struct OpenChannel {
    pipe: Arc<SharedChannel>,
    opening: Option<oneshot::Sender<Result<ChannelHandle, OpenError>>>,
    asked: VecDeque<(String, oneshot::Sender<Result<(), RequestError>>)>,
}

/// A global request that this end sent.
enum PendingGlobal {
    /// A keepalive.
    Keepalive,
    /// A request whose answer a handle waits for.
    Waiting {
        name: String,
        route: Option<Route>,
        reply: oneshot::Sender<Result<GlobalAnswer, RequestError>>,
    },
    /// A request without a handle that waits.
    NoWaiter,
}

impl Driver {
    pub(super) fn spawn(start: SessionParts) {
        let SessionParts {
            line,
            role,
            limits,
            keepalive,
            inactivity,
            mail,
            about,
            routes,
            messages,
        } = start;
        let window = limits.max_packet.min(limits.window);
        let mut connection = Connection::new(role, limits);
        // A server's application routes them all to one place, which refuses what it does not want.
        connection.set_accept_custom_channels(role == Role::Server && messages.is_none());
        lane::spawn_movable(Self {
            line,
            window,
            connection,
            channels: HashMap::new(),
            globals: HashMap::new(),
            routes,
            messages,
            commands: VecDeque::new(),
            dirty: Vec::new(),
            later: Vec::new(),
            alive: Liveness::new(keepalive, inactivity, system::monotonic_now()),
            resets: about.is_adit(),
            needed: 1,
            has_more_input: false,
            unsealed: false,
            yield_to_reader: false,
            wake: Vec::new(),
            sleep: Box::pin(sleep(Duration::ZERO)),
            until: None,
            sweep: None,
            unused_since: None,
            goodbye: None,
            ending: None,
            load: TaskLoad::default(),
            own_lane: None,
            mail,
        });
    }

    /// Runs one turn; returns an error with the reason when the session is over.
    fn run_turn(&mut self, cx: &mut Context<'_>) -> Result<(), SessionEnd> {
        let now = system::monotonic_now();
        self.line.transport.handle_timeout(now)?;
        self.send_keepalive(now)?;
        self.sweep_buffers(now);
        let held = self.mail.take_work(&mut self.commands, &mut self.dirty);
        self.run_commands(now)?;
        self.process_channels(now);
        self.line.set_shared(self.channels.len() > 1);
        // Send before reading more, so that answers do not pile up.
        self.send_output(cx)?;
        self.process_input(cx, now)?;
        // The initial keepalive requests follow each other immediately. One that waited for the next
        // turn would be sent when the peer starts a key exchange, and some peers answer it in the
        // middle of that.
        self.send_keepalive(now)?;
        let shared = self.line.is_shared();
        if shared {
            self.wake_all();
        }
        self.yield_to_reader &= shared && (self.has_more_input || self.unsealed);
        if self.yield_to_reader {
            // Let the woken readers run first.
            self.unsealed = true;
        } else {
            self.send_output(cx)?;
        }
        self.end_if_unused(held, now)
    }

    /// Releases the spare buffers if none was used for a while.
    fn sweep_buffers(&mut self, now: Time) {
        let spares = &self.mail.spares;
        let any = match self.sweep {
            Some(at) if at > now => return,
            Some(_) => spares.release_unused(),
            None => spares.is_used(),
        };
        self.sweep = any.then_some(now + SWEEP_INTERVAL);
    }

    /// Ends the session when no handle is left and nothing waits to be sent.
    fn end_if_unused(&mut self, held: bool, now: Time) -> Result<(), SessionEnd> {
        if held && self.goodbye.is_none() {
            self.unused_since = None;
            return Ok(());
        }
        let since = *self.unused_since.get_or_insert(now);
        // In message mode a channel closes only on request, not when its handles are dropped.
        let done = self.channels.is_empty() || self.messages.is_some();
        let quiet = done && self.line.unsent_bytes() == 0 && self.line.transport.is_writable();
        if quiet || now >= since + LINGER {
            let left = || (Disconnect::ByApplication, String::new());
            let (reason, text) = self.goodbye.take().unwrap_or_else(left);
            self.line.transport.disconnect(reason, &text);
            return Err(SessionEnd::Closed);
        }
        Ok(())
    }

    /// Looks for a disconnect message of a peer that closed the connection.
    fn disconnect_reason(&mut self, cx: &mut Context<'_>, why: SessionEnd) -> SessionEnd {
        match why {
            SessionEnd::Io(_) => match self.process_input(cx, system::monotonic_now()) {
                Err(said @ SessionEnd::Ssh(_)) => said,
                _ => why,
            },
            why => why,
        }
    }

    /// Ends the session: notifies all waiting tasks and queues the last messages.
    fn end_session(&mut self, why: &SessionEnd, now: Time) {
        let reason = match why {
            SessionEnd::Ssh(why) => why.disconnect(),
            SessionEnd::Idle(_) | SessionEnd::PeerSilent(_) => Some(Disconnect::ConnectionLost),
            _ => None,
        };
        if let Some(reason) = reason {
            self.line.transport.disconnect(reason, &why.to_string());
        }
        self.mail.set_ended(why);
        for (_, live) in self.channels.drain() {
            live.pipe.end_with_session(why, &mut self.wake);
            if let Some(opening) = live.opening {
                let _ = opening.send(Err(why.clone().into()));
            }
            for (_, asked) in live.asked {
                let _ = asked.send(Err(why.clone().into()));
            }
        }
        for (_, global) in self.globals.drain() {
            if let PendingGlobal::Waiting { reply, .. } = global {
                let _ = reply.send(Err(why.clone().into()));
            }
        }
        self.alive.fail_waiters(why);
        self.routes.clear();
        self.commands.clear();
        self.dirty.clear();
        self.later.clear();
        self.mail.set_lane(None);
        self.ending = Some(now + CLOSE_TIMEOUT);
    }

    /// Sleeps, unless there is work already.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.mail.store_waker(cx.waker())
            || self.messages.as_ref().is_some_and(EventSender::can_resume)
        {
            return Poll::Ready(());
        }
        let now = system::monotonic_now();
        let left = self.unused_since.map(|since| since + LINGER);
        let due = [
            self.line.transport.poll_timeout(now),
            self.alive.next_deadline(now),
            self.sweep,
            left,
        ];
        match due.into_iter().flatten().min() {
            Some(until) => self.poll_sleep(cx, until),
            None => Poll::Pending,
        }
    }

    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Time) -> Poll<()> {
        if self.until != Some(until) {
            self.until = Some(until);
            let wait = until.duration_since(system::monotonic_now());
            self.sleep.as_mut().reset(Instant::now() + wait);
        }
        let slept = self.sleep.as_mut().poll(cx);
        if slept.is_ready() {
            self.until = None;
        }
        slept
    }

    fn wake_all(&mut self) {
        self.wake.drain(..).for_each(Waker::wake);
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let me = self.get_mut();
        let began = std::time::Instant::now();
        let done = me.poll_work(cx);
        if done.is_pending() {
            me.change_lane(began.elapsed());
        }
        done
    }
}

impl Driver {
    /// Moves the task to another lane if the session belongs there after `worked`.
    fn change_lane(&mut self, worked: Duration) {
        let shared = self.line.is_shared();
        let Some(lane) = self
            .load
            .session_lane_after(worked, shared, &mut self.own_lane)
        else {
            return;
        };
        let there = lane.enter();
        (self.sleep, self.until) = (Box::pin(sleep(Duration::ZERO)), None);
        if let Err(why) = self.line.watch_from_here() {
            self.end_session(&SessionEnd::from(why), system::monotonic_now());
            self.wake_all();
        }
        drop(there);
        self.mail
            .set_lane(self.own_lane.as_ref().map(|own| own.lane_ref().clone()));
        lane::change_lane(lane);
    }

    /// Works until there is nothing to do, or it is other tasks' turn.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let me = self;
        let mut slice = TimeSlice::default();
        for _ in 0..MAX_TURNS {
            if let Some(until) = me.ending {
                // Send the last messages.
                return match me.line.poll_disconnect(cx) {
                    Poll::Pending => me.poll_sleep(cx, until),
                    done => done,
                };
            }
            if let Err(why) = me.run_turn(cx) {
                let why = me.disconnect_reason(cx, why);
                me.end_session(&why, system::monotonic_now());
                me.wake_all();
                continue;
            }
            me.wake_all();
            if !me.has_more_input && !me.unsealed && me.poll_idle(cx).is_pending() {
                return Poll::Pending;
            }
            // With several channels, data for one must not wait behind another's, so woken readers run
            // after each turn. With a slice of 300 µs instead, the median time of an echo beside four
            // bulk channels doubled.
            if me.line.is_shared() || slice.is_used_up_if_unwatched(input::MAX_TURN_INPUT) {
                break;
            }
        }
        yield_to_others(cx);
        Poll::Pending
    }
}

/// Notifies waiting tasks also when the runtime drops the task.
impl Drop for Driver {
    fn drop(&mut self) {
        if self.ending.is_none() {
            self.end_session(
                &SessionEnd::Ssh(SshError::Policy("the runtime was shut down")),
                system::monotonic_now(),
            );
            self.wake_all();
        }
    }
}
