//! Timers: flushes, time-outs, window probes, and the release of memory. Nothing ticks while
//! nothing is due.

use core::time::Duration;

use adit_wire::Time;

use crate::in_flight::NEVER;
use crate::seq::low_u32;
use crate::{Compat, KcpSession};

/// Idle time after which a session frees its memory: as long as the datagrams of a group may be
/// apart to get parity (kcp-go's rule), so that nothing useful is freed. The memory of thousands of
/// sessions that start within this time stays with the process.
const IDLE_BEFORE_RELEASE: Duration = Duration::from_millis(500);
/// Maximum wait between two window probes, in milliseconds.
const MAX_PROBE_WAIT: u64 = 120_000;

/// Window probes, in both directions.
#[derive(Debug, Default)]
pub(crate) struct WindowProbe {
    /// Milliseconds between probes; 0 while the peer's window is open.
    interval_ms: u64,
    next_ms: u64,
    /// A probe is to be sent.
    pub(crate) send_request: bool,
    /// An answer is to be sent.
    pub(crate) send_report: bool,
}

impl KcpSession {
    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout) or
    /// [`poll_output`](Self::poll_output), if no other call comes before. A time in the past means
    /// immediately. `None` if nothing is due: an idle session has no timer, except the one that
    /// frees its memory half a second after its last activity.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.is_dead {
            return None;
        }
        if self.flush.acks || (self.flush.data && self.pacing_deadline().is_none()) {
            return Some(self.clock);
        }
        let pace = self.pacing_deadline().filter(|_| self.flush.data);
        let ends = self.closing_due();
        let times = [
            self.flush_at,
            self.next_resend(),
            self.next_probe(),
            pace,
            ends,
        ];
        let due = times.into_iter().flatten().min();
        due.or_else(|| self.release_due())
    }

    /// Handles everything that is due by `now`. Afterwards there may be datagrams to send.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance_clock(now);
        if self.is_dead {
            return;
        }
        let ends = self.closing_due();
        let timers = [self.flush_at, self.next_resend(), self.next_probe(), ends];
        if timers.into_iter().flatten().any(|at| at <= self.clock) {
            self.begin_flush();
        } else if self.release_due().is_some_and(|at| at <= self.clock) {
            self.send.release_if_empty();
            self.recv.release_if_empty();
            self.acks.release_if_empty();
            if let Some(bbr) = &mut self.bbr {
                bbr.release_memory();
            }
        }
    }

    /// Clears the request for a flush at its start.
    pub(crate) const fn record_flush(&mut self) {
        self.flush_at = None;
        self.flushed = Some(self.clock);
    }

    /// Requests a flush at `at` or earlier.
    pub(crate) fn request_flush_by(&mut self, at: Time) {
        self.flush_at = Some(self.flush_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Requests a flush at the next tick if there is anything to flush.
    pub(crate) fn schedule_flush(&mut self) {
        self.update_window_probe(self.elapsed_ms());
        let asked = self.probe.send_request || self.probe.send_report || self.owes_closing_answer();
        let owed = self.acks.len() > 0 || asked;
        let again =
            self.send.in_flight().due_count() > 0 || self.send.in_flight().hinted_count() > 0;
        // C's window is closed until the first flush has ended.
        let opens = self.reno.cwnd() == 0 && self.send.queued_count() > 0;
        if owed {
            // kcp-go answers half an interval late on average; twice that, each time, is as late as
            // a hasty peer waits.
            self.request_flush_by(self.next_tick(self.clock, 2));
        } else if again || opens || self.can_send_new() {
            self.request_flush_by(self.next_tick(self.clock, 1));
        }
    }

    /// Keeps probing a closed window while data waits for it.
    pub(crate) fn update_window_probe(&mut self, now: u64) {
        if self.peer_window > 0 || self.send.queued_count() == 0 {
            self.probe.interval_ms = 0;
        } else if self.probe.interval_ms == 0 {
            self.probe.interval_ms = self.config.compat.first_probe_wait();
            self.probe.next_ms = now + self.probe.interval_ms;
        } else if now >= self.probe.next_ms {
            let longer = self.probe.interval_ms + self.probe.interval_ms / 2;
            self.probe.interval_ms = longer.min(MAX_PROBE_WAIT);
            self.probe.next_ms = now + self.probe.interval_ms;
            self.probe.send_request = true;
        }
    }

    /// Advances the session's clock to `now`.
    pub(crate) fn advance_clock(&mut self, now: Time) {
        self.clock = self.clock.max(now);
    }

    /// Returns this end's clock in milliseconds.
    pub(crate) const fn elapsed_ms(&self) -> u64 {
        self.clock.0.saturating_sub(self.start.0) / 1000
    }

    /// Returns the clock of the wire: milliseconds, wrapping.
    pub(crate) fn wire_clock(&self) -> u32 {
        low_u32(self.elapsed_ms()).wrapping_add(self.send.clock_origin())
    }

    /// Returns the time of a millisecond of this end's clock.
    fn time_at_ms(&self, ms: u64) -> Time {
        self.start + Duration::from_millis(ms)
    }

    /// Returns the first time from `at` on at which a flush may start on its own: with C a multiple
    /// of the interval, with kcp-go an interval, or a fraction of it, after the last flush.
    fn next_tick(&self, at: Time, fraction: u64) -> Time {
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
    fn timer_for(&self, ms: u64) -> Time {
        match self.config.compat {
            Compat::C => self.next_tick(self.time_at_ms(ms), 1),
            Compat::Go => self.time_at_ms(ms),
        }
    }

    fn next_resend(&self) -> Option<Time> {
        let earliest = self.send.in_flight().earliest_timeout();
        (earliest != NEVER).then(|| self.timer_for(earliest))
    }

    fn closing_due(&self) -> Option<Time> {
        Some(self.time_at_ms(self.closing_due_ms()?))
    }

    /// Requests the peer's window, which every implementation reports: a sign of life.
    pub fn request_window(&mut self, now: Time) {
        self.advance_clock(now);
        self.probe.send_request = true;
        self.schedule_flush();
    }

    fn next_probe(&self) -> Option<Time> {
        (self.probe.interval_ms > 0).then(|| self.timer_for(self.probe.next_ms))
    }

    pub(crate) fn pacing_deadline(&self) -> Option<Time> {
        self.bbr.as_ref()?.blocked_until(self.clock.0).map(Time)
    }

    fn release_due(&self) -> Option<Time> {
        let idle = self.send.is_empty() && self.recv.is_empty() && self.acks.len() == 0;
        (idle && self.freeable_size() > 0).then(|| self.last_active + IDLE_BEFORE_RELEASE)
    }
}
