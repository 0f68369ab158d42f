//! The session: what the application and the driver call, and when a flush is due.

use core::time::Duration;

use adit_wire::Time;

use crate::acks::Acks;
use crate::bbr::Bbr;
use crate::flight::NEVER;
use crate::output::Flush;
use crate::recv::RecvWindow;
use crate::reno::Reno;
use crate::rtt::Rtt;
use crate::send::SendWindow;
use crate::seq::Sn;
use crate::{Compat, Config, Congestion, Stats};

/// Memory an idle session may keep, in bytes.
const KEEP: usize = 1024;
/// How long a session is idle before it gives more than that back.
const IDLE: Duration = Duration::from_secs(2);
/// Longest wait between two questions for a closed window, milliseconds.
const PROBE_WAIT_MAX: u64 = 120_000;

/// One end of a conversation.
#[derive(Debug)]
pub struct Kcp {
    pub(crate) conv: u32,
    pub(crate) config: Config,
    /// Millisecond 0 of this end.
    start: Time,
    /// The latest time heard of.
    pub(crate) clock: Time,
    /// When a datagram last came in or went out.
    pub(crate) active: Time,
    pub(crate) send: SendWindow,
    pub(crate) recv: RecvWindow,
    pub(crate) acks: Acks,
    pub(crate) rtt: Rtt,
    pub(crate) reno: Reno,
    pub(crate) bbr: Option<Box<Bbr>>,
    pub(crate) peer_window: u32,
    pub(crate) probe: Probe,
    pub(crate) flush: Flush,
    /// When there is something to flush.
    flush_at: Option<Time>,
    flushed: Option<Time>,
    pub(crate) dead: bool,
    pub(crate) stats: Stats,
}

/// Questions about a closed window, in both directions.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// Milliseconds between questions; 0 while the peer's window is open.
    wait: u64,
    at: u64,
    /// A question is to be sent.
    pub(crate) ask: bool,
    /// An answer is to be sent.
    pub(crate) tell: bool,
}

/// Whether the session can still do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It can.
    Open,
    /// A segment was sent [`Config::dead_link`] times in vain: the peer is gone. Nothing more goes
    /// out; what was received can still be read.
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
        let paced = config.congestion == Congestion::Bbr;
        Self {
            conv,
            config,
            start: now,
            clock: now,
            active: now,
            send: SendWindow::new(Sn(first), &config),
            recv: RecvWindow::new(Sn(first), config.recv_window, config.stream),
            acks: Acks::new(),
            rtt: Rtt::new(config.compat, config.nodelay != 0, config.interval_ms),
            reno: Reno::new(&config),
            bbr: paced.then(|| Box::new(Bbr::new(config.mss()))),
            peer_window: config.compat.recv_window(),
            probe: Probe::default(),
            flush: Flush::default(),
            flush_at: None,
            flushed: None,
            dead: false,
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
    /// See [`SendError`]; in stream mode only [`SendError::Dead`].
    pub fn send(&mut self, data: &[u8]) -> Result<usize, SendError> {
        if self.dead {
            return Err(SendError::Dead);
        }
        let taken = self.send.push(data)?;
        self.stats.bytes_sent += bytes(taken);
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
        self.stats.bytes_received += bytes(read);
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

    fn heap(&self) -> usize {
        let bbr = self.bbr.as_ref().map_or(0, |bbr| bbr.heap());
        self.send.heap() + self.recv.heap() + self.acks.heap() + bbr
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called, or
    /// [`poll_transmit`](Self::poll_transmit), if no other call comes before. In the past: at once.
    /// `None` while nothing is due: an idle session has no timer, but for one that gives its
    /// memory back two seconds after it came to rest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.dead {
            return None;
        }
        if self.flush.acks || (self.flush.data && self.paced_until().is_none()) {
            return Some(self.clock);
        }
        let pace = self.paced_until().filter(|_| self.flush.data);
        let times = [self.flush_at, self.resend_at(), self.probe_at(), pace];
        let due = times.into_iter().flatten().min();
        due.or_else(|| self.give_back_at())
    }

    /// Does what is due by `now`; then there may be datagrams to transmit.
    pub fn handle_timeout(&mut self, now: Time) {
        self.see(now);
        if self.dead {
            return;
        }
        let timers = [self.flush_at, self.resend_at(), self.probe_at()];
        if timers.into_iter().flatten().any(|at| at <= self.clock) {
            self.begin_flush();
        } else if self.give_back_at().is_some_and(|at| at <= self.clock) {
            self.send.release();
            self.recv.release();
            self.acks.release();
            if let Some(bbr) = &mut self.bbr {
                bbr.release();
            }
        }
    }

    /// Lets out at once whatever the windows allow, without waiting for the interval.
    pub fn flush_now(&mut self, now: Time) {
        self.see(now);
        if !self.dead {
            self.begin_flush();
        }
    }

    /// A flush starts: forget that one was wanted.
    pub(crate) const fn flush_begins(&mut self) {
        self.flush_at = None;
        self.flushed = Some(self.clock);
    }

    /// A flush is wanted at `at` or earlier.
    pub(crate) fn flush_by(&mut self, at: Time) {
        self.flush_at = Some(self.flush_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// If there is anything to flush, wants it at the next tick.
    pub(crate) fn schedule(&mut self) {
        self.watch_window(self.ms());
        let owed = self.acks.len() > 0 || self.probe.ask || self.probe.tell;
        let again = self.send.flight().due() > 0 || self.send.flight().hinted() > 0;
        // C's window is closed until the first flush has ended.
        let opens = self.reno.cwnd() == 0 && self.send.queued() > 0;
        if owed || again || opens || self.can_number() {
            self.flush_by(self.tick(self.clock));
        }
    }

    /// Numbers from the oldest not acknowledged that may be out.
    pub(crate) fn window(&self) -> u32 {
        let window = self.config.send_window.min(self.peer_window);
        match self.config.congestion {
            Congestion::Reno => window.min(self.reno.cwnd()),
            Congestion::Off | Congestion::Bbr => window,
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

    /// Keeps asking for a closed window while something waits for it.
    pub(crate) fn watch_window(&mut self, now: u64) {
        if self.peer_window > 0 || self.send.queued() == 0 {
            self.probe.wait = 0;
        } else if self.probe.wait == 0 {
            self.probe.wait = self.config.compat.probe_wait();
            self.probe.at = now + self.probe.wait;
        } else if now >= self.probe.at {
            let longer = self.probe.wait + self.probe.wait / 2;
            self.probe.wait = longer.min(PROBE_WAIT_MAX);
            self.probe.at = now + self.probe.wait;
            self.probe.ask = true;
        }
    }

    pub(crate) fn see(&mut self, now: Time) {
        self.clock = self.clock.max(now);
    }

    /// This end's clock in milliseconds.
    pub(crate) const fn ms(&self) -> u64 {
        self.clock.0.saturating_sub(self.start.0) / 1000
    }

    fn moment(&self, ms: u64) -> Time {
        self.start + Duration::from_millis(ms)
    }

    /// The first moment from `at` on at which a flush may start by itself: with C at a multiple of
    /// the interval, with kcp-go an interval after the last one.
    fn tick(&self, at: Time) -> Time {
        let interval = u64::from(self.config.interval_ms) * 1000;
        match (self.config.compat, self.flushed) {
            (Compat::Go, None) => at,
            (Compat::Go, Some(flushed)) => at.max(Time(flushed.0.saturating_add(interval))),
            (Compat::C, flushed) => {
                let ticks = at.0.saturating_sub(self.start.0).div_ceil(interval);
                let tick = Time(self.start.0.saturating_add(ticks.saturating_mul(interval)));
                match flushed {
                    Some(flushed) if tick <= flushed => Time(tick.0.saturating_add(interval)),
                    _ => tick,
                }
            }
        }
    }

    /// What waits for a time of its own, not for the tick of what there is to flush.
    fn alarm(&self, ms: u64) -> Time {
        match self.config.compat {
            Compat::C => self.tick(self.moment(ms)),
            Compat::Go => self.moment(ms),
        }
    }

    fn resend_at(&self) -> Option<Time> {
        let earliest = self.send.flight().earliest();
        (earliest != NEVER).then(|| self.alarm(earliest))
    }

    fn probe_at(&self) -> Option<Time> {
        (self.probe.wait > 0).then(|| self.alarm(self.probe.at))
    }

    pub(crate) fn paced_until(&self) -> Option<Time> {
        self.bbr.as_ref()?.blocked(self.clock.0).map(Time)
    }

    fn give_back_at(&self) -> Option<Time> {
        let idle = self.send.is_empty() && self.recv.is_empty() && self.acks.len() == 0;
        (idle && self.heap() > KEEP).then(|| self.active + IDLE)
    }
}

pub(crate) fn bytes(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
