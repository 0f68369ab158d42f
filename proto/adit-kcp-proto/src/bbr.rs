//! A pace measured from acknowledgements, after the idea of BBR: send at the rate at which the
//! bottleneck delivers, with no more in flight than the path holds.
//!
//! ```text
//!   acknowledgements ──▶ delivery rate, best of 10 rounds ─┐
//!                    ──▶ shortest round trip of 10 s       ├─▶ pace, limit in flight
//!   transmissions    ──▶ share sent again                  ─┘
//! ```

use adit_wire::u64_from;

use crate::meters::{Loss, Lumps, Overrun};
use crate::seq::{Sn, SnRing};

/// Number of rounds whose best delivery rates are kept.
const ROUNDS: usize = 10;
/// Time for which a shortest round trip is valid, in microseconds.
const RTT_AGE: u64 = 10_000_000;
/// Minimum time for which the path is drained to measure it again, in microseconds.
const PROBE_RTT: u64 = 200_000;
/// Minimum time between two wake-ups, in microseconds.
const QUANTUM: u64 = 1_000;
/// Maximum time that a late sender may catch up at once, in microseconds.
const CATCH_UP: u64 = 20_000;
/// Assumed delay of the peer's acknowledgements before it is measured, in microseconds.
const ACK_DELAY: u64 = 40_000;
/// Segments in flight before the first measurement, and the minimum.
const FIRST_FLIGHT: u32 = 32;
const LEAST_FLIGHT: u32 = 4;
/// Gains in percent.
const STARTUP: u64 = 289;
const DRAIN: u64 = 35;
const CYCLE: [u64; 8] = [125, 75, 100, 100, 100, 100, 100, 100];

/// State of the model when a segment was sent.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    at: u64,
    /// Bytes delivered by then, and the time of the last delivery.
    delivered: u64,
    delivered_at: u64,
    /// Start of the flight to which it belongs.
    flight_at: u64,
    idle: bool,
    again: bool,
}

/// Phase of the model, as in BBR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Cruise { step: usize, since: u64 },
    ProbeRtt { until: u64 },
}

/// Effect of the model on the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// None yet: it learns while all segments are sent immediately, and takes effect when the path
    /// is overrun.
    Watching,
    /// It limits the sender.
    Holding,
}

/// The model of the path. All times are in microseconds, rates in bytes per second.
#[derive(Debug)]
pub(crate) struct Bbr {
    mss: u64,
    mode: Mode,
    phase: Phase,
    /// Best delivery rate of each of the last rounds that had one.
    rates: [u64; ROUNDS],
    round: usize,
    /// No rate has been taken since the round began.
    untaken: bool,
    /// The round ends when the segments sent after this many bytes are delivered.
    round_end: u64,
    delivered: u64,
    delivered_at: u64,
    flight_at: u64,
    /// Up to this count deliveries say nothing about the path: the application had no more to send.
    idle_until: Option<u64>,
    /// Shortest round trip, and the time of its measurement.
    rtt: u64,
    rtt_at: u64,
    /// Shortest round trip while the path is drained to measure it.
    probed: u64,
    /// Best rate when it last grew, and rounds without growth since then.
    plateau: (u64, u8),
    loss: Loss,
    lumps: Lumps,
    newest: Option<Sent>,
    /// Bytes acknowledged by the current datagram.
    fresh: u64,
    next_send: u64,
    sent: SnRing<Sent>,
}

impl Bbr {
    pub(crate) fn new(mss: usize, mode: Mode) -> Self {
        Self {
            mss: u64_from(mss),
            mode,
            phase: Phase::Startup,
            rates: [0; ROUNDS],
            round: 0,
            untaken: false,
            round_end: 0,
            delivered: 0,
            delivered_at: 0,
            flight_at: 0,
            idle_until: None,
            rtt: u64::MAX,
            rtt_at: 0,
            probed: u64::MAX,
            plateau: (0, 0),
            loss: Loss::default(),
            lumps: Lumps::default(),
            newest: None,
            fresh: 0,
            next_send: 0,
            sent: SnRing::new(),
        }
    }

    /// Returns the pace in bytes per second; 0 before the first measurement or while the model does
    /// not limit the sender.
    pub(crate) fn pace(&self) -> u64 {
        if self.mode == Mode::Watching {
            return 0;
        }
        let gain = match self.phase {
            Phase::Startup => STARTUP,
            Phase::Drain => DRAIN,
            Phase::Cruise { step, .. } => CYCLE[step % CYCLE.len()],
            Phase::ProbeRtt { .. } => 100,
        };
        self.path_rate().saturating_mul(gain) / 100
    }

    /// Returns the maximum number of segments in flight.
    pub(crate) fn limit(&self) -> u32 {
        match self.mode {
            Mode::Watching => u32::MAX,
            Mode::Holding => self.room(),
        }
    }

    /// Returns the number of segments that fit into the path and into held back acknowledgements.
    fn room(&self) -> u32 {
        let gain = match self.phase {
            Phase::Startup => STARTUP,
            Phase::ProbeRtt { .. } => 50,
            _ => 200,
        };
        if self.path_rate() == 0 {
            return FIRST_FLIGHT;
        }
        let lumps = match self.phase {
            Phase::Startup => self.held(ACK_DELAY),
            _ => self.lumps.most(),
        };
        let bytes = self.held(self.rtt).saturating_mul(gain) / 100 + lumps;
        let segments = u32::try_from(bytes.div_ceil(self.mss)).unwrap_or(u32::MAX);
        segments.max(LEAST_FLIGHT)
    }

    /// Returns the time at which the next segment may be sent, if not now. Waits are not shorter
    /// than a quantum.
    pub(crate) fn blocked(&self, now: u64) -> Option<u64> {
        (self.next_send > now).then(|| self.next_send + QUANTUM)
    }

    /// Records that a segment is sent while `in_flight` others are in flight.
    pub(crate) fn transmit(&mut self, sn: Sn, len: usize, now: u64, in_flight: u32, again: bool) {
        if in_flight == 0 {
            self.flight_at = now;
            self.delivered_at = now;
        }
        self.loss.sent(again);
        if let Some(slot) = self.sent.get_mut(sn) {
            *slot = Sent {
                at: now,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                flight_at: self.flight_at,
                idle: self.idle_until.is_some_and(|until| until >= self.delivered),
                again,
            };
        }
        if let Some(time) = (u64_from(len) * 1_000_000).checked_div(self.pace()) {
            // A late sender may catch up: the delay of a busy machine says nothing about the path,
            // and would slow the pace more with every round.
            let credit = match self.rtt {
                u64::MAX => 2 * QUANTUM,
                rtt => (rtt / 4).clamp(2 * QUANTUM, CATCH_UP),
            };
            let from = self.next_send.max(now.saturating_sub(credit));
            self.next_send = from.saturating_add(time);
        }
    }

    /// Follows the send window's ring; `count` segments from `first` on are kept.
    pub(crate) fn grow(&mut self, size: usize, first: Sn, count: u32) {
        self.sent.grow(size, first, count);
    }

    /// Records the first acknowledgement of a segment.
    pub(crate) fn acked(&mut self, sn: Sn, len: usize, now: u64) {
        let Some(sent) = self.sent.get(sn).copied() else {
            return;
        };
        self.delivered += u64_from(len);
        self.fresh += u64_from(len);
        self.delivered_at = now;
        if !sent.again {
            let rtt = now.saturating_sub(sent.at).max(1);
            self.loss.round_trip(rtt);
            self.probed = self.probed.min(rtt);
            if rtt <= self.rtt {
                self.rtt = rtt;
                self.rtt_at = now;
            }
        }
        // Too soon for the retransmission: the original has arrived, or was restored by FEC. The
        // time of the original is not stored any more.
        let too_soon = sent.again && now.saturating_sub(sent.at) < self.rtt;
        if !too_soon && self.newest.is_none_or(|newest| newest.at <= sent.at) {
            self.newest = Some(sent);
        }
    }

    /// Updates the model at the end of a datagram with acknowledgements.
    pub(crate) fn update(&mut self, now: u64, in_flight: u32) {
        let Some(sent) = self.newest.take() else {
            return;
        };
        let bytes = core::mem::take(&mut self.fresh);
        // The next flight is measured from the newest segment that this one acknowledged.
        self.flight_at = sent.at;
        let new_round = sent.delivered >= self.round_end;
        if new_round {
            self.round_end = self.delivered;
            self.untaken = true;
        }
        self.take_rate(now, &sent);
        if new_round {
            self.judge_loss();
            self.look_for_plateau(&sent);
        }
        self.lumps.take(self.rate(), bytes, now, new_round);
        if self.mode == Mode::Holding {
            self.step(now, in_flight);
        }
    }

    /// True if `in_flight` segments are less than half of what the path holds.
    pub(crate) fn runs_dry(&self, in_flight: u32) -> bool {
        self.phase != Phase::Startup && in_flight < self.room() / 4
    }

    /// Records that the application has no more to send while `in_flight` segments are in flight.
    pub(crate) fn idle(&mut self, in_flight: u32) {
        let out = u64::from(in_flight) * self.mss;
        self.idle_until = Some(self.delivered + out);
    }

    /// Returns the bytes of memory that [`release`](Self::release) frees.
    pub(crate) const fn spare(&self) -> usize {
        self.sent.heap()
    }

    pub(crate) fn release(&mut self) {
        self.sent.release();
    }

    /// Returns the best delivery rate of the last rounds.
    fn rate(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }

    /// Returns the rate of the path, including the share that it loses at any rate; at least the
    /// minimum flight per round trip, and during startup the first flight.
    fn path_rate(&self) -> u64 {
        let measured = self.loss.compensate(self.rate());
        if measured == 0 {
            return 0;
        }
        let flight = match self.phase {
            Phase::Startup => FIRST_FLIGHT,
            _ => LEAST_FLIGHT,
        };
        let floor = u64::from(flight) * self.mss * 1_000_000 / self.rtt.max(QUANTUM);
        measured.max(floor)
    }

    /// Returns the bytes that the path holds in `time` microseconds.
    fn held(&self, time: u64) -> u64 {
        let bytes = u128::from(self.path_rate()) * u128::from(time) / 1_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Takes the delivery rate since `sent`, if the sample is valid.
    fn take_rate(&mut self, now: u64, sent: &Sent) {
        let acking = now.saturating_sub(sent.delivered_at);
        let sending = sent.at.saturating_sub(sent.flight_at);
        let time = acking.max(sending);
        // Shorter than a round trip: a retransmission credited with what its original delivered.
        if time == 0 || time < self.rtt {
            return;
        }
        let bytes = self.delivered - sent.delivered;
        let rate = bytes.saturating_mul(1_000_000) / time;
        if sent.idle && rate < self.rate() {
            return;
        }
        // An old rate is replaced by a new one, not by silence.
        let first = core::mem::take(&mut self.untaken);
        self.round = (self.round + usize::from(first)) % ROUNDS;
        if let Some(best) = self.rates.get_mut(self.round) {
            *best = if first { rate } else { rate.max(*best) };
        }
    }

    /// Evaluates the loss of a round: the path is overrun, or congested.
    fn judge_loss(&mut self) {
        if self.mode == Mode::Watching {
            if let Some(overrun) = self.loss.overrun(self.rtt) {
                self.mode = Mode::Holding;
                self.phase = match overrun {
                    Overrun::Queue => Phase::Drain,
                    // The delivery rate of bursts is far below that of the path.
                    Overrun::Bursts => Phase::Startup,
                };
            }
        } else if self.loss.is_congestion(self.rtt) {
            // Rates measured while looking for the limit were not too high.
            if self.phase != Phase::Startup {
                for rate in &mut self.rates {
                    *rate -= *rate * 15 / 100;
                }
            }
            self.phase = Phase::Drain;
        }
        self.loss.take_sample();
    }

    /// Ends startup when three rounds have not brought a quarter more.
    fn look_for_plateau(&mut self, sent: &Sent) {
        if self.phase != Phase::Startup || self.mode == Mode::Watching || sent.idle {
            return;
        }
        let (best, rounds) = self.plateau;
        if self.rate() >= best + best / 4 {
            self.plateau = (self.rate(), 0);
        } else if rounds >= 2 {
            self.phase = Phase::Drain;
        } else {
            self.plateau = (best, rounds + 1);
        }
    }

    /// Advances the phase.
    fn step(&mut self, now: u64, in_flight: u32) {
        let cruise = Phase::Cruise {
            step: 2,
            since: now,
        };
        match self.phase {
            Phase::Startup => {}
            Phase::Drain => {
                let drained = u64::from(in_flight) * self.mss <= self.held(self.rtt);
                if drained {
                    self.phase = cruise;
                }
            }
            Phase::Cruise { step, since } if now.saturating_sub(since) > self.rtt => {
                let step = (step + 1) % CYCLE.len();
                self.phase = Phase::Cruise { step, since: now };
            }
            Phase::ProbeRtt { until } if now >= until => {
                // The new measurement replaces the old one, even if it is longer.
                if self.probed != u64::MAX {
                    self.rtt = self.probed;
                }
                self.rtt_at = now;
                self.phase = cruise;
            }
            Phase::Cruise { .. } | Phase::ProbeRtt { .. } => {}
        }
        let old = self.rtt != u64::MAX && now.saturating_sub(self.rtt_at) > RTT_AGE;
        if old && !matches!(self.phase, Phase::ProbeRtt { .. }) {
            let until = now + PROBE_RTT.max(self.rtt.saturating_mul(2));
            self.probed = u64::MAX;
            self.phase = Phase::ProbeRtt { until };
        }
    }
}
