//! Durations of the stages of a listener's connections, and counts of those that end before they are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adit_stream::TrafficMeter;
use adit_wire::ProtocolError;

use crate::duration_histogram::{DurationHistogram, HistogramStats};
use crate::{FailureCause, RejectCause};

/// Everything that counts for a listener, and continues in the one that replaces it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListenerMeters {
    /// Payload and sessions.
    pub(crate) traffic: Arc<TrafficMeter>,
    /// Stages of connections.
    pub(crate) stages: Arc<StageMeter>,
}

/// Measures the stages of a listener's connections.
#[derive(Debug, Default)]
pub(crate) struct StageMeter {
    /// From the accepted connection to the authenticated request.
    pub(crate) handshake: DurationHistogram,
    /// From the request to the open path to its destination.
    pub(crate) dial: DurationHistogram,
    /// From the request to the first byte from its destination.
    pub(crate) first_byte: DurationHistogram,
    rejects: [AtomicU64; RejectCause::ALL.len()],
    datagram_rejects: [AtomicU64; RejectCause::ALL.len()],
    dial_failures: [AtomicU64; FailureCause::ALL.len()],
}

/// The durations and counts of a listener at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageStats {
    /// From the accepted connection to the authenticated request, once per connection.
    pub handshake: HistogramStats,
    /// From the request to the open path to its destination.
    pub dial: HistogramStats,
    /// From the request to the first byte from its destination.
    pub first_byte: HistogramStats,
    /// Connections without a request that is served, by cause.
    pub rejects: Vec<(RejectCause, u64)>,
    /// Datagrams of clients that are not forwarded, by cause.
    pub datagram_rejects: Vec<(RejectCause, u64)>,
    /// Requests whose destination could not be reached, by cause.
    pub dial_failures: Vec<(FailureCause, u64)>,
}

impl StageMeter {
    /// Counts a connection that is not served.
    pub(crate) fn count_reject(&self, cause: RejectCause) {
        count(&RejectCause::ALL, &self.rejects, &cause);
    }

    /// Counts a datagram that no key opens, or that is otherwise not allowed. Those of sessions that another process
    /// serves are none.
    pub(crate) fn count_rejected_datagram(&self, why: ProtocolError) {
        if why != ProtocolError::Elsewhere {
            self.count_datagram_reject(RejectCause::from_protocol_error(why));
        }
    }

    /// Counts a datagram that is not forwarded.
    pub(crate) fn count_datagram_reject(&self, cause: RejectCause) {
        count(&RejectCause::ALL, &self.datagram_rejects, &cause);
    }

    /// Counts a request whose destination could not be reached.
    pub(crate) fn count_dial_failure(&self, cause: FailureCause) {
        count(&FailureCause::ALL, &self.dial_failures, &cause);
    }

    /// Returns the current durations and counts.
    pub(crate) fn stats(&self) -> StageStats {
        StageStats {
            handshake: self.handshake.stats(),
            dial: self.dial.stats(),
            first_byte: self.first_byte.stats(),
            rejects: counts(&RejectCause::ALL, &self.rejects),
            datagram_rejects: counts(&RejectCause::ALL, &self.datagram_rejects),
            dial_failures: counts(&FailureCause::ALL, &self.dial_failures),
        }
    }
}

fn count<T: PartialEq>(all: &[T], counters: &[AtomicU64], cause: &T) {
    let at = all.iter().position(|known| known == cause);
    debug_assert!(at.is_some(), "a cause is not among all causes");
    if let Some(counter) = at.and_then(|at| counters.get(at)) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn counts<T: Copy>(all: &[T], counters: &[AtomicU64]) -> Vec<(T, u64)> {
    let each = all.iter().zip(counters);
    each.map(|(cause, counter)| (*cause, counter.load(Ordering::Relaxed)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_registry::UserRefusal;

    #[test]
    fn each_cause_has_a_counter_and_a_label_of_its_own() {
        let meter = StageMeter::default();
        for (cause, times) in RejectCause::ALL.into_iter().zip(1..) {
            (0..times).for_each(|_| meter.count_reject(cause));
        }
        for (cause, times) in FailureCause::ALL.into_iter().zip(1..) {
            (0..times).for_each(|_| meter.count_dial_failure(cause));
        }
        let stats = meter.stats();
        assert!(stats.rejects.iter().map(|(_, n)| *n).eq(1..=17));
        assert!(stats.datagram_rejects.iter().all(|(_, n)| *n == 0));
        assert!(stats.dial_failures.iter().map(|(_, n)| *n).eq(1..=23));
        let mut labels = RejectCause::ALL.map(RejectCause::label);
        labels.sort_unstable();
        assert!(labels.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn datagrams_are_counted_apart_and_those_of_another_process_are_not() {
        let meter = StageMeter::default();
        meter.count_rejected_datagram(ProtocolError::Elsewhere);
        meter.count_rejected_datagram(ProtocolError::Truncated("it"));
        meter.count_rejected_datagram(ProtocolError::Replayed);
        meter.count_datagram_reject(RejectCause::from_refusal(UserRefusal::Expired));
        let stats = meter.stats();
        assert!(stats.rejects.iter().all(|(_, n)| *n == 0));
        let counted = stats.datagram_rejects.iter().filter(|(_, n)| *n > 0);
        let counted: Vec<_> = counted.map(|(cause, n)| (cause.label(), *n)).collect();
        assert_eq!(counted, [("malformed", 1), ("replayed", 1), ("expired", 1)]);
    }
}
