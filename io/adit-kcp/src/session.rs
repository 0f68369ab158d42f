//! A KCP session, shared by its stream and the driver of its socket.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adit_crypto::packet::session::{PacketSession, SessionHeader, SessionId};
use adit_kcp_proto::{ChangeError, Config, KcpSession, SendError, SessionState as Life, Stats};
use adit_net::system::{self, ThreadRng};
use adit_wire::{Entropy, ProtocolError, Time, subslice};

use crate::new_peers::seal_empty;

use super::concatenated_buffers::ConcatenatedBuffers;
use super::counters::add_nonzero;
use super::pipeline::{DatagramPipeline, PartialBatch};
use super::route::DatagramRoute;
use super::socket::KcpSocket;

mod oob;
mod state;

/// Maximum time for which written data is still sent after the stream was dropped.
const MAX_LINGER: Duration = Duration::from_secs(5);
/// Free space in bytes at which a waiting writer is woken; less if the window is small.
const MAX_WAKE_THRESHOLD: usize = 32 << 10;
/// Segments of a long write that are sent before more of it is queued: as many as are still in the
/// first-level cache when they are put into datagrams.
const SLICE_SEGMENTS: usize = 16;

/// A KCP session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) socket: Arc<KcpSocket>,
    /// The address at which it started; see [`Self::peer_addr`].
    pub(super) first_addr: SocketAddr,
    pub(super) conv: u32,
    /// Its index in the driver's table.
    pub(super) slot: usize,
    state: Mutex<SessionState>,
}

/// State behind the lock.
#[derive(Debug)]
struct SessionState {
    kcp: KcpSession,
    wire: DatagramPipeline,
    /// Session keys, if the socket's sessions have them.
    crypt: Option<Box<PacketSession>>,
    /// The address of the peer.
    peer: SocketAddr,
    /// The address at which the peer has last shown that it receives.
    proven_addr: Option<SocketAddr>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Free space at which the writer is woken.
    wake_threshold: usize,
    /// Its entry among the socket's timers.
    alarm: Option<Time>,
    /// Data has arrived since the driver last settled the session.
    has_input: bool,
    /// Time since which data waits for an acknowledgement and nothing was received.
    unanswered: Option<Time>,
    /// Time at which data was last received.
    heard_at: Time,
    /// The peer was sent a probe since then.
    is_probed: bool,
    /// Set after the stream was dropped: the time until which the session may linger.
    linger_until: Option<Time>,
    /// The driver has removed the session.
    is_removed: bool,
    /// The transport has ended.
    is_transport_closed: bool,
    /// The part of the session's counters that was already reported.
    reported: Stats,
}

/// The driver's action for a session that it has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettleOutcome {
    /// None.
    Keep,
    /// Remove it.
    Remove,
}

/// Returns the free space at which a writer of this session is woken.
fn wake_threshold(kcp: &KcpSession) -> usize {
    match kcp.config().stream {
        true => (kcp.send_capacity() / 2).clamp(1, MAX_WAKE_THRESHOLD),
        false => 1,
    }
}

impl Session {
    pub(super) fn new(
        socket: Arc<KcpSocket>,
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
        let mut kcp = KcpSession::new(conv, config, now);
        let mut origin = [0; 4];
        ThreadRng.fill(&mut origin);
        kcp.set_clock_origin(u32::from_le_bytes(origin));
        let mut wire = DatagramPipeline::default();
        if by_peer {
            kcp.demand_proof(now);
            wire.allowance = Some(Box::default());
        }
        Self {
            state: Mutex::new(SessionState {
                wake_threshold: wake_threshold(&kcp),
                kcp,
                wire,
                crypt,
                peer,
                proven_addr: (!by_peer).then_some(peer),
                reader: None,
                writer: None,
                alarm: None,
                has_input: false,
                unanswered: None,
                heard_at: now,
                is_probed: false,
                linger_until: None,
                is_removed: false,
                is_transport_closed: false,
                reported: Stats::default(),
            }),
            socket,
            first_addr: peer,
            conv,
            slot,
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a decrypted packet. Returns true if it is the first since the session was settled.
    pub(super) fn handle_input(&self, packet: &[u8], now: Time) -> bool {
        let mut state = self.lock();
        let SessionState { wire, kcp, .. } = &mut *state;
        wire.handle_input(&self.socket, kcp, &[packet], now, |_| true);
        state.record_received(&self.socket, &[packet], now);
        !std::mem::replace(&mut state.has_input, true)
    }

    /// Like [`handle_input`](Self::handle_input), for the packets at the front that belong to this
    /// session. Returns their number, and true if the first of them is the first since the session
    /// was settled.
    pub(super) fn handle_packets(&self, packets: &[&[u8]], now: Time) -> (usize, bool) {
        let mut state = self.lock();
        let SessionState { wire, kcp, .. } = &mut *state;
        let taken = wire.handle_input(&self.socket, kcp, packets, now, |route| match route {
            DatagramRoute::Bare(_, opening) | DatagramRoute::Data(_, Some(opening)) => {
                opening.conv == self.conv
            }
            DatagramRoute::Oob(conv, _) => conv == self.conv,
            DatagramRoute::Data(_, None) | DatagramRoute::Parity => true,
            DatagramRoute::Unknown => false,
        });
        if taken == 0 {
            return (0, false);
        }
        state.record_received(&self.socket, subslice(packets, ..taken), now);
        (taken, !std::mem::replace(&mut state.has_input, true))
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
            state.handle_move(from, now);
        }
        let crypt = state.crypt.as_mut().ok_or(ProtocolError::Unauthentic)?;
        // The server waits for evidence that we are not a recording, and there may be no data to
        // send.
        if unknown && let Some(sign) = seal_empty(crypt) {
            let sent = self.socket.transport.try_send(&sign[..], from);
            add_nonzero(&self.socket.settings.counters.in_errs, sent.is_err().into());
        }
        Ok(range)
    }

    /// Returns the address of the peer.
    pub(super) fn peer_addr(&self) -> SocketAddr {
        self.lock().peer
    }

    /// Returns the peer's id of the session, if it has session keys.
    pub(super) fn peer_id(&self) -> Option<SessionId> {
        self.lock().crypt.as_ref()?.peer_id()
    }

    /// Sends answers to received data, and wakes the tasks that wait for it.
    pub(super) fn settle_input(&self, now: Time) -> SettleOutcome {
        let mut state = self.lock();
        state.has_input = false;
        let (reader, writer, settled) = self.settle_state(&mut state, now);
        drop(state);
        reader.into_iter().chain(writer).for_each(Waker::wake);
        settled
    }

    /// Handles the session's timer, which the driver has removed.
    pub(super) fn handle_timer(&self, now: Time) -> SettleOutcome {
        let mut state = self.lock();
        state.alarm = None;
        let (reader, writer, settled) = self.settle_state(&mut state, now);
        if state.kcp.poll_timeout().is_none() {
            state.wire.release_idle(&self.socket);
        }
        drop(state);
        reader.into_iter().chain(writer).for_each(Waker::wake);
        settled
    }

    fn settle_state(
        &self,
        state: &mut SessionState,
        now: Time,
    ) -> (Option<Waker>, Option<Waker>, SettleOutcome) {
        self.send_due(state, now);
        state.report_counters(&self.socket);
        let dead = state.kcp.state() == Life::Dead;
        if state.is_over() {
            state.wire.oob = None;
        }
        if let Some(until) = state.linger_until {
            state.discard_received();
            if dead || until <= now || state.kcp.is_fully_closed() {
                return (None, None, SettleOutcome::Remove);
            }
        }
        let reads = dead || state.kcp.readable_len() > 0 || state.kcp.is_finished();
        let reader = reads.then(|| state.reader.take());
        let room =
            || state.kcp.is_unread_by_peer() || state.kcp.send_capacity() >= state.wake_threshold;
        let writer = (dead || (state.writer.is_some() && room())).then(|| state.writer.take());
        (reader.flatten(), writer.flatten(), SettleOutcome::Keep)
    }

    /// Sends everything that is due, and sets the timer for the rest.
    fn send_due(&self, state: &mut SessionState, now: Time) {
        let watch = state.check_silence(self.socket.settings.idle, now);
        if !state.kcp.is_drained() {
            state.unanswered.get_or_insert(now);
        }
        if state.kcp.poll_timeout().is_some_and(|at| at <= now) {
            self.transmit_due(state, now, PartialBatch::Send);
        }
        let SessionState {
            wire,
            kcp,
            crypt,
            peer,
            ..
        } = state;
        let asks = wire.probe_peer(&self.socket, *peer, crypt.as_deref_mut(), kcp, now);
        let due = match (
            kcp.poll_timeout(),
            wire.rate_limited_until(&self.socket, now),
        ) {
            (Some(_), _) if asks.is_some() => asks,
            (Some(due), Some(held)) => Some(due.max(held)),
            (due, _) => due,
        };
        let due = [due, state.linger_until, watch].into_iter().flatten().min();
        if let Some(due) = due
            && state.alarm.is_none_or(|alarm| due < alarm)
            && !state.is_removed
        {
            self.socket.set_timer(self.slot, state.alarm, due);
            state.alarm = Some(due);
        }
    }

    /// Sends everything that is due, including the data of an unfinished batch.
    fn transmit_due(&self, state: &mut SessionState, now: Time, rest: PartialBatch) {
        let SessionState {
            wire,
            kcp,
            crypt,
            peer,
            ..
        } = state;
        wire.transmit(&self.socket, *peer, crypt.as_deref_mut(), kcp, now, rest);
    }

    /// Fails the session after the end of the transport.
    pub(super) fn fail_transport(&self) {
        let mut state = self.lock();
        // A session that has failed before keeps its own reason.
        if state.kcp.state() != Life::Dead {
            state.is_transport_closed = true;
            state.kcp.give_up();
        }
        state.wire.oob = None;
        let woken = [state.reader.take(), state.writer.take()];
        drop(state);
        woken.into_iter().flatten().for_each(Waker::wake);
    }

    /// Releases the session after the driver has removed it.
    pub(super) fn release(&self) {
        let mut state = self.lock();
        state.is_removed = true;
        state.wire.oob = None;
        self.socket
            .lock_timers()
            .clear_timer(self.slot, state.alarm.take());
        state.report_counters(&self.socket);
        self.socket.settings.counters.count_closed();
    }

    /// Reads data. Fails once the peer is gone and everything was read.
    pub(super) fn poll_read(&self, cx: &Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        loop {
            match state.kcp.recv(out) {
                // KCP in C can send empty messages; a reader would take one for the end.
                Some(0) => {}
                Some(n) => {
                    self.send_due(&mut state, system::monotonic_now());
                    return Poll::Ready(Ok(n));
                }
                None if state.kcp.is_finished() => return Poll::Ready(Ok(0)),
                None if state.kcp.state() == Life::Dead => {
                    return Poll::Ready(Err(failure_error(&state)));
                }
                None => {
                    // Otherwise the bytes read since the driver's last turn would only be reported
                    // with the next datagram.
                    state.report_counters(&self.socket);
                    store_waker(&mut state.reader, cx);
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
            true => SLICE_SEGMENTS * config.mss(),
            false => usize::MAX,
        };
        let mut rest = ConcatenatedBuffers::from_buffers(bufs);
        let mut done = 0;
        let outcome = loop {
            let piece = rest.split_front(slice);
            match state.kcp.send_vectored(piece) {
                Ok(n) if n == slice && rest.clone().next().is_some() => {
                    self.transmit_due(&mut state, now, PartialBatch::Keep);
                    done += n;
                }
                Ok(n) => break Ok(done + n),
                Err(_) if done > 0 => break Ok(done),
                Err(why) => break Err(why),
            }
        };
        if done > 0 {
            self.transmit_due(&mut state, now, PartialBatch::Send);
        }
        match outcome {
            Ok(0) | Err(SendError::Full) => {
                store_waker(&mut state.writer, cx);
                Poll::Pending
            }
            Ok(n) => {
                self.send_due(&mut state, now);
                Poll::Ready(Ok(n))
            }
            Err(SendError::Dead) => Poll::Ready(Err(failure_error(&state))),
            Err(why @ (SendError::Finished | SendError::PeerNotReading)) => {
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
    pub(super) fn change_config(&self, config: Config) -> Result<(), ChangeError> {
        let now = system::monotonic_now();
        let mut state = self.lock();
        let config = Config {
            mtu: config.mtu.min(self.socket.layout.kcp_mtu),
            ..config
        };
        state.kcp.change_config(now, config)?;
        state.wake_threshold = wake_threshold(&state.kcp);
        self.send_due(&mut state, now);
        // There may be more space than before.
        let writer =
            (state.kcp.send_capacity() >= state.wake_threshold).then(|| state.writer.take());
        drop(state);
        writer.flatten().into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Limits the rate from now on, in bytes per second.
    pub(super) fn set_rate(&self, rate: u32) {
        let mut state = self.lock();
        state.wire.rate = Some(rate);
        self.send_due(&mut state, system::monotonic_now());
    }

    /// Ends the write direction. A peer that is adit is informed after all data.
    pub(super) fn finish_writing(&self) {
        let now = system::monotonic_now();
        let mut state = self.lock();
        state.kcp.finish(now);
        self.send_due(&mut state, now);
    }

    /// Closes the session after the stream was dropped. Written data is still sent, unless
    /// `at_once` is set.
    pub(super) fn close_stream(&self, at_once: bool) {
        let now = system::monotonic_now();
        let mut state = self.lock();
        if state.is_removed {
            return;
        }
        if at_once {
            state.kcp.abort(now);
        } else {
            state.kcp.close_gracefully(now);
        }
        let until = now + MAX_LINGER;
        state.linger_until = Some(
            state
                .linger_until
                .map_or(until, |earlier| earlier.min(until)),
        );
        (state.reader, state.writer) = (None, None);
        // The driver checks immediately: there may be nothing to linger for.
        if state.alarm.is_none_or(|alarm| now < alarm) {
            self.socket.set_timer(self.slot, state.alarm, now);
            state.alarm = Some(now);
        }
    }

    /// True if an authentic datagram was received.
    pub(super) fn has_heard_peer(&self) -> bool {
        self.lock().kcp.stats().datagrams_in > 0
    }

    /// True if all sent data has been acknowledged.
    pub(super) fn is_drained(&self) -> bool {
        self.lock().kcp.is_drained()
    }

    /// Returns the time for which data has waited for an acknowledgement while nothing was
    /// received.
    pub(super) fn unanswered_for(&self) -> Option<Duration> {
        let since = self.lock().unanswered?;
        Some(system::monotonic_now().duration_since(since))
    }

    pub(super) fn stats(&self) -> Stats {
        self.lock().kcp.stats()
    }

    pub(super) fn peer_corrects(&self) -> Option<bool> {
        let state = self.lock();
        let heard = state.kcp.stats().datagrams_in > 0;
        heard.then(|| state.wire.peer_uses_fec())
    }

    pub(super) fn peer_shards(&self) -> Option<(usize, usize)> {
        self.lock().wire.peer_shards()
    }

    #[cfg(test)]
    pub(super) fn memory_size(&self) -> usize {
        self.lock().kcp.memory_size()
    }

    /// True if it wakes no task within a minute.
    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        let minute = system::monotonic_now() + Duration::from_secs(60);
        self.lock().alarm.is_none_or(|alarm| alarm > minute)
    }
}

/// Stores the waker of the current task.
fn store_waker(place: &mut Option<Waker>, cx: &Context<'_>) {
    if !place.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
        *place = Some(cx.waker().clone());
    }
}

/// Returns the error of a session that has failed.
fn failure_error(state: &SessionState) -> io::Error {
    let kcp = &state.kcp;
    if state.is_transport_closed {
        let what = "the transport of the KCP session has ended";
        return io::Error::new(io::ErrorKind::BrokenPipe, what);
    }
    if kcp.is_lost_by_peer() {
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
