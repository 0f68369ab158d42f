//! The task of a session: bytes between its channels and the stream below, timers, who is woken.
//!
//! A turn takes what the handles want (`commands`, `output` for bytes), reads and opens what came
//! (`input`, `events`), seals what may be sent and writes it, until one side has to wait.

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

/// Turns before other tasks have theirs.
const ROUNDS: usize = 16;
/// How long the peer may take to end channels that nobody holds any more.
const LINGER: Duration = Duration::from_secs(5);

/// How long spare buffers are kept.
const SWEEP: Duration = Duration::from_secs(1);

/// What a new session brings with it.
pub(super) struct Start {
    pub(super) line: Line,
    pub(super) role: Role,
    pub(super) limits: Limits,
    pub(super) keepalive: Option<Keepalive>,
    pub(super) inactivity: Option<Duration>,
    pub(super) mail: Arc<Mail>,
    pub(super) about: Arc<About>,
    pub(super) routes: Vec<Route>,
    /// It goes message by message.
    pub(super) messages: Option<Teller>,
}

/// Moves the bytes of a session until it is over.
pub(super) struct Driver {
    line: Line,
    connection: Connection,
    mail: Arc<Mail>,
    lives: HashMap<ChannelId, Live>,
    globals: HashMap<GlobalId, Global>,
    routes: Vec<Route>,
    /// Where all is told of a session that goes message by message.
    messages: Option<Teller>,
    commands: VecDeque<Command>,
    dirty: Vec<Arc<Pipe>>,
    /// To be looked at again at the next turn.
    later: Vec<Arc<Pipe>>,
    alive: Alive,
    /// The least window of a channel, octets.
    window: u32,
    /// A close without an end of data is a reset.
    resets: bool,
    /// Octets that have to lie together before the next packet can be opened.
    want: usize,
    /// The last turn ended before all that came was taken in.
    more: bool,
    /// The last turn ended before all was sealed that may be sent.
    unsealed: bool,
    /// A small message came that is waited for, on a line that others share: who waits goes first.
    prompt: bool,
    wake: Vec<Waker>,
    sleep: Pin<Box<Sleep>>,
    until: Option<Time>,
    /// When the spare buffers are looked at, if there are any.
    sweep: Option<Time>,
    /// Since when nobody holds the session, or it was left.
    left: Option<Time>,
    /// The words that it was left with.
    goodbye: Option<(Disconnect, String)>,
    /// The session is over; its last words have so much time to leave.
    ending: Option<Time>,
    load: Load,
    /// The lane that it has while it is bulk and several channels wait for it.
    own: Option<SessionLane>,
}

/// A channel that has not closed.
struct Live {
    pipe: Arc<Pipe>,
    opening: Option<oneshot::Sender<Result<Handle, OpenError>>>,
    asked: VecDeque<(String, oneshot::Sender<Result<(), RequestError>>)>,
}

/// A request of ours outside of channels.
enum Global {
    /// A sign of life.
    Alive,
    /// A handle waits for the answer.
    Asked {
        name: String,
        route: Option<Route>,
        reply: oneshot::Sender<Result<GlobalAnswer, RequestError>>,
    },
    /// Nobody waits.
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
        // What a server is asked for comes to one place, and is refused there.
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

    /// One turn; the session is over when it gives the reason.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let now = system::monotonic_now();
        self.line.transport.handle_timeout(now)?;
        self.probe(now)?;
        self.sweep(now);
        let held = self.mail.collect(&mut self.commands, &mut self.dirty);
        self.obey(now)?;
        self.attend_all(now);
        self.line.set_shared(self.lives.len() > 1);
        // What can leave leaves before more comes, so that answers do not pile up.
        self.give_out(cx)?;
        self.take_in(cx, now)?;
        // The questions that are owed follow each other at once. One that waited for the next turn
        // would leave when the peer begins a key exchange, and some answer it in the middle of that.
        self.probe(now)?;
        let shared = self.line.is_shared();
        if shared {
            self.wake_all();
        }
        self.prompt &= shared && (self.more || self.unsealed);
        if self.prompt {
            // Not before those who wait have had their turn.
            self.unsealed = true;
        } else {
            self.give_out(cx)?;
        }
        self.leave_if_deserted(held, now)
    }

    /// Gives spare buffers away when none have gone round for a while.
    fn sweep(&mut self, now: Time) {
        let spares = &self.mail.spares;
        let any = match self.sweep {
            Some(at) if at > now => return,
            Some(_) => spares.sweep(),
            None => spares.is_used(),
        };
        self.sweep = any.then_some(now + SWEEP);
    }

    /// Ends the session when nobody holds it and nothing is on its way any more.
    fn leave_if_deserted(&mut self, held: bool, now: Time) -> Result<(), End> {
        if held && self.goodbye.is_none() {
            self.left = None;
            return Ok(());
        }
        let since = *self.left.get_or_insert(now);
        // Message by message a channel ends when that is said, and not when nobody has it.
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

    /// A peer that has left may have said why.
    fn reason(&mut self, cx: &mut Context<'_>, why: End) -> End {
        match why {
            End::Below(_) => match self.take_in(cx, system::monotonic_now()) {
                Err(said @ End::Ssh(_)) => said,
                _ => why,
            },
            why => why,
        }
    }

    /// The session is over: everybody is told, and the last words leave.
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

    /// Sleeps, unless there is something to do already.
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
    /// Goes where the session belongs after `worked`, if that is another lane.
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

    /// Works until there is nothing to do, or it is the turn of others.
    fn work(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let me = self;
        let mut slice = TimeSlice::default();
        for _ in 0..ROUNDS {
            if let Some(until) = me.ending {
                // The last words leave.
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
            // What came for one channel must not wait behind another's: with several, who was woken
            // has a turn after each of this. With a slice of 300 µs instead, an echo beside four
            // bulk channels took twice as long at the median.
            if me.line.is_shared() || slice.is_over_for_all(input::TURN) {
                break;
            }
        }
        give_way(cx);
        Poll::Pending
    }
}

/// Whoever waits is told also when the runtime ends the task.
impl Drop for Driver {
    fn drop(&mut self) {
        if self.ending.is_none() {
            self.end(
                &End::Ssh(SshError::Policy("the runtime has ended")),
                system::monotonic_now(),
            );
            self.wake_all();
        }
    }
}
