//! The task of a session: moves bytes between its channels and the underlying stream, and handles
//! timers and wakeups.
//!
//! One turn executes the handles' commands (`commands`, and `output` for bytes), reads and opens
//! packets (`input`, `events`), and seals and writes what may be sent, until one side has to wait.

mod alive;
mod commands;
mod events;
mod input;
mod messages;
mod output;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adit_net::system;
use adit_ssh_proto::connection::{ChannelId, Connection, GlobalAnswer, GlobalId, Limits};
use adit_ssh_proto::{Disconnect, Role, SshError};
use adit_stream::lane::{self, Load, SessionLane};
use adit_stream::slice::{TimeSlice, give_way};
use adit_wire::Time;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use super::Keepalive;
use super::about::About;
use super::channel::Handle;
use super::error::{End, OpenError, RequestError};
use super::forwards::Route;
use super::line::{LAST_WORDS, Line};
use super::mail::{Command, Mail};
use super::messages::Teller;
use super::pipe::Pipe;
use alive::Alive;

/// Number of turns before the task yields.
const ROUNDS: usize = 16;
/// Maximum time for the peer to close channels that have no handles any more.
const LINGER: Duration = Duration::from_secs(5);

/// Time that unused spare buffers are kept.
const SWEEP: Duration = Duration::from_secs(1);

/// The parts of a new session.
pub(super) struct Start {
    pub(super) line: Line,
    pub(super) role: Role,
    pub(super) limits: Limits,
    pub(super) keepalive: Option<Keepalive>,
    pub(super) inactivity: Option<Duration>,
    pub(super) mail: Arc<Mail>,
    pub(super) about: Arc<About>,
    pub(super) routes: Vec<Route>,
    /// Set if the session is in message mode.
    pub(super) messages: Option<Teller>,
}

/// The task that moves the bytes of a session until it is over.
pub(super) struct Driver {
    line: Line,
    connection: Connection,
    mail: Arc<Mail>,
    lives: HashMap<ChannelId, Live>,
    globals: HashMap<GlobalId, Global>,
    routes: Vec<Route>,
    /// The feed of a session in message mode.
    messages: Option<Teller>,
    commands: VecDeque<Command>,
    dirty: Vec<Arc<Pipe>>,
    /// Channels to look at again in the next turn.
    later: Vec<Arc<Pipe>>,
    alive: Alive,
    /// The smallest window of a channel, in bytes.
    window: u32,
    /// True if a close without EOF is a reset.
    resets: bool,
    /// Number of contiguous bytes needed to open the next packet.
    want: usize,
    /// True if the last turn ended before all input was processed.
    more: bool,
    /// True if the last turn ended before all that may be sent was sealed.
    unsealed: bool,
    /// True if a small message woke its reader on a shared line: the reader runs before more is sealed.
    prompt: bool,
    wake: Vec<Waker>,
    sleep: Pin<Box<Sleep>>,
    until: Option<Time>,
    /// The next check of next check buffers, if there are any.
    sweep: Option<Time>,
    /// The time at which the last handle was dropped, or the session was left.
    left: Option<Time>,
    /// The disconnect message of a session that was left.
    goodbye: Option<(Disconnect, String)>,
    /// The deadline for the last messages of a session that is over.
    ending: Option<Time>,
    load: Load,
    /// The session's own lane, while it moves bulk data for several channels.
    own: Option<SessionLane>,
}

/// A channel that has not closed.
struct Live {
    pipe: Arc<Pipe>,
    opening: Option<oneshot::Sender<Result<Handle, OpenError>>>,
    asked: VecDeque<(String, oneshot::Sender<Result<(), RequestError>>)>,
}

/// A global request that this end sent.
enum Global {
    /// A keepalive.
    Alive,
    /// A request whose answer a handle waits for.
    Asked {
        name: String,
        route: Option<Route>,
        reply: oneshot::Sender<Result<GlobalAnswer, RequestError>>,
    },
    /// A request without a handle that waits.
    Told,
}

impl Driver {
    pub(super) fn spawn(start: Start) {
        let Start {
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
        connection.set_takes_own(role == Role::Server && messages.is_none());
        lane::spawn(Self {
            line,
            window,
            connection,
            lives: HashMap::new(),
            globals: HashMap::new(),
            routes,
            messages,
            commands: VecDeque::new(),
            dirty: Vec::new(),
            later: Vec::new(),
            alive: Alive::new(keepalive, inactivity, system::monotonic_now()),
            resets: about.is_adit(),
            want: 1,
            more: false,
            unsealed: false,
            prompt: false,
            wake: Vec::new(),
            sleep: Box::pin(sleep(Duration::ZERO)),
            until: None,
            sweep: None,
            left: None,
            goodbye: None,
            ending: None,
            load: Load::default(),
            own: None,
            mail,
        });
    }

    /// Runs one turn; returns an error with the reason when the session is over.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let now = system::monotonic_now();
        self.line.transport.handle_timeout(now)?;
        self.probe(now)?;
        self.sweep(now);
        let held = self.mail.collect(&mut self.commands, &mut self.dirty);
        self.obey(now)?;
        self.attend_all(now);
        self.line.set_shared(self.lives.len() > 1);
        // Send before reading more, so that answers do not pile up.
        self.give_out(cx)?;
        self.take_in(cx, now)?;
        // The initial keepalive requests follow each other immediately. One that waited for the next
        // turn would be sent when the peer starts a key exchange, and some peers answer it in the
        // middle of that.
        self.probe(now)?;
        let shared = self.line.is_shared();
        if shared {
            self.wake_all();
        }
        self.prompt &= shared && (self.more || self.unsealed);
        if self.prompt {
            // Let the woken readers run first.
            self.unsealed = true;
        } else {
            self.give_out(cx)?;
        }
        self.leave_if_deserted(held, now)
    }

    /// Releases the spare buffers if none was used for a while.
    fn sweep(&mut self, now: Time) {
        let spares = &self.mail.spares;
        let any = match self.sweep {
            Some(at) if at > now => return,
            Some(_) => spares.sweep(),
            None => spares.is_used(),
        };
        self.sweep = any.then_some(now + SWEEP);
    }

    /// Ends the session when no handle is left and nothing waits to be sent.
    fn leave_if_deserted(&mut self, held: bool, now: Time) -> Result<(), End> {
        if held && self.goodbye.is_none() {
            self.left = None;
            return Ok(());
        }
        let since = *self.left.get_or_insert(now);
        // In message mode a channel closes only on request, not when its handles are dropped.
        let done = self.lives.is_empty() || self.messages.is_some();
        let quiet = done && self.line.unsent() == 0 && self.line.transport.writable();
        if quiet || now >= since + LINGER {
            let left = || (Disconnect::ByApplication, String::new());
            let (reason, text) = self.goodbye.take().unwrap_or_else(left);
            self.line.transport.disconnect(reason, &text);
            return Err(End::Closed);
        }
        Ok(())
    }

    /// Looks for a disconnect message of a peer that closed the connection.
    fn reason(&mut self, cx: &mut Context<'_>, why: End) -> End {
        match why {
            End::Below(_) => match self.take_in(cx, system::monotonic_now()) {
                Err(said @ End::Ssh(_)) => said,
                _ => why,
            },
            why => why,
        }
    }

    /// Ends the session: notifies all waiting tasks and queues the last messages.
    fn end(&mut self, why: &End, now: Time) {
        let reason = match why {
            End::Ssh(why) => why.disconnect(),
            End::Idle(_) | End::Silent(_) => Some(Disconnect::ConnectionLost),
            _ => None,
        };
        if let Some(reason) = reason {
            self.line.transport.disconnect(reason, &why.to_string());
        }
        self.mail.finish(why);
        for (_, live) in self.lives.drain() {
            live.pipe.cut(why, &mut self.wake);
            if let Some(opening) = live.opening {
                let _ = opening.send(Err(why.clone().into()));
            }
            for (_, asked) in live.asked {
                let _ = asked.send(Err(why.clone().into()));
            }
        }
        for (_, global) in self.globals.drain() {
            if let Global::Asked { reply, .. } = global {
                let _ = reply.send(Err(why.clone().into()));
            }
        }
        self.alive.end(why);
        self.routes.clear();
        self.commands.clear();
        self.dirty.clear();
        self.later.clear();
        self.mail.set_lane(None);
        self.ending = Some(now + LAST_WORDS);
    }

    /// Sleeps, unless there is work already.
    fn rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.mail.sleep(cx.waker()) || self.messages.as_ref().is_some_and(Teller::goes_on) {
            return Poll::Ready(());
        }
        let now = system::monotonic_now();
        let left = self.left.map(|since| since + LINGER);
        let due = [
            self.line.transport.poll_timeout(now),
            self.alive.due(now),
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
        let done = me.work(cx);
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
        let Some(lane) = self.load.session_lane_after(worked, shared, &mut self.own) else {
            return;
        };
        let there = lane.enter();
        (self.sleep, self.until) = (Box::pin(sleep(Duration::ZERO)), None);
        if let Err(why) = self.line.watch_from_here() {
            self.end(&End::from(why), system::monotonic_now());
            self.wake_all();
        }
        drop(there);
        self.mail
            .set_lane(self.own.as_ref().map(|own| own.own().clone()));
        lane::change(lane);
    }

    /// Works until there is nothing to do, or it is other tasks' turn.
    fn work(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let me = self;
        let mut slice = TimeSlice::default();
        for _ in 0..ROUNDS {
            if let Some(until) = me.ending {
                // Send the last messages.
                return match me.line.poll_part(cx) {
                    Poll::Pending => me.poll_sleep(cx, until),
                    done => done,
                };
            }
            if let Err(why) = me.turn(cx) {
                let why = me.reason(cx, why);
                me.end(&why, system::monotonic_now());
                me.wake_all();
                continue;
            }
            me.wake_all();
            if !me.more && !me.unsealed && me.rest(cx).is_pending() {
                return Poll::Pending;
            }
            // With several channels, data for one must not wait behind another's, so woken readers run
            // after each turn. With a slice of 300 µs instead, the median time of an echo beside four
            // bulk channels doubled.
            if me.line.is_shared() || slice.is_over_for_all(input::TURN) {
                break;
            }
        }
        give_way(cx);
        Poll::Pending
    }
}

/// Notifies waiting tasks also when the runtime drops the task.
impl Drop for Driver {
    fn drop(&mut self) {
        if self.ending.is_none() {
            self.end(
                &End::Ssh(SshError::Policy("the runtime was shut down")),
                system::monotonic_now(),
            );
            self.wake_all();
        }
    }
}
