//! Timers: flushes, time-outs, window probes, and the release of memory. Nothing ticks while
//! nothing is due.

use core::time::Duration;

use adit_wire::Time;

use crate::flight::NEVER;
use crate::seq::low32;
use crate::{Compat, Kcp};

/// Idle time after which a session frees its memory: as long as the datagrams of a group may be
/// apart to get parity (kcp-go's rule), so that nothing useful is freed. The memory of thousands of
/// sessions that start within this time stays with the process.
const IDLE: Duration = Duration::from_millis(500);
/// Maximum wait between two window probes, in milliseconds.
const PROBE_WAIT_MAX: u64 = 120_000;

/// Window probes, in both directions.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// Milliseconds between probes; 0 while the peer's window is open.
    wait: u64,
    at: u64,
    /// A probe is to be sent.
    pub(crate) ask: bool,
    /// An answer is to be sent.
    pub(crate) tell: bool,
}

impl Kcp {
    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout) or
    /// [`poll_output`](Self::poll_output), if no other call comes before. A time in the past means
    /// immediately. `None` if nothing is due: an idle session has no timer, except the one that
    /// frees its memory half a second after its last activity.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.dead {
            return None;
        }
        if self.flush.acks || (self.flush.data && self.paced_until().is_none()) {
            return Some(self.clock);
        }
        let pace = self.paced_until().filter(|_| self.flush.data);
        let ends = self.farewell_due();
        let times = [self.flush_at, self.resend_at(), self.probe_at(), pace, ends];
        let due = times.into_iter().flatten().min();
        due.or_else(|| self.give_back_at())
    }

    /// Handles everything that is due by `now`. Afterwards there may be datagrams to send.
    pub fn handle_timeout(&mut self, now: Time) {
        self.see(now);
        if self.dead {
            return;
        }
        let ends = self.farewell_due();
        let timers = [self.flush_at, self.resend_at(), self.probe_at(), ends];
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

    /// Clears the request for a flush at its start.
    pub(crate) const fn flush_begins(&mut self) {
        self.flush_at = None;
        self.flushed = Some(self.clock);
    }

    /// Requests a flush at `at` or earlier.
    pub(crate) fn flush_by(&mut self, at: Time) {
        self.flush_at = Some(self.flush_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Requests a flush at the next tick if there is anything to flush.
    pub(crate) fn schedule(&mut self) {
        self.watch_window(self.ms());
        let asked = self.probe.ask || self.probe.tell || self.owes_answer();
        let owed = self.acks.len() > 0 || asked;
        let again = self.send.flight().due() > 0 || self.send.flight().hinted() > 0;
        // C's window is closed until the first flush has ended.
        let opens = self.reno.cwnd() == 0 && self.send.queued() > 0;
        if owed {
            // kcp-go answers half an interval late on average; twice that, each time, is as late as
            // a hasty peer waits.
            self.flush_by(self.tick(self.clock, 2));
        } else if again || opens || self.can_number() {
            self.flush_by(self.tick(self.clock, 1));
        }
    }

    /// Keeps probing a closed window while data waits for it.
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

    /// Advances the session's clock to `now`.
    pub(crate) fn see(&mut self, now: Time) {
        self.clock = self.clock.max(now);
    }

    /// Returns this end's clock in milliseconds.
    pub(crate) const fn ms(&self) -> u64 {
        self.clock.0.saturating_sub(self.start.0) / 1000
    }

    /// Returns the clock of the wire: milliseconds, wrapping.
    pub(crate) fn wire_clock(&self) -> u32 {
        low32(self.ms()).wrapping_add(self.send.origin())
    }

    /// Returns the time of a millisecond of this end's clock.
    fn moment(&self, ms: u64) -> Time {
        self.start + Duration::from_millis(ms)
    }

    /// Returns the first time from `at` on at which a flush may start on its own: with C a multiple
    /// of the interval, with kcp-go an interval, or a fraction of it, after the last flush.
    fn tick(&self, at: Time, fraction: u64) -> Time {
        let interval = u64::from(self.config.interval_ms) * 1000;
        match (self.config.compat, self.flushed) {
            (Compat::Go, None) => at,
            (Compat::Go, Some(flushed)) => {
                at.max(Time(flushed.0.saturating_add(interval / fraction)))
            }
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

    /// Returns the time of a timer other than the flush tick.
    fn alarm(&self, ms: u64) -> Time {
        match self.config.compat {
            Compat::C => self.tick(self.moment(ms), 1),
            Compat::Go => self.moment(ms),
        }
    }

    fn resend_at(&self) -> Option<Time> {
        let earliest = self.send.flight().earliest();
        (earliest != NEVER).then(|| self.alarm(earliest))
    }

    fn farewell_due(&self) -> Option<Time> {
        Some(self.moment(self.farewell_at()?))
    }

    /// Requests the peer's window, which every implementation reports: a sign of life.
    pub fn ask_window(&mut self, now: Time) {
        self.see(now);
        self.probe.ask = true;
        self.schedule();
    }

    fn probe_at(&self) -> Option<Time> {
        (self.probe.wait > 0).then(|| self.alarm(self.probe.at))
    }

    pub(crate) fn paced_until(&self) -> Option<Time> {
        self.bbr.as_ref()?.blocked(self.clock.0).map(Time)
    }

    fn give_back_at(&self) -> Option<Time> {
        let idle = self.send.is_empty() && self.recv.is_empty() && self.acks.len() == 0;
        (idle && self.spare() > 0).then(|| self.active + IDLE)
    }
}
