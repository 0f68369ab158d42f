//! The session: what the application calls, and how much may be out.

use adit_wire::{Time, u64_from};

use crate::acks::Acks;
use crate::bbr::Bbr;
use crate::confirmed::Confirmed;
use crate::farewell::Farewell;
use crate::output::Flush;
use crate::recv::RecvWindow;
use crate::reno::Reno;
use crate::rtt::Rtt;
use crate::send::SendWindow;
use crate::seq::Sn;
use crate::timers::Probe;
use crate::{Compat, Config, Congestion, Stats};

/// One end of a conversation.
#[derive(Debug)]
pub struct Kcp {
    pub(crate) conv: u32,
    pub(crate) config: Config,
    /// Millisecond 0 of this end.
    pub(crate) start: Time,
    /// The latest time heard of.
    pub(crate) clock: Time,
    /// When a datagram last came in or went out.
    pub(crate) active: Time,
    /// The millisecond in which the peer was last heard.
    pub(crate) heard: u64,
    pub(crate) send: SendWindow,
    pub(crate) recv: RecvWindow,
    pub(crate) acks: Acks,
    pub(crate) rtt: Rtt,
    pub(crate) reno: Reno,
    pub(crate) bbr: Option<Box<Bbr>>,
    pub(crate) peer_window: u32,
    /// The newest time stamp of data that came by itself, and the millisecond in which it came.
    pub(crate) peer_ts: Option<(u32, u64)>,
    pub(crate) probe: Probe,
    pub(crate) flush: Flush,
    /// When there is something to flush.
    pub(crate) flush_at: Option<Time>,
    pub(crate) flushed: Option<Time>,
    pub(crate) dead: bool,
    /// The wire's clock from which on an echo proves that the peer receives; none: it has.
    pub(crate) unproven_since: Option<u32>,
    /// What the peer has confirmed.
    pub(crate) confirmed: Confirmed,
    pub(crate) farewell: Farewell,
    pub(crate) stats: Stats,
}

/// Whether the session can still do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It can.
    Open,
    /// A segment was sent [`Config::dead_link`] times in vain and nothing was heard for
    /// [`Config::silence_ms`], or the peer has [forgotten](Kcp::is_forgotten) the session or
    /// [aborted](Kcp::is_aborted) it, or it was [given up](Kcp::give_up). Nothing
    /// more goes out; what was received can still be read.
    Dead,
}

/// Why data was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The window is full of messages; try again when some are acknowledged.
    #[error("the send window is full")]
    Full,
    /// A message needs more segments than the peer's implementation takes.
    #[error("a message is longer than {limit} bytes")]
    TooLong {
        /// Bytes of the longest message.
        limit: usize,
    },
    /// kcp-go has no empty messages.
    #[error("a message is empty")]
    Empty,
    /// The peer is gone.
    #[error("the session is dead")]
    Dead,
    /// This end has finished.
    #[error("this end has said that it sends no more")]
    Finished,
    /// The peer has said that it reads no more.
    #[error("the peer reads no more")]
    Unread,
}

impl Kcp {
    /// A session of conversation `conv`, which both ends must know. Values of `config` out of
    /// their bounds are brought to them.
    #[must_use]
    pub fn new(conv: u32, config: Config, now: Time) -> Self {
        Self::starting_at(conv, config, now, 0)
    }

    pub(crate) fn starting_at(conv: u32, config: Config, now: Time, first: u32) -> Self {
        let config = config.bounded();
        Self {
            conv,
            config,
            start: now,
            clock: now,
            active: now,
            heard: 0,
            send: SendWindow::new(Sn(first), &config),
            recv: RecvWindow::new(Sn(first), config.recv_window, config.stream),
            acks: Acks::new(),
            rtt: Rtt::new(config.compat, config.nodelay != 0, config.interval_ms),
            reno: Reno::new(&config),
            bbr: Bbr::for_config(&config).map(Box::new),
            peer_window: config.compat.recv_window(),
            peer_ts: None,
            probe: Probe::default(),
            flush: Flush::default(),
            flush_at: None,
            flushed: None,
            dead: false,
            unproven_since: None,
            confirmed: Confirmed::new(Sn(first)),
            farewell: Farewell::default(),
            stats: Stats::default(),
        }
    }

    /// The conversation's number.
    #[must_use]
    pub const fn conv(&self) -> u32 {
        self.conv
    }

    /// The settings, within their bounds.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Queues data: of a stream as much as there is room for, a message whole or not at all.
    /// Gives the bytes taken.
    ///
    /// # Errors
    /// See [`SendError`]; in stream mode nothing is too long, and the window never full.
    pub fn send(&mut self, data: &[u8]) -> Result<usize, SendError> {
        self.send_vectored(core::iter::once(data))
    }

    /// Queues the bytes of all `parts`, one behind the other, as [`send`](Self::send) does those of
    /// one: in message mode they are one message. They are copied to where they are sent from and
    /// nowhere else. Returns the bytes taken.
    ///
    /// # Errors
    /// See [`SendError`]; in stream mode nothing is too long, and the window never full.
    pub fn send_vectored<'p>(
        &mut self,
        parts: impl Iterator<Item = &'p [u8]> + Clone,
    ) -> Result<usize, SendError> {
        if self.dead {
            return Err(SendError::Dead);
        }
        if self.is_ending() {
            return Err(SendError::Finished);
        }
        if self.peer_left() {
            return Err(SendError::Unread);
        }
        let taken = self.send.push(parts)?;
        self.stats.bytes_sent += u64_from(taken);
        let at_once = self.config.compat == Compat::Go && !self.config.write_delay;
        if at_once && self.can_number() {
            self.flush_by(self.clock);
        }
        self.schedule();
        Ok(taken)
    }

    /// Bytes [`send`](Self::send) would take now; in message mode the longest message.
    #[must_use]
    pub fn send_room(&self) -> usize {
        self.send.room()
    }

    /// Reads into `out`: of a stream as much as fits, else of one message, whose rest stays for
    /// the next call. `None`: nothing to read yet.
    pub fn recv(&mut self, out: &mut [u8]) -> Option<usize> {
        let full = self.recv.free() == 0;
        let read = self.recv.read(out)?;
        self.has_read(read, full);
        Some(read)
    }

    /// Bytes to read now: of a stream all in order, else what is left of the front message, which
    /// may be empty while there is one.
    #[must_use]
    pub fn readable(&self) -> usize {
        self.recv.readable()
    }

    /// The next bytes where they lie: at most one segment's. `None`: nothing to read yet.
    #[must_use]
    pub fn front(&self) -> Option<&[u8]> {
        self.recv.front()
    }

    /// Passes over bytes that were read through [`front`](Self::front); in message mode not
    /// further than the message's end. Gives how many were passed.
    pub fn consume(&mut self, n: usize) -> usize {
        let full = self.recv.free() == 0;
        let read = self.recv.consume(n);
        self.has_read(read, full);
        read
    }

    fn has_read(&mut self, read: usize, was_full: bool) {
        self.stats.bytes_received += u64_from(read);
        if was_full && self.recv.free() > 0 {
            self.probe.tell = true;
            if self.config.compat == Compat::Go {
                self.flush_by(self.clock);
            }
            self.schedule();
        }
    }

    /// Whether the peer is still thought to be there.
    #[must_use]
    pub const fn state(&self) -> State {
        if self.dead { State::Dead } else { State::Open }
    }

    /// Whether the peer has shown that it has lost this session: it has confirmed data, and later
    /// confirmed what was sent after that as if there had been none. Its program has begun anew, or
    /// has closed the session; the state is [`State::Dead`], since nothing can be repaired.
    #[must_use]
    pub const fn is_forgotten(&self) -> bool {
        self.confirmed.lost
    }

    /// Whether everything sent has been acknowledged.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.send.is_empty()
    }

    /// Counters and gauges.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            rtt_ms: self.rtt.srtt(),
            rtt_var_ms: self.rtt.var(),
            rto_ms: self.rtt.rto(),
            cwnd: match &self.bbr {
                Some(bbr) => bbr.limit(),
                None => self.reno.cwnd(),
            },
            ssthresh: self.reno.ssthresh(),
            pace: self.bbr.as_ref().map_or(0, |bbr| bbr.pace()),
            peer_window: self.peer_window,
            in_flight: self.send.flight().live(),
            queued: self.send.unsent() + self.send.queued(),
            ..self.stats
        }
    }

    /// Bytes this session holds, itself included.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.heap()
    }

    pub(crate) fn heap(&self) -> usize {
        self.spare() + self.bbr.as_ref().map_or(0, |_| size_of::<Bbr>())
    }

    /// Bytes of it that an idle session can give back.
    pub(crate) fn spare(&self) -> usize {
        let bbr = self.bbr.as_ref().map_or(0, |bbr| bbr.spare());
        self.send.heap() + self.recv.heap() + self.acks.heap() + bbr
    }

    /// Lets out at once whatever the windows allow, without waiting for the interval.
    pub fn flush_now(&mut self, now: Time) {
        self.see(now);
        if !self.dead {
            self.begin_flush();
        }
    }

    /// Numbers from the oldest not acknowledged that may be out.
    pub(crate) fn window(&self) -> u32 {
        let window = self.config.send_window.min(self.peer_window);
        match self.config.congestion {
            Congestion::Reno => window.min(self.reno.cwnd()),
            Congestion::Off | Congestion::Bbr | Congestion::Auto => window,
        }
    }

    /// Segments that may join those in flight.
    pub(crate) fn most(&self) -> u32 {
        let out = self.send.flight().live() + self.send.unsent();
        match &self.bbr {
            Some(bbr) => bbr.limit().saturating_sub(out),
            None => u32::MAX,
        }
    }

    pub(crate) fn can_number(&self) -> bool {
        self.most() > 0 && self.send.can_number(self.window())
    }
}
