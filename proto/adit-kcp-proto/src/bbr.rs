//! A pace measured from acknowledgements, after the idea of BBR: send at the rate at which the
//! bottleneck delivers, with no more in flight than the path holds.
//!
//! ```text
//!   acknowledgements ──▶ delivery rate, best of 10 rounds ─┐
//!                    ──▶ shortest round trip of 10 s       ├─▶ pace, limit in flight
//!   transmissions    ──▶ share sent again                  ─┘
//! ```

use adit_wire::u64_from;

use crate::path_meters::{AckBatches, LossMeter, OverrunSign};
use crate::seq::{SeqNum, SeqRing};

/// Number of rounds whose best delivery rates are kept.
const RATE_ROUNDS: usize = 10;
/// Time for which a shortest round trip is valid, in microseconds.
const MAX_RTT_AGE: u64 = 10_000_000;
/// Minimum time for which the path is drained to measure it again, in microseconds.
const MIN_PROBE_TIME: u64 = 200_000;
/// Minimum time between two wake-ups, in microseconds.
const MIN_WAIT: u64 = 1_000;
/// Maximum time that a late sender may catch up at once, in microseconds.
const MAX_CATCH_UP: u64 = 20_000;
/// Assumed delay of the peer's acknowledgements before it is measured, in microseconds.
const ASSUMED_ACK_DELAY: u64 = 40_000;
/// Segments in flight before the first measurement, and the minimum.
const FIRST_FLIGHT: u32 = 32;
const MIN_FLIGHT: u32 = 4;
/// Gains in percent.
const STARTUP_GAIN: u64 = 289;
const DRAIN_GAIN: u64 = 35;
const CYCLE_GAINS: [u64; 8] = [125, 75, 100, 100, 100, 100, 100, 100];

/// State of the model when a segment was sent.
#[derive(Debug, Clone, Copy, Default)]
struct SentRecord {
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
enum BbrPhase {
    Startup,
    Drain,
    Cruise { step: usize, since: u64 },
    ProbeRtt { until: u64 },
}

/// Effect of the model on the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaceMode {
    /// None yet: it learns while all segments are sent immediately, and takes effect when the path
    /// is overrun.
    Watching,
    /// It limits the sender.
    Holding,
}

/// The model of the path. All times are in microseconds, rates in bytes per second.
#[derive(Debug)]
pub(crate) struct BbrModel {
    mss: u64,
    mode: PaceMode,
    phase: BbrPhase,
    /// Best delivery rate of each of the last rounds that had one.
    rates: [u64; RATE_ROUNDS],
    round: usize,
    /// No rate has been taken since the round began.
    no_rate_yet: bool,
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
    best_rate: (u64, u8),
    loss: LossMeter,
    ack_batches: AckBatches,
    newest: Option<SentRecord>,
    /// Bytes acknowledged by the current datagram.
    newly_acked: u64,
    next_send: u64,
    sent: SeqRing<SentRecord>,
}

impl BbrModel {
    pub(crate) fn new(mss: usize, mode: PaceMode) -> Self {
        Self {
            mss: u64_from(mss),
            mode,
            phase: BbrPhase::Startup,
            rates: [0; RATE_ROUNDS],
            round: 0,
            no_rate_yet: false,
            round_end: 0,
            delivered: 0,
            delivered_at: 0,
            flight_at: 0,
            idle_until: None,
            rtt: u64::MAX,
            rtt_at: 0,
            probed: u64::MAX,
            best_rate: (0, 0),
            loss: LossMeter::default(),
            ack_batches: AckBatches::default(),
            newest: None,
            newly_acked: 0,
            next_send: 0,
            sent: SeqRing::new(),
        }
    }

    /// Returns the pace in bytes per second; 0 before the first measurement or while the model does
    /// not limit the sender.
    pub(crate) fn pacing_rate(&self) -> u64 {
        if self.mode == PaceMode::Watching {
            return 0;
        }
        let gain = match self.phase {
            BbrPhase::Startup => STARTUP_GAIN,
            BbrPhase::Drain => DRAIN_GAIN,
            BbrPhase::Cruise { step, .. } => CYCLE_GAINS[step % CYCLE_GAINS.len()],
            BbrPhase::ProbeRtt { .. } => 100,
        };
        self.path_rate().saturating_mul(gain) / 100
    }

    /// Returns the maximum number of segments in flight.
    pub(crate) fn max_in_flight(&self) -> u32 {
        match self.mode {
            PaceMode::Watching => u32::MAX,
            PaceMode::Holding => self.path_capacity(),
        }
    }

    /// Returns the number of segments that fit into the path and into held back acknowledgements.
    fn path_capacity(&self) -> u32 {
        let gain = match self.phase {
            BbrPhase::Startup => STARTUP_GAIN,
            BbrPhase::ProbeRtt { .. } => 50,
            _ => 200,
        };
        if self.path_rate() == 0 {
            return FIRST_FLIGHT;
        }
        let lumps = match self.phase {
            BbrPhase::Startup => self.bytes_in_time(ASSUMED_ACK_DELAY),
            _ => self.ack_batches.max_ahead(),
        };
        let bytes = self.bytes_in_time(self.rtt).saturating_mul(gain) / 100 + lumps;
        let segments = u32::try_from(bytes.div_ceil(self.mss)).unwrap_or(u32::MAX);
        segments.max(MIN_FLIGHT)
    }

    /// Returns the time at which the next segment may be sent, if not now. Waits are not shorter
    /// than a quantum.
    pub(crate) fn blocked_until(&self, now: u64) -> Option<u64> {
        (self.next_send > now).then(|| self.next_send + MIN_WAIT)
    }

    /// Records that a segment is sent while `in_flight` others are in flight.
    pub(crate) fn record_sent(
        &mut self,
        sn: SeqNum,
        len: usize,
        now: u64,
        in_flight: u32,
        again: bool,
    ) {
        if in_flight == 0 {
            self.flight_at = now;
            self.delivered_at = now;
        }
        self.loss.count_sent(again);
        if let Some(slot) = self.sent.get_mut(sn) {
            *slot = SentRecord {
                at: now,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                flight_at: self.flight_at,
                idle: self.idle_until.is_some_and(|until| until >= self.delivered),
                again,
            };
        }
        if let Some(time) = (u64_from(len) * 1_000_000).checked_div(self.pacing_rate()) {
            // A late sender may catch up: the delay of a busy machine says nothing about the path,
            // and would slow the pace more with every round.
            let credit = match self.rtt {
                u64::MAX => 2 * MIN_WAIT,
                rtt => (rtt / 4).clamp(2 * MIN_WAIT, MAX_CATCH_UP),
            };
            let from = self.next_send.max(now.saturating_sub(credit));
            self.next_send = from.saturating_add(time);
        }
    }

    /// Follows the send window's ring; `count` segments from `first` on are kept.
    pub(crate) fn grow(&mut self, size: usize, first: SeqNum, count: u32) {
        self.sent.grow_to(size, first, count);
    }

    /// Records the first acknowledgement of a segment.
    pub(crate) fn record_acked(&mut self, sn: SeqNum, len: usize, now: u64) {
        let Some(sent) = self.sent.get(sn).copied() else {
            return;
        };
        self.delivered += u64_from(len);
        self.newly_acked += u64_from(len);
        self.delivered_at = now;
        if !sent.again {
            let rtt = now.saturating_sub(sent.at).max(1);
            self.loss.record_rtt(rtt);
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
    pub(crate) fn end_input(&mut self, now: u64, in_flight: u32) {
        let Some(sent) = self.newest.take() else {
            return;
        };
        let bytes = core::mem::take(&mut self.newly_acked);
        // The next flight is measured from the newest segment that this one acknowledged.
        self.flight_at = sent.at;
        let new_round = sent.delivered >= self.round_end;
        if new_round {
            self.round_end = self.delivered;
            self.no_rate_yet = true;
        }
        self.record_rate(now, &sent);
        if new_round {
            self.evaluate_loss();
            self.detect_plateau(&sent);
        }
        self.ack_batches
            .record_acked(self.delivery_rate(), bytes, now, new_round);
        if self.mode == PaceMode::Holding {
            self.advance_phase(now, in_flight);
        }
    }

    /// True if `in_flight` segments are less than half of what the path holds.
    pub(crate) fn is_running_dry(&self, in_flight: u32) -> bool {
        self.phase != BbrPhase::Startup && in_flight < self.path_capacity() / 4
    }

    /// Records that the application has no more to send while `in_flight` segments are in flight.
    pub(crate) fn record_idle(&mut self, in_flight: u32) {
        let out = u64::from(in_flight) * self.mss;
        self.idle_until = Some(self.delivered + out);
    }

    /// Returns the bytes of memory that [`release_memory`](Self::release_memory) frees.
    pub(crate) const fn freeable_size(&self) -> usize {
        self.sent.heap_size()
    }

    pub(crate) fn release_memory(&mut self) {
        self.sent.release_memory();
    }

    /// Returns the best delivery rate of the last rounds.
    fn delivery_rate(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }

    /// Returns the rate of the path, including the share that it loses at any rate; at least the
    /// minimum flight per round trip, and during startup the first flight.
    fn path_rate(&self) -> u64 {
        let measured = self.loss.compensated_rate(self.delivery_rate());
        if measured == 0 {
            return 0;
        }
        let flight = match self.phase {
            BbrPhase::Startup => FIRST_FLIGHT,
            _ => MIN_FLIGHT,
        };
        let floor = u64::from(flight) * self.mss * 1_000_000 / self.rtt.max(MIN_WAIT);
        measured.max(floor)
    }

    /// Returns the bytes that the path holds in `time` microseconds.
    fn bytes_in_time(&self, time: u64) -> u64 {
        let bytes = u128::from(self.path_rate()) * u128::from(time) / 1_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Takes the delivery rate since `sent`, if the sample is valid.
    fn record_rate(&mut self, now: u64, sent: &SentRecord) {
        let acking = now.saturating_sub(sent.delivered_at);
        let sending = sent.at.saturating_sub(sent.flight_at);
        let time = acking.max(sending);
        // Shorter than a round trip: a retransmission credited with what its original delivered.
        if time == 0 || time < self.rtt {
            return;
        }
        let bytes = self.delivered - sent.delivered;
        let rate = bytes.saturating_mul(1_000_000) / time;
        if sent.idle && rate < self.delivery_rate() {
            return;
        }
        // An old rate is replaced by a new one, not by silence.
        let first = core::mem::take(&mut self.no_rate_yet);
        self.round = (self.round + usize::from(first)) % RATE_ROUNDS;
        if let Some(best) = self.rates.get_mut(self.round) {
            *best = if first { rate } else { rate.max(*best) };
        }
    }

    /// Evaluates the loss of a round: the path is overrun, or congested.
    fn evaluate_loss(&mut self) {
        if self.mode == PaceMode::Watching {
            if let Some(overrun) = self.loss.detect_overrun(self.rtt) {
                self.mode = PaceMode::Holding;
                self.phase = match overrun {
                    OverrunSign::Queue => BbrPhase::Drain,
                    // The delivery rate of bursts is far below that of the path.
                    OverrunSign::Bursts => BbrPhase::Startup,
                };
            }
        } else if self.loss.is_congestion(self.rtt) {
            // Rates measured while looking for the limit were not too high.
            if self.phase != BbrPhase::Startup {
                for rate in &mut self.rates {
                    *rate -= *rate * 15 / 100;
                }
            }
            self.phase = BbrPhase::Drain;
        }
        self.loss.end_round();
    }

    /// Ends startup when three rounds have not brought a quarter more.
    fn detect_plateau(&mut self, sent: &SentRecord) {
        if self.phase != BbrPhase::Startup || self.mode == PaceMode::Watching || sent.idle {
            return;
        }
        let (best, rounds) = self.best_rate;
        if self.delivery_rate() >= best + best / 4 {
            self.best_rate = (self.delivery_rate(), 0);
        } else if rounds >= 2 {
            self.phase = BbrPhase::Drain;
        } else {
            self.best_rate = (best, rounds + 1);
        }
    }

    /// Advances the phase.
    fn advance_phase(&mut self, now: u64, in_flight: u32) {
        let cruise = BbrPhase::Cruise {
            step: 2,
            since: now,
        };
        match self.phase {
            BbrPhase::Startup => {}
            BbrPhase::Drain => {
                let drained = u64::from(in_flight) * self.mss <= self.bytes_in_time(self.rtt);
                if drained {
                    self.phase = cruise;
                }
            }
            BbrPhase::Cruise { step, since } if now.saturating_sub(since) > self.rtt => {
                let step = (step + 1) % CYCLE_GAINS.len();
                self.phase = BbrPhase::Cruise { step, since: now };
            }
            BbrPhase::ProbeRtt { until } if now >= until => {
                // The new measurement replaces the old one, even if it is longer.
                if self.probed != u64::MAX {
                    self.rtt = self.probed;
                }
                self.rtt_at = now;
                self.phase = cruise;
            }
            BbrPhase::Cruise { .. } | BbrPhase::ProbeRtt { .. } => {}
        }
        let old = self.rtt != u64::MAX && now.saturating_sub(self.rtt_at) > MAX_RTT_AGE;
        if old && !matches!(self.phase, BbrPhase::ProbeRtt { .. }) {
            let until = now + MIN_PROBE_TIME.max(self.rtt.saturating_mul(2));
            self.probed = u64::MAX;
            self.phase = BbrPhase::ProbeRtt { until };
        }
    }
}
