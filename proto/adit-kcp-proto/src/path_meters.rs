//! Corrections of the pace besides the delivery rate: loss, and held back acknowledgements.
//!
//! A path that loses a share at every rate delivers less than is sent, so the pace has to be above
//! the delivery rate. Of the share `s` that is sent again about half had arrived, and only their
//! acknowledgements, which nothing repeats, were lost. So the path loses `p = 1 - √(1 - s)`, and
//! the pace is the delivery rate divided by `1 - p`. The root also makes this stable: a sender that
//! is `g` times too fast sees `s = 1 - 1/g` and arrives at `√g`, so it slows down. Loss well above
//! the usual together with a grown round trip is congestion, and reduces the rate by 15 %.

/// Unit of loss shares: 1024ths.
const LOSS_UNIT: u64 = 1024;
/// Transmissions in a sample of loss, and the number of those remembered.
const SAMPLE_SIZE: u64 = 64;
const HISTORY_SIZE: u64 = 1024;
/// Share that probing at 125 % may lose: a fifth, in one of eight round trips, and some more.
const PROBING_LOSS: u64 = LOSS_UNIT / 24;
/// Maximum share: with it the pace is twice the delivery rate.
const LOSS_MAX: u64 = LOSS_UNIT * 3 / 4;

/// Share sent again above which the path is overrun, if the round trip has grown too.
const OVERRUN_LOSS: u64 = LOSS_UNIT * 3 / 20;

/// Returns the maximum round trip without a queue on a path whose minimum is `least` microseconds.
const fn max_unqueued_rtt(least: u64) -> u64 {
    least.saturating_add(least / 4).saturating_add(5_000)
}

/// Number of transmissions, and of the retransmissions among them.
#[derive(Debug, Default, Clone, Copy)]
struct LossCount {
    sent: u64,
    retransmitted: u64,
}

impl LossCount {
    /// Returns the share of retransmissions in 1024ths.
    fn retransmitted_share(&self) -> u64 {
        (self.retransmitted * LOSS_UNIT)
            .checked_div(self.sent)
            .unwrap_or(0)
    }
}

/// Sign of an overrun path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverrunSign {
    /// Its queue is full.
    Queue,
    /// It has hardly any queue: bursts are lost.
    Bursts,
}

/// Measures the loss of a path.
#[derive(Debug, Default)]
pub(crate) struct LossMeter {
    usual: LossCount,
    sample: LossCount,
    /// Shortest round trip of the sample.
    rtt: Option<u64>,
    /// Sum and number of all round trips of the sample.
    rtts: (u64, u64),
}

impl LossMeter {
    /// Counts a transmission; `again` is true for a retransmission.
    pub(crate) fn count_sent(&mut self, again: bool) {
        self.sample.sent += 1;
        self.sample.retransmitted += u64::from(again);
    }

    /// Adds a measured round trip.
    pub(crate) fn record_rtt(&mut self, rtt: u64) {
        self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
        let (sum, count) = self.rtts;
        self.rtts = (sum.saturating_add(rtt), count + 1);
    }

    /// Returns the rate at which to send to have `delivered` arrive.
    pub(crate) fn compensated_rate(&self, delivered: u64) -> u64 {
        let arriving = ((LOSS_UNIT - self.usual_loss()) * LOSS_UNIT).isqrt().max(1);
        delivered.saturating_mul(LOSS_UNIT) / arriving
    }

    /// True if more than usual is lost while the round trip is well above its `least`.
    pub(crate) fn is_congestion(&self, least: u64) -> bool {
        let grown = self.rtt.is_some_and(|rtt| rtt > max_unqueued_rtt(least));
        let beyond = self.sample.retransmitted_share() > self.usual_loss() + LOSS_UNIT / 20;
        self.sample.sent >= SAMPLE_SIZE && grown && beyond
    }

    /// Detects that an unlimited sender exceeds the path: a large share is sent again while the
    /// usual round trip is well above its `least`, or, on a path with hardly any queue, most of all
    /// segments.
    pub(crate) fn detect_overrun(&self, least: u64) -> Option<OverrunSign> {
        let (sum, count) = self.rtts;
        let usual = sum.checked_div(count);
        let waits = usual.is_some_and(|rtt| rtt > max_unqueued_rtt(least));
        let much =
            self.sample.sent >= SAMPLE_SIZE && self.sample.retransmitted_share() > OVERRUN_LOSS;
        let most =
            self.usual.sent >= HISTORY_SIZE / 2 && self.usual.retransmitted_share() > LOSS_MAX;
        match (much && waits, most) {
            (true, _) => Some(OverrunSign::Queue),
            (_, true) => Some(OverrunSign::Bursts),
            _ => None,
        }
    }

    /// Ends a round: the sample becomes part of the usual loss if it is large enough.
    pub(crate) fn end_round(&mut self) {
        if self.sample.sent < SAMPLE_SIZE {
            return;
        }
        self.usual.sent += self.sample.sent;
        self.usual.retransmitted += self.sample.retransmitted;
        while self.usual.sent > HISTORY_SIZE {
            self.usual.sent /= 2;
            self.usual.retransmitted /= 2;
        }
        self.sample = LossCount::default();
        (self.rtt, self.rtts) = (None, (0, 0));
    }

    /// Returns the share that the path loses at any rate, without the cost of probing.
    fn usual_loss(&self) -> u64 {
        let share = self.usual.retransmitted_share().min(LOSS_MAX);
        share.saturating_sub(PROBING_LOSS)
    }
}

/// Measures how far acknowledgements run ahead of the rate when they arrive in batches: the peer
/// holds them back, and as many more bytes must be in flight to keep the path busy.
#[derive(Debug, Default)]
pub(crate) struct AckBatches {
    since: u64,
    bytes: u64,
    rounds: u8,
    /// The maxima of the current rounds and of those before.
    most: [u64; 2],
}

impl AckBatches {
    /// Returns the maximum number of bytes by which they ran ahead.
    pub(crate) fn max_ahead(&self) -> u64 {
        self.most.iter().copied().max().unwrap_or(0)
    }

    /// Adds `bytes` acknowledged at `now`, in microseconds.
    pub(crate) fn record_acked(&mut self, rate: u64, bytes: u64, now: u64, new_round: bool) {
        if new_round {
            self.rounds += 1;
            if self.rounds >= 8 {
                self.rounds = 0;
                self.most = [0, self.most[0]];
            }
        }
        let due = u128::from(rate) * u128::from(now.saturating_sub(self.since)) / 1_000_000;
        let mut due = u64::try_from(due).unwrap_or(u64::MAX);
        if self.bytes <= due {
            self.since = now;
            self.bytes = 0;
            due = 0;
        }
        self.bytes += bytes;
        let ahead = self.bytes.saturating_sub(due);
        self.most[0] = self.most[0].max(ahead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(share: u64, rtt: u64) -> LossMeter {
        let mut loss = LossMeter::default();
        for n in 0..1000 {
            loss.count_sent(n % 100 < share);
        }
        loss.record_rtt(rtt);
        loss
    }

    #[test]
    fn too_fast_a_sender_calms_down() {
        // A path of 1,000 bytes/s without loss of its own, overrun at first.
        let mut pace = 8_000;
        for _ in 0..12 {
            let mut loss = loss(100 - 100_000 / pace.max(1_000), 50_000);
            loss.end_round();
            pace = loss.compensated_rate(1_000);
        }
        assert!((1_000..1_050).contains(&pace), "{pace}");
    }

    #[test]
    fn random_loss_is_made_up_for() {
        // A fifth lost in each direction: 36 of 100 are sent again.
        let mut loss = loss(36, 50_000);
        loss.end_round();
        let pace = loss.compensated_rate(800);
        assert!((950..=1_000).contains(&pace), "{pace}");
    }

    #[test]
    fn congestion_needs_both_loss_and_delay() {
        let least = 50_000;
        for (share, rtt, wanted) in [(20, 80_000, true), (20, 60_000, false), (5, 80_000, false)] {
            assert_eq!(loss(share, rtt).is_congestion(least), wanted);
        }
        // The usual loss is no sign of congestion.
        let mut used = loss(20, 60_000);
        used.end_round();
        for n in 0..1000 {
            used.count_sent(n % 5 == 0);
        }
        used.record_rtt(80_000);
        assert!(!used.is_congestion(least));
    }

    #[test]
    fn an_overrun_path_shows_by_loss_with_delay_or_by_most_being_lost() {
        let least = 50_000;
        for (share, rtt, wanted) in [
            (20, 80_000, Some(OverrunSign::Queue)),
            (20, 60_000, None),
            (10, 80_000, None),
            (80, 50_000, None),
        ] {
            assert_eq!(
                loss(share, rtt).detect_overrun(least),
                wanted,
                "{share} {rtt}"
            );
        }
        // Once it is known to be persistent.
        let mut loss = loss(80, 50_000);
        loss.end_round();
        assert_eq!(loss.detect_overrun(least), Some(OverrunSign::Bursts));
    }

    #[test]
    fn lumps_are_as_long_as_they_come() {
        let mut lumps = AckBatches::default();
        // 40 ms of 1 MB/s at once, every 40 ms.
        for n in 1..100 {
            lumps.record_acked(1_000_000, 40_000, n * 40_000, n % 2 == 0);
        }
        assert!(
            (40_000..=80_000).contains(&lumps.max_ahead()),
            "{}",
            lumps.max_ahead()
        );
        // Then evenly: the batches are forgotten.
        for n in 4_000..8_000 {
            lumps.record_acked(1_000_000, 1_000, n * 1_000, n % 50 == 0);
        }
        assert!(lumps.max_ahead() <= 2_000, "{}", lumps.max_ahead());
    }
}
