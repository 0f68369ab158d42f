//! The session: the application's calls, and the limits of the data in flight.

use alloc::boxed::Box;

use adit_wire::{Time, u64_from};

use crate::acks::PendingAcks;
use crate::bbr::BbrModel;
use crate::closing::ClosingState;
use crate::output::FlushState;
use crate::peer_confirmation::PeerConfirmation;
use crate::recv::RecvWindow;
use crate::reno::RenoWindow;
use crate::rtt::RttEstimator;
use crate::send::SendWindow;
use crate::seq::SeqNum;
use crate::timers::WindowProbe;
use crate::{Compat, Config, CongestionControl, Stats};

/// One end of a KCP session.
///
/// # Examples
///
/// ```
/// use adit_kcp_proto::{Config, KcpSession};
/// use adit_wire::Time;
///
/// let mut now = Time(0);
/// let mut client = KcpSession::new(7, Config::fast3(), now);
/// let mut server = KcpSession::new(7, Config::fast3(), now);
/// client.send(b"hello").unwrap();
///
/// // The first datagram is lost. The session sends its bytes again when they are due.
/// let mut datagram = [0; 1400];
/// let mut lost = client.poll_output(now, &mut datagram).is_some();
/// assert!(lost);
/// for _ in 0..100 {
///     while let Some(len) = client.poll_output(now, &mut datagram) {
///         server.handle_input(now, &datagram[..len], false).unwrap();
///         lost = false;
///     }
///     if !lost {
///         break;
///     }
///     now = client.poll_timeout().unwrap();
///     client.handle_timeout(now);
/// }
/// let mut text = [0; 16];
/// assert_eq!(server.recv(&mut text), Some(5));
/// assert_eq!(&text[..5], b"hello");
/// ```
#[derive(Debug)]
pub struct KcpSession {
    pub(crate) conv: u32,
    pub(crate) config: Config,
    /// Millisecond 0 of this end.
    pub(crate) start: Time,
    /// The latest time passed by the driver.
    pub(crate) clock: Time,
    /// Time at which a datagram was last received or sent.
    pub(crate) last_active: Time,
    /// The millisecond in which the peer was last heard.
    pub(crate) last_heard_ms: u64,
    pub(crate) send: SendWindow,
    pub(crate) recv: RecvWindow,
    pub(crate) acks: PendingAcks,
    pub(crate) rtt: RttEstimator,
    pub(crate) reno: RenoWindow,
    pub(crate) bbr: Option<Box<BbrModel>>,
    pub(crate) peer_window: u32,
    /// The newest time stamp of data that arrived directly, and the millisecond of its arrival.
    pub(crate) peer_ts: Option<(u32, u64)>,
    pub(crate) probe: WindowProbe,
    pub(crate) flush: FlushState,
    /// Time of the next flush, if there is something to flush.
    pub(crate) flush_at: Option<Time>,
    pub(crate) flushed: Option<Time>,
    pub(crate) is_dead: bool,
    /// The wire's clock from which on an echo proves that the peer receives; `None` if it is
    /// proven.
    pub(crate) unproven_since: Option<u32>,
    /// The data that the peer has confirmed.
    pub(crate) confirmed: PeerConfirmation,
    pub(crate) farewell: ClosingState,
    pub(crate) stats: Stats,
}

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// The session is usable.
    Open,
    /// The session has failed. A segment was sent [`Config::dead_link`] times without an
    /// acknowledgement and the peer was silent for [`Config::silence_ms`]; or the peer has
    /// [lost](KcpSession::is_lost_by_peer) the session or [aborted](KcpSession::is_aborted) it; or the caller has
    /// [given it up](KcpSession::give_up). No more datagrams are sent; received data can still be read.
    Dead,
}

/// Error of [`KcpSession::send`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The window is full of messages; try again after some are acknowledged.
    #[error("the send window is full")]
    Full,
    /// The message needs more segments than the peer's implementation accepts.
    #[error("the message is longer than {limit} bytes")]
    TooLong {
        /// Maximum length of a message, in bytes.
        limit: usize,
    },
    /// kcp-go has no empty messages.
    #[error("the message is empty")]
    Empty,
    /// The session is [dead](SessionState::Dead).
    #[error("the session is dead")]
    Dead,
    /// This end has [finished](KcpSession::finish) its direction.
    #[error("this end has already finished sending")]
    Finished,
    /// The peer has announced that it reads no more.
    #[error("the peer does not read any more")]
    PeerNotReading,
}

impl KcpSession {
    /// Creates a session of conversation `conv`, which both ends must know. Values of `config` that
    /// are out of bounds are set to the nearest bound.
    #[must_use]
    pub fn new(conv: u32, config: Config, now: Time) -> Self {
        Self::starting_at(conv, config, now, 0)
    }

    /// Creates a session whose first sequence number is `first`.
    pub(crate) fn starting_at(conv: u32, config: Config, now: Time, first: u32) -> Self {
        let config = config.clamped();
        Self {
            conv,
            config,
            start: now,
            clock: now,
            last_active: now,
            last_heard_ms: 0,
            send: SendWindow::new(SeqNum(first), &config),
            recv: RecvWindow::new(SeqNum(first), config.recv_window, config.stream),
            acks: PendingAcks::new(),
            rtt: RttEstimator::new(config.compat, config.nodelay != 0, config.interval_ms),
            reno: RenoWindow::new(&config),
            bbr: BbrModel::for_config(&config).map(Box::new),
            peer_window: config.compat.default_recv_window(),
            peer_ts: None,
            probe: WindowProbe::default(),
            flush: FlushState::default(),
            flush_at: None,
            flushed: None,
            is_dead: false,
            unproven_since: None,
            confirmed: PeerConfirmation::new(SeqNum(first)),
            farewell: ClosingState::default(),
            stats: Stats::default(),
        }
    }

    /// Returns the conversation number.
    #[must_use]
    pub const fn conv(&self) -> u32 {
        self.conv
    }

    /// Returns the settings, within their bounds.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Queues data: in stream mode as much as fits, in message mode the whole message or nothing.
    /// Returns the number of bytes queued.
    ///
    /// # Errors
    ///
    /// See [`SendError`]. Stream mode never fails with [`TooLong`](SendError::TooLong) or
    /// [`Full`](SendError::Full).
    pub fn send(&mut self, data: &[u8]) -> Result<usize, SendError> {
        self.send_vectored(core::iter::once(data))
    }

    /// Queues the concatenated bytes of all `parts`, as [`send`](Self::send) does those of one
    /// slice: in message mode they are one message. The bytes are copied once, to the send buffer.
    /// Returns the number of bytes queued.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_vectored<'p>(
        &mut self,
        parts: impl Iterator<Item = &'p [u8]> + Clone,
    ) -> Result<usize, SendError> {
        if self.is_dead {
            return Err(SendError::Dead);
        }
        if self.has_finished_sending() {
            return Err(SendError::Finished);
        }
        if self.is_unread_by_peer() {
            return Err(SendError::PeerNotReading);
        }
        let taken = self.send.push(parts)?;
        self.stats.bytes_sent += u64_from(taken);
        let at_once = self.config.compat == Compat::Go && !self.config.write_delay;
        if at_once && self.can_send_new() {
            self.request_flush_by(self.clock);
        }
        self.schedule_flush();
        Ok(taken)
    }

    /// Returns the number of bytes that [`send`](Self::send) would accept now; in message mode the
    /// maximum length of a message.
    #[must_use]
    pub fn send_capacity(&self) -> usize {
        self.send.capacity()
    }

    /// Reads into `out`: in stream mode as much as fits, in message mode from one message, whose
    /// rest stays for the next call. Returns `None` if there is nothing to read yet.
    pub fn recv(&mut self, out: &mut [u8]) -> Option<usize> {
        let full = self.recv.free_segments() == 0;
        let read = self.recv.read(out)?;
        self.record_read(read, full);
        Some(read)
    }

    /// Returns the number of readable bytes: in stream mode all that are in order, in message mode
    /// the rest of the front message. 0 may also mean an empty message.
    #[must_use]
    pub fn readable_len(&self) -> usize {
        self.recv.readable_len()
    }

    /// Returns the next bytes without a copy, at most one segment's. Returns `None` if there is
    /// nothing to read yet.
    #[must_use]
    pub fn front_bytes(&self) -> Option<&[u8]> {
        self.recv.front_bytes()
    }

    /// Consumes bytes that were read through [`front_bytes`](Self::front_bytes); in message mode not beyond the
    /// end of the message. Returns the number of bytes consumed.
    pub fn consume(&mut self, n: usize) -> usize {
        let full = self.recv.free_segments() == 0;
        let read = self.recv.consume(n);
        self.record_read(read, full);
        read
    }

    /// Counts bytes read, and reports the window to the peer if it was full before.
    fn record_read(&mut self, read: usize, was_full: bool) {
        self.stats.bytes_received += u64_from(read);
        if was_full && self.recv.free_segments() > 0 {
            self.probe.send_report = true;
            if self.config.compat == Compat::Go {
                self.request_flush_by(self.clock);
            }
            self.schedule_flush();
        }
    }

    /// Returns the state of the session.
    #[must_use]
    pub const fn state(&self) -> SessionState {
        if self.is_dead {
            SessionState::Dead
        } else {
            SessionState::Open
        }
    }

    /// True if the peer has lost this session.
    ///
    /// It has confirmed data, and later confirmed data that was sent after that as if there had
    /// been none. So the peer's process was restarted or has closed the session. The state is
    /// [`SessionState::Dead`], since this cannot be repaired.
    #[must_use]
    pub const fn is_lost_by_peer(&self) -> bool {
        self.confirmed.is_lost
    }

    /// True if all sent data has been acknowledged.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.send.is_empty()
    }

    /// Returns counters and gauges.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            rtt_ms: self.rtt.srtt(),
            rtt_var_ms: self.rtt.mean_deviation(),
            rto_ms: self.rtt.rto(),
            cwnd: match &self.bbr {
                Some(bbr) => bbr.max_in_flight(),
                None => self.reno.cwnd(),
            },
            ssthresh: self.reno.ssthresh(),
            pace: self.bbr.as_ref().map_or(0, |bbr| bbr.pacing_rate()),
            peer_window: self.peer_window,
            in_flight: self.send.in_flight().live_count(),
            queued: self.send.unsent_count() + self.send.queued_count(),
            ..self.stats
        }
    }

    /// Returns the memory of this session in bytes, including the struct itself.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        size_of::<Self>() + self.heap_size()
    }

    pub(crate) fn heap_size(&self) -> usize {
        self.freeable_size() + self.bbr.as_ref().map_or(0, |_| size_of::<BbrModel>())
    }

    /// Returns the bytes of memory that an idle session can free.
    pub(crate) fn freeable_size(&self) -> usize {
        let bbr = self.bbr.as_ref().map_or(0, |bbr| bbr.freeable_size());
        self.send.heap_size() + self.recv.heap_size() + self.acks.heap_size() + bbr
    }

    /// Sends all that the windows allow, without waiting for the interval.
    pub fn flush_now(&mut self, now: Time) {
        self.advance_clock(now);
        if !self.is_dead {
            self.begin_flush();
        }
    }

    /// Returns the maximum range of numbers in flight, counted from the oldest that is not
    /// acknowledged.
    pub(crate) fn effective_window(&self) -> u32 {
        let window = self.config.send_window.min(self.peer_window);
        match self.config.congestion {
            CongestionControl::Reno => window.min(self.reno.cwnd()),
            CongestionControl::Off | CongestionControl::Bbr | CongestionControl::Auto => window,
        }
    }

    /// Returns the number of segments that may join those in flight.
    pub(crate) fn max_new_segments(&self) -> u32 {
        let out = self.send.in_flight().live_count() + self.send.unsent_count();
        match &self.bbr {
            Some(bbr) => bbr.max_in_flight().saturating_sub(out),
            None => u32::MAX,
        }
    }

    /// True if a queued segment may be sent now.
    pub(crate) fn can_send_new(&self) -> bool {
        self.max_new_segments() > 0 && self.send.can_admit(self.effective_window())
    }
}
