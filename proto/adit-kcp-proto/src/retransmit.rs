//! Rules for retransmissions and time-outs.

use crate::rtt::RTO_MAX;
use crate::seq::{elapsed_ms, low_u32};
use crate::{Compat, Config};

/// Transmissions of a segment after which only its time-out sends it again.
const FAST_LIMIT: u16 = 5;

/// A segment that is queued or in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SendSegment {
    /// Position of its bytes.
    pub(crate) position: usize,
    pub(crate) len: usize,
    /// Time of its time-out, in milliseconds.
    resend_at: u64,
    /// The wire's clock at its last transmission.
    ts: u32,
    /// Sequence number of that transmission among all.
    send_number: u32,
    rto: u32,
    /// Transmissions so far.
    transmissions: u16,
    /// Acknowledgements of later segments since its last transmission.
    overtaken: u16,
    pub(crate) frg: u8,
}

impl SendSegment {
    /// Creates a segment that is not sent yet, with its bytes at `pos`.
    pub(crate) fn new(position: usize, len: usize, frg: u8) -> Self {
        Self {
            position,
            len,
            frg,
            ..Self::default()
        }
    }
}

/// An acknowledgement as evidence against segments that should have arrived before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AckEvidence {
    /// The echoed time stamp of the acknowledged segment.
    pub(crate) ts: u32,
    /// Its transmission number, if it is certain which transmission is meant.
    send_number: Option<u32>,
}

impl AckEvidence {
    /// Creates the evidence of an acknowledgement of `seg` as sent at `ts`.
    pub(crate) fn new(seg: &SendSegment, ts: u32) -> Self {
        let send_number = (seg.ts == ts).then_some(seg.send_number);
        Self { ts, send_number }
    }

    /// True if the acknowledged segment was sent after `hole`. A millisecond is too coarse to
    /// decide this: many segments are sent within one, some of them before a retransmission.
    fn is_later_than(&self, hole: &SendSegment) -> bool {
        match self.send_number {
            Some(turn) => elapsed_ms(turn, hole.send_number) > 0,
            None => elapsed_ms(self.ts, hole.ts) > 0,
        }
    }
}

/// Reason for a transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendReason {
    /// The first transmission.
    New,
    /// The time-out has passed.
    Timeout,
    /// Overtaken as often as configured.
    Fast,
    /// Overtaken, and there was nothing new to send.
    Early,
}

/// Effect of one more acknowledgement of a later segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OvertakeEffect {
    /// None: that one was sent before this segment.
    No,
    /// To be sent again if there is nothing new; `last` is true if more counting changes nothing.
    Hint { last: bool },
    /// To be sent again.
    Due,
    /// It has been sent again too often for this rule.
    InVain,
}

/// The retransmission rules of a session.
///
/// kcp-go sends an overtaken segment again only once before its time-out. Here it may be sent each
/// time that segments sent after it arrive first, as in C, and both families need new evidence
/// then.
#[derive(Debug)]
pub(crate) struct ResendRules {
    compat: Compat,
    nodelay: u8,
    resend: u16,
    /// The wire's clock at millisecond 0.
    pub(crate) origin: u32,
    /// Number of transmissions so far.
    send_count: u32,
    /// The latest transmission that is known to have arrived.
    latest_arrived: u32,
    /// Time of the last acknowledgement, in milliseconds.
    progress_at: u64,
}

impl ResendRules {
    pub(crate) const fn new(config: &Config) -> Self {
        Self {
            compat: config.compat,
            nodelay: config.nodelay,
            resend: config.resend,
            origin: 0,
            send_count: 0,
            latest_arrived: 0,
            progress_at: 0,
        }
    }

    /// Changes the settings.
    pub(crate) const fn set_limits(&mut self, config: &Config) {
        self.nodelay = config.nodelay;
        self.resend = config.resend;
    }

    /// True if overtaking has an effect.
    pub(crate) fn counts_overtakes(&self) -> bool {
        self.resend > 0 || self.compat == Compat::Go
    }

    /// Records the acknowledgement of a segment at `now`; `ts` is the echoed time stamp, if any.
    pub(crate) fn record_arrival(&mut self, seg: &SendSegment, ts: Option<u32>, now: u64) {
        self.progress_at = now;
        let certain = seg.transmissions == 1 || ts == Some(seg.ts);
        if certain && elapsed_ms(seg.send_number, self.latest_arrived) > 0 {
            self.latest_arrived = seg.send_number;
        }
    }

    /// Returns the time-out of the segment, in milliseconds.
    ///
    /// While older transmissions are still arriving, a younger one is not late but queued: its time
    /// starts again with each of them. kcp-go counts from the transmission alone, and floods a path
    /// whose queue fills faster than its estimator learns.
    pub(crate) fn deadline(&self, seg: &SendSegment) -> u64 {
        let queued = elapsed_ms(seg.send_number, self.latest_arrived) > 0;
        match self.compat {
            Compat::Go if queued => seg.resend_at.max(self.progress_at + u64::from(seg.rto)),
            Compat::Go | Compat::C => seg.resend_at,
        }
    }

    /// Counts the acknowledgement of a segment with a higher number.
    pub(crate) fn count_overtake(&self, seg: &mut SendSegment, by: &AckEvidence) -> OvertakeEffect {
        if !by.is_later_than(seg) {
            return OvertakeEffect::No;
        }
        seg.overtaken = seg.overtaken.saturating_add(1);
        if seg.transmissions > FAST_LIMIT {
            OvertakeEffect::InVain
        } else if self.is_overtaken_enough(seg) {
            OvertakeEffect::Due
        } else if self.compat == Compat::Go {
            OvertakeEffect::Hint {
                last: self.resend == 0,
            }
        } else {
            OvertakeEffect::No
        }
    }

    /// Returns the reason to send the segment again, if there is one; `quiet` is true if the flush
    /// has nothing new.
    pub(crate) fn resend_reason(
        &self,
        seg: &SendSegment,
        now: u64,
        quiet: bool,
    ) -> Option<SendReason> {
        let timed_out = now >= self.deadline(seg);
        let may = seg.transmissions <= FAST_LIMIT;
        let fast = may && self.is_overtaken_enough(seg);
        let early = may && quiet && seg.overtaken > 0 && self.compat == Compat::Go;
        match self.compat {
            Compat::C if timed_out => Some(SendReason::Timeout),
            _ if fast => Some(SendReason::Fast),
            _ if early => Some(SendReason::Early),
            _ => timed_out.then_some(SendReason::Timeout),
        }
    }

    /// Records a transmission at `now` with an estimate of `rto`. Returns the number of
    /// transmissions so far.
    pub(crate) fn record_sent(
        &mut self,
        seg: &mut SendSegment,
        why: SendReason,
        now: u64,
        rto: u32,
    ) -> u16 {
        let patient = self.nodelay == 0;
        let mut slack = 0;
        seg.rto = match (why, self.compat) {
            (SendReason::New, Compat::C) => {
                slack = if patient { rto / 8 } else { 0 };
                rto
            }
            (SendReason::Timeout, Compat::C) => {
                seg.rto
                    + match self.nodelay {
                        0 => seg.rto.max(rto),
                        1 => seg.rto / 2,
                        _ => rto / 2,
                    }
            }
            (SendReason::Fast | SendReason::Early, Compat::C) => seg.rto,
            (SendReason::Timeout, Compat::Go) => seg.rto + if patient { rto } else { rto / 2 },
            (SendReason::New | SendReason::Fast | SendReason::Early, Compat::Go) => rto,
        }
        .min(RTO_MAX);
        seg.resend_at = now + u64::from(seg.rto + slack);
        seg.ts = low_u32(now).wrapping_add(self.origin);
        self.send_count = self.send_count.wrapping_add(1);
        seg.send_number = self.send_count;
        seg.transmissions = seg.transmissions.saturating_add(1);
        // The counted acknowledgements were evidence against older transmissions.
        seg.overtaken = 0;
        seg.transmissions
    }

    /// True if the segment was overtaken as often as configured.
    const fn is_overtaken_enough(&self, seg: &SendSegment) -> bool {
        self.resend > 0 && seg.overtaken >= self.resend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(compat: Compat, nodelay: u8) -> ResendRules {
        ResendRules {
            compat,
            nodelay,
            resend: 2,
            origin: 0,
            send_count: u32::MAX - 1,
            latest_arrived: u32::MAX - 1,
            progress_at: 0,
        }
    }

    /// Returns the waits after six transmissions without an answer, with an estimate of 100 ms.
    fn waits(compat: Compat, nodelay: u8) -> [u64; 6] {
        let mut rules = rules(compat, nodelay);
        let mut seg = SendSegment::default();
        let mut now = 0;
        [0; 6].map(|_| {
            let why = match seg.transmissions {
                0 => Some(SendReason::New),
                _ => rules.resend_reason(&seg, now, true),
            };
            rules.record_sent(&mut seg, why.unwrap(), now, 100);
            assert_eq!(rules.resend_reason(&seg, seg.resend_at - 1, true), None);
            let wait = seg.resend_at - now;
            now = seg.resend_at;
            wait
        })
    }

    #[test]
    fn patience_by_family_and_setting() {
        assert_eq!(waits(Compat::C, 0), [112, 200, 400, 800, 1600, 3200]);
        assert_eq!(waits(Compat::C, 1), [100, 150, 225, 337, 505, 757]);
        assert_eq!(waits(Compat::C, 2), [100, 150, 200, 250, 300, 350]);
        assert_eq!(waits(Compat::Go, 0), [100, 200, 300, 400, 500, 600]);
        assert_eq!(waits(Compat::Go, 1), [100, 150, 200, 250, 300, 350]);
    }

    #[test]
    fn what_is_queued_is_not_late() {
        for compat in [Compat::C, Compat::Go] {
            let mut rules = rules(compat, 1);
            let [old, lost, young] = [(); 3].map(|()| {
                let mut seg = SendSegment::default();
                rules.record_sent(&mut seg, SendReason::New, 0, 100);
                seg
            });
            rules.record_arrival(&old, None, 90);
            let (late, queued) = match compat {
                Compat::C => (100, 100),
                Compat::Go => (190, 190),
            };
            assert_eq!(
                (rules.deadline(&lost), rules.deadline(&young)),
                (late, queued)
            );
            rules.record_arrival(&young, None, 95);
            assert_eq!(rules.deadline(&lost), 100, "younger ones have overtaken it");
        }
    }

    #[test]
    fn overtaking_needs_what_was_sent_later() {
        for compat in [Compat::C, Compat::Go] {
            let mut rules = rules(compat, 1);
            // Three are sent in the same millisecond.
            let [before, mut hole, after] = [(); 3].map(|()| {
                let mut seg = SendSegment::default();
                rules.record_sent(&mut seg, SendReason::New, 50, 100);
                seg
            });
            let early = AckEvidence::new(&before, 50);
            assert_eq!(rules.count_overtake(&mut hole, &early), OvertakeEffect::No);
            let unclear = AckEvidence::new(&after, 49);
            assert_eq!(
                rules.count_overtake(&mut hole, &unclear),
                OvertakeEffect::No
            );

            let late = AckEvidence::new(&after, 50);
            let hint = match compat {
                Compat::C => OvertakeEffect::No,
                Compat::Go => OvertakeEffect::Hint { last: false },
            };
            assert_eq!(rules.count_overtake(&mut hole, &late), hint);
            assert_eq!(rules.resend_reason(&hole, 60, false), None);
            let early = (compat == Compat::Go).then_some(SendReason::Early);
            assert_eq!(rules.resend_reason(&hole, 60, true), early);
            let later = AckEvidence::new(&after, 51);
            assert_eq!(rules.count_overtake(&mut hole, &later), OvertakeEffect::Due);
            assert_eq!(
                rules.resend_reason(&hole, 60, false),
                Some(SendReason::Fast)
            );
            let both = match compat {
                Compat::C => SendReason::Timeout,
                Compat::Go => SendReason::Fast,
            };
            assert_eq!(rules.resend_reason(&hole, 150, false), Some(both));
            rules.record_sent(&mut hole, SendReason::Fast, 50, 100);
            assert_eq!(rules.resend_reason(&hole, 61, true), None);
            assert_eq!(
                rules.count_overtake(&mut hole, &late),
                OvertakeEffect::No,
                "old evidence"
            );
            hole.transmissions = FAST_LIMIT + 1;
            assert_eq!(
                rules.count_overtake(&mut hole, &later),
                OvertakeEffect::InVain
            );
        }
    }
}
