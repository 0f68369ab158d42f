//! A KCP session, shared by its stream and the driver of its socket.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adit_crypto::packet::session::{PacketSession, SessionHeader, SessionId};
use adit_kcp_proto::{ChangeError, Config, Kcp, SendError, State as Life, Stats};
use adit_net::system::{self, ThreadRng};
use adit_wire::{Entropy, ProtocolError, Time, subslice};

use crate::newcomers::nothing;

use super::counters::add;
use super::parts::Parts;
use super::route::Route;
use super::socket::Socket;
use super::wire::{Rest, Wire};

mod beside;
mod state;

/// Maximum time for which written data is still sent after the stream was dropped.
const LINGER: Duration = Duration::from_secs(5);
/// Free space in bytes at which a waiting writer is woken; less if the window is small.
const WORTH_WAKING: usize = 32 << 10;
/// Segments of a long write that are sent before more of it is queued: as many as are still in the
/// first-level cache when they are put into datagrams.
const SLICE: usize = 16;

/// A KCP session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) socket: Arc<Socket>,
    /// The address at which it started; see [`Self::peer`].
    pub(super) born_at: SocketAddr,
    pub(super) conv: u32,
    /// Its index in the driver's table.
    pub(super) slot: usize,
    state: Mutex<State>,
}

/// State behind the lock.
#[derive(Debug)]
struct State {
    kcp: Kcp,
    wire: Wire,
    /// Session keys, if the socket's sessions have them.
    crypt: Option<Box<PacketSession>>,
    /// The address of the peer.
    peer: SocketAddr,
    /// The address at which the peer has last shown that it receives.
    reached: Option<SocketAddr>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Free space at which the writer is woken.
    worth: usize,
    /// Its entry among the socket's timers.
    alarm: Option<Time>,
    /// Data has arrived since the driver last settled the session.
    touched: bool,
    /// Time since which data waits for an acknowledgement and nothing was received.
    unanswered: Option<Time>,
    /// Time at which data was last received.
    heard_at: Time,
    /// The peer was sent a probe since then.
    asked: bool,
    /// Set after the stream was dropped: the time until which the session may linger.
    leaving: Option<Time>,
    /// The driver has removed the session.
    gone: bool,
    /// The transport has ended.
    cut: bool,
    /// The part of the session's counters that was already reported.
    told: Stats,
}

/// The driver's action for a session that it has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// None.
    Goes,
    /// Remove it.
    Gone,
}

/// Returns the free space at which a writer of this session is woken.
fn worth(kcp: &Kcp) -> usize {
    match kcp.config().stream {
        true => (kcp.send_room() / 2).clamp(1, WORTH_WAKING),
        false => 1,
    }
}

impl Session {
    pub(super) fn new(
        socket: Arc<Socket>,
        peer: SocketAddr,
        conv: u32,
        slot: usize,
        by_peer: bool,
        crypt: Option<Box<PacketSession>>,
    ) -> Self {
        let config = Config {
            mtu: socket.layout.kcp_mtu,
            ..socket.settings.kcp
        };
        let now = system::monotonic_now();
        let mut kcp = Kcp::new(conv, config, now);
        let mut origin = [0; 4];
        ThreadRng.fill(&mut origin);
        kcp.set_origin(u32::from_le_bytes(origin));
        let mut wire = Wire::default();
        if by_peer {
            kcp.demand_proof(now);
            wire.allowance = Some(Box::default());
        }
        Self {
            state: Mutex::new(State {
                worth: worth(&kcp),
                kcp,
                wire,
                crypt,
                peer,
                reached: (!by_peer).then_some(peer),
                reader: None,
                writer: None,
                alarm: None,
                touched: false,
                unanswered: None,
                heard_at: now,
                asked: false,
                leaving: None,
                gone: false,
                cut: false,
                told: Stats::default(),
            }),
            socket,
            born_at: peer,
            conv,
            slot,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a decrypted packet. Returns true if it is the first since the session was settled.
    pub(super) fn handle_input(&self, packet: &[u8], now: Time) -> bool {
        let mut state = self.lock();
        let State { wire, kcp, .. } = &mut *state;
        wire.handle_input(&self.socket, kcp, &[packet], now, |_| true);
        state.came(&self.socket, &[packet], now);
        !std::mem::replace(&mut state.touched, true)
    }

    /// Like [`handle_input`](Self::handle_input), for the packets at the front that belong to this
    /// session. Returns their number, and true if the first of them is the first since the session
    /// was settled.
    pub(super) fn handle_run(&self, packets: &[&[u8]], now: Time) -> (usize, bool) {
        let mut state = self.lock();
        let State { wire, kcp, .. } = &mut *state;
        let taken = wire.handle_input(&self.socket, kcp, packets, now, |route| match route {
            Route::Bare(_, opening) | Route::Data(_, Some(opening)) => opening.conv == self.conv,
            Route::Oob(conv, _) => conv == self.conv,
            Route::Data(_, None) | Route::Parity => true,
            Route::Unknown => false,
        });
        if taken == 0 {
            return (0, false);
        }
        state.came(&self.socket, subslice(packets, ..taken), now);
        (taken, !std::mem::replace(&mut state.touched, true))
    }

    /// Opens a packet with the session keys. A peer that sends from a new address is answered there
    /// from now on.
    pub(super) fn open(
        &self,
        head: SessionHeader,
        packet: &mut [u8],
        from: SocketAddr,
        now: Time,
    ) -> Result<Range<usize>, ProtocolError> {
        let mut state = self.lock();
        let crypt = state.crypt.as_mut().ok_or(ProtocolError::Unauthentic)?;
        let unknown = crypt.peer_id().is_none();
        let range = crypt.open(head, packet)?;
        if state.peer != from {
            state.moved(from, now);
        }
        let crypt = state.crypt.as_mut().ok_or(ProtocolError::Unauthentic)?;
        // The server waits for evidence that we are not a recording, and there may be no data to
        // send.
        if unknown && let Some(sign) = nothing(crypt) {
            let sent = self.socket.transport.try_send(&sign[..], from);
            add(&self.socket.settings.counters.in_errs, sent.is_err().into());
        }
        Ok(range)
    }

    /// Returns the address of the peer.
    pub(super) fn peer(&self) -> SocketAddr {
        self.lock().peer
    }

    /// Returns the peer's id of the session, if it has session keys.
    pub(super) fn peer_id(&self) -> Option<SessionId> {
        self.lock().crypt.as_ref()?.peer_id()
    }

    /// Sends answers to received data, and wakes the tasks that wait for it.
    pub(super) fn settle(&self, now: Time) -> Settled {
        let mut state = self.lock();
        state.touched = false;
        let (reader, writer, settled) = self.settle_locked(&mut state, now);
        drop(state);
        reader.into_iter().chain(writer).for_each(Waker::wake);
        settled
    }

    /// Handles the session's timer, which the driver has removed.
    pub(super) fn ring(&self, now: Time) -> Settled {
        let mut state = self.lock();
        state.alarm = None;
        let (reader, writer, settled) = self.settle_locked(&mut state, now);
        if state.kcp.poll_timeout().is_none() {
            state.wire.trim(&self.socket);
        }
        drop(state);
        reader.into_iter().chain(writer).for_each(Waker::wake);
        settled
    }

    fn settle_locked(
        &self,
        state: &mut State,
        now: Time,
    ) -> (Option<Waker>, Option<Waker>, Settled) {
        self.advance(state, now);
        state.report(&self.socket);
        let dead = state.kcp.state() == Life::Dead;
        if state.is_over() {
            state.wire.oob = None;
        }
        if let Some(until) = state.leaving {
            state.discard();
            if dead || until <= now || state.kcp.has_parted() {
                return (None, None, Settled::Gone);
            }
        }
        let reads = dead || state.kcp.readable() > 0 || state.kcp.is_finished();
        let reader = reads.then(|| state.reader.take());
        let room = || state.kcp.peer_left() || state.kcp.send_room() >= state.worth;
        let writer = (dead || (state.writer.is_some() && room())).then(|| state.writer.take());
        (reader.flatten(), writer.flatten(), Settled::Goes)
    }

    /// Sends everything that is due, and sets the timer for the rest.
    fn advance(&self, state: &mut State, now: Time) {
        let watch = state.watch(self.socket.settings.idle, now);
        if !state.kcp.is_drained() {
            state.unanswered.get_or_insert(now);
        }
        if state.kcp.poll_timeout().is_some_and(|at| at <= now) {
            self.send(state, now, Rest::Goes);
        }
        let State {
            wire,
            kcp,
            crypt,
            peer,
            ..
        } = state;
        let asks = wire.ask(&self.socket, *peer, crypt.as_deref_mut(), kcp, now);
        let due = match (kcp.poll_timeout(), wire.held_until(&self.socket, now)) {
            (Some(_), _) if asks.is_some() => asks,
            (Some(due), Some(held)) => Some(due.max(held)),
            (due, _) => due,
        };
        let due = [due, state.leaving, watch].into_iter().flatten().min();
        if let Some(due) = due
            && state.alarm.is_none_or(|alarm| due < alarm)
            && !state.gone
        {
            self.socket.set_alarm(self.slot, state.alarm, due);
            state.alarm = Some(due);
        }
    }

    /// Sends everything that is due, including the data of an unfinished batch.
    fn send(&self, state: &mut State, now: Time, rest: Rest) {
        let State {
            wire,
            kcp,
            crypt,
            peer,
            ..
        } = state;
        wire.transmit(&self.socket, *peer, crypt.as_deref_mut(), kcp, now, rest);
    }

    /// Fails the session after the end of the transport.
    pub(super) fn cut(&self) {
        let mut state = self.lock();
        // A session that has failed before keeps its own reason.
        if state.kcp.state() != Life::Dead {
            state.cut = true;
            state.kcp.give_up();
        }
        state.wire.oob = None;
        let woken = [state.reader.take(), state.writer.take()];
        drop(state);
        woken.into_iter().flatten().for_each(Waker::wake);
    }

    /// Releases the session after the driver has removed it.
    pub(super) fn forget(&self) {
        let mut state = self.lock();
        state.gone = true;
        state.wire.oob = None;
        self.socket.alarms().clear(self.slot, state.alarm.take());
        state.report(&self.socket);
        self.socket.settings.counters.closed();
    }

    /// Reads data. Fails once the peer is gone and everything was read.
    pub(super) fn poll_read(&self, cx: &Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        loop {
            match state.kcp.recv(out) {
                // KCP in C can send empty messages; a reader would take one for the end.
                Some(0) => {}
                Some(n) => {
                    self.advance(&mut state, system::monotonic_now());
                    return Poll::Ready(Ok(n));
                }
                None if state.kcp.is_finished() => return Poll::Ready(Ok(0)),
                None if state.kcp.state() == Life::Dead => {
                    return Poll::Ready(Err(dead(&state)));
                }
                None => {
                    // Otherwise the bytes read since the driver's last turn would only be reported
                    // with the next datagram.
                    state.report(&self.socket);
                    keep(&mut state.reader, cx);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Queues as many bytes of `bufs` as fit, or all of them as one message, and sends the segments
    /// that are allowed.
    pub(super) fn poll_write(
        &self,
        cx: &Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        let now = system::monotonic_now();
        let config = state.kcp.config();
        let slice = match config.stream {
            true => SLICE * config.mss(),
            false => usize::MAX,
        };
        let mut rest = Parts::of(bufs);
        let mut done = 0;
        let outcome = loop {
            let piece = rest.split_front(slice);
            match state.kcp.send_vectored(piece) {
                Ok(n) if n == slice && rest.clone().next().is_some() => {
                    self.send(&mut state, now, Rest::Waits);
                    done += n;
                }
                Ok(n) => break Ok(done + n),
                Err(_) if done > 0 => break Ok(done),
                Err(why) => break Err(why),
            }
        };
        if done > 0 {
            self.send(&mut state, now, Rest::Goes);
        }
        match outcome {
            Ok(0) | Err(SendError::Full) => {
                keep(&mut state.writer, cx);
                Poll::Pending
            }
            Ok(n) => {
                self.advance(&mut state, now);
                Poll::Ready(Ok(n))
            }
            Err(SendError::Dead) => Poll::Ready(Err(dead(&state))),
            Err(why @ (SendError::Finished | SendError::Unread)) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, why)))
            }
            Err(why) => Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidInput, why))),
        }
    }

    /// Returns the settings of the ARQ.
    pub(super) fn config(&self) -> Config {
        *self.lock().kcp.config()
    }

    /// Changes the settings of the ARQ. The MTU is limited to the datagrams of the socket.
    pub(super) fn change(&self, config: Config) -> Result<(), ChangeError> {
        let now = system::monotonic_now();
        let mut state = self.lock();
        let config = Config {
            mtu: config.mtu.min(self.socket.layout.kcp_mtu),
            ..config
        };
        state.kcp.change(now, config)?;
        state.worth = worth(&state.kcp);
        self.advance(&mut state, now);
        // There may be more space than before.
        let writer = (state.kcp.send_room() >= state.worth).then(|| state.writer.take());
        drop(state);
        writer.flatten().into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Limits the rate from now on, in bytes per second.
    pub(super) fn set_rate(&self, rate: u32) {
        let mut state = self.lock();
        state.wire.rate = Some(rate);
        self.advance(&mut state, system::monotonic_now());
    }

    /// Ends the write direction. A peer that is adit is informed after all data.
    pub(super) fn finish(&self) {
        let now = system::monotonic_now();
        let mut state = self.lock();
        state.kcp.finish(now);
        self.advance(&mut state, now);
    }

    /// Closes the session after the stream was dropped. Written data is still sent, unless
    /// `at_once` is set.
    pub(super) fn close(&self, at_once: bool) {
        let now = system::monotonic_now();
        let mut state = self.lock();
        if state.gone {
            return;
        }
        if at_once {
            state.kcp.abort(now);
        } else {
            state.kcp.leave(now);
        }
        let until = now + LINGER;
        state.leaving = Some(state.leaving.map_or(until, |earlier| earlier.min(until)));
        (state.reader, state.writer) = (None, None);
        // The driver checks immediately: there may be nothing to linger for.
        if state.alarm.is_none_or(|alarm| now < alarm) {
            self.socket.set_alarm(self.slot, state.alarm, now);
            state.alarm = Some(now);
        }
    }

    /// True if an authentic datagram was received.
    pub(super) fn heard(&self) -> bool {
        self.lock().kcp.stats().datagrams_in > 0
    }

    /// True if all sent data has been acknowledged.
    pub(super) fn is_drained(&self) -> bool {
        self.lock().kcp.is_drained()
    }

    /// Returns the time for which data has waited for an acknowledgement while nothing was
    /// received.
    pub(super) fn unanswered(&self) -> Option<Duration> {
        let since = self.lock().unanswered?;
        Some(system::monotonic_now().duration_since(since))
    }

    pub(super) fn stats(&self) -> Stats {
        self.lock().kcp.stats()
    }

    pub(super) fn peer_corrects(&self) -> Option<bool> {
        let state = self.lock();
        let heard = state.kcp.stats().datagrams_in > 0;
        heard.then(|| state.wire.peer_corrects())
    }

    pub(super) fn peer_shards(&self) -> Option<(usize, usize)> {
        self.lock().wire.peer_shards()
    }

    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.lock().kcp.memory()
    }

    /// True if it wakes no task within a minute.
    #[cfg(test)]
    pub(super) fn rests(&self) -> bool {
        let minute = system::monotonic_now() + Duration::from_secs(60);
        self.lock().alarm.is_none_or(|alarm| alarm > minute)
    }
}

/// Stores the waker of the current task.
fn keep(place: &mut Option<Waker>, cx: &Context<'_>) {
    if !place.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
        *place = Some(cx.waker().clone());
    }
}

/// Returns the error of a session that has failed.
fn dead(state: &State) -> io::Error {
    let kcp = &state.kcp;
    if state.cut {
        let what = "the transport of the KCP session has ended";
        return io::Error::new(io::ErrorKind::BrokenPipe, what);
    }
    if kcp.is_forgotten() {
        let what = "the KCP peer has lost this session (it was restarted or has closed it)";
        return io::Error::new(io::ErrorKind::ConnectionReset, what);
    }
    if kcp.is_aborted() {
        let what = "the KCP peer has aborted the session";
        return io::Error::new(io::ErrorKind::ConnectionReset, what);
    }
    io::Error::new(
        io::ErrorKind::TimedOut,
        "the KCP peer is silent and has not acknowledged the data sent to it",
    )
}
