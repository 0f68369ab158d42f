//! Durations of the stages of a listener's connections, and counts of those that end before they are open.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adit_stream::TrafficMeter;
use adit_wire::ProtocolError;

use crate::duration_histogram::{DurationHistogram, HistogramStats};
use crate::user_registry::UserRefusal;
use crate::{AcceptError, FailureCause};

/// The cause for which a listener serves no request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectCause {
    /// The client closed the connection before its request was complete.
    Closed,
    /// The connection was reset.
    ConnectionReset,
    /// The request was not complete in time.
    TimedOut,
    /// A newer connection needed the slot.
    Evicted,
    /// The bytes are not a request, or not an allowed one.
    Malformed,
    /// The user name or the password is wrong.
    LoginRefused,
    /// The client caused a key exchange of SSH, and did not log in.
    AbandonedKeyExchange,
    /// The key is wrong, or bytes were altered.
    Unauthentic,
    /// The request was seen before.
    Replayed,
    /// The clock of the client differs by too much.
    Clock,
    /// The source has failed to log in too often.
    Blocked,
    /// A limit on connections or associations is reached.
    Exhausted,
    /// The quota of the user is used up.
    OverQuota,
    /// The time of the user has expired.
    Expired,
    /// The user has too many open sessions.
    TooManySessions,
    /// The user is connected from too many addresses.
    TooManyDevices,
    /// Any other error of the system.
    System,
}

impl RejectCause {
    /// All causes.
    pub const ALL: [Self; 17] = [
        Self::Closed,
        Self::ConnectionReset,
        Self::TimedOut,
        Self::Evicted,
        Self::Malformed,
        Self::LoginRefused,
        Self::AbandonedKeyExchange,
        Self::Unauthentic,
        Self::Replayed,
        Self::Clock,
        Self::Blocked,
        Self::Exhausted,
        Self::OverQuota,
        Self::Expired,
        Self::TooManySessions,
        Self::TooManyDevices,
        Self::System,
    ];

    /// Returns the cause of an error.
    #[must_use]
    pub fn from_error(why: &AcceptError) -> Self {
        match why {
            AcceptError::Eof => Self::Closed,
            AcceptError::Deadline => Self::TimedOut,
            AcceptError::Evicted => Self::Evicted,
            AcceptError::Refused(_) => Self::Malformed,
            AcceptError::Login(_) => Self::LoginRefused,
            AcceptError::AbandonedKeyExchange(_) => Self::AbandonedKeyExchange,
            AcceptError::Rejected(ProtocolError::Truncated(_)) => Self::Closed,
            AcceptError::Rejected(why) => Self::from_protocol_error(*why),
            AcceptError::Io(why) => Self::from_io_error(why),
        }
    }

    /// Returns the cause of an error in a datagram, or in a stream that has not ended.
    fn from_protocol_error(why: ProtocolError) -> Self {
        match why {
            ProtocolError::Unauthentic => Self::Unauthentic,
            ProtocolError::Replayed => Self::Replayed,
            ProtocolError::Clock { .. } => Self::Clock,
            _ => Self::Malformed,
        }
    }

    /// Returns the cause of a user's limit.
    pub(crate) const fn from_refusal(why: UserRefusal) -> Self {
        match why {
            UserRefusal::OverQuota => Self::OverQuota,
            UserRefusal::Expired => Self::Expired,
            UserRefusal::TooManySessions => Self::TooManySessions,
            UserRefusal::TooManyDevices => Self::TooManyDevices,
        }
    }

    /// Returns the cause for an I/O error.
    fn from_io_error(why: &io::Error) -> Self {
        match FailureCause::from_io_error(why) {
            FailureCause::Closed => Self::Closed,
            FailureCause::ConnectionReset => Self::ConnectionReset,
            FailureCause::TimedOut => Self::TimedOut,
            FailureCause::Malformed => Self::Malformed,
            FailureCause::Exhausted => Self::Exhausted,
            _ => Self::System,
        }
    }

    /// Returns a short name for metrics: that of the [`FailureCause`], if there is one of this meaning.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Closed => FailureCause::Closed.label(),
            Self::ConnectionReset => FailureCause::ConnectionReset.label(),
            Self::TimedOut => FailureCause::TimedOut.label(),
            Self::Evicted => "evicted",
            Self::Malformed => FailureCause::Malformed.label(),
            Self::LoginRefused => FailureCause::LoginRefused.label(),
            Self::AbandonedKeyExchange => "abandoned-key-exchange",
            Self::Unauthentic => "unauthentic",
            Self::Replayed => "replayed",
            Self::Clock => "clock",
            Self::Blocked => "blocked",
            Self::Exhausted => FailureCause::Exhausted.label(),
            Self::OverQuota => FailureCause::OverQuota.label(),
            Self::Expired => FailureCause::Expired.label(),
            Self::TooManySessions => FailureCause::TooManySessions.label(),
            Self::TooManyDevices => FailureCause::TooManyDevices.label(),
            Self::System => FailureCause::System.label(),
        }
    }

    /// Returns true if the client has not proved that it may use the listener.
    #[must_use]
    pub const fn is_authentication_failure(self) -> bool {
        matches!(
            self,
            Self::LoginRefused
                | Self::AbandonedKeyExchange
                | Self::Unauthentic
                | Self::Replayed
                | Self::Clock
                | Self::Blocked
        )
    }
}

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

    #[test]
    fn errors_have_their_causes() {
        let rejected = |why| RejectCause::from_error(&AcceptError::Rejected(why));
        assert_eq!(
            rejected(ProtocolError::Unauthentic),
            RejectCause::Unauthentic
        );
        assert_eq!(rejected(ProtocolError::Replayed), RejectCause::Replayed);
        assert_eq!(
            rejected(ProtocolError::Clock { skew: 60 }),
            RejectCause::Clock
        );
        assert_eq!(
            rejected(ProtocolError::Truncated("it")),
            RejectCause::Closed
        );
        assert_eq!(
            rejected(ProtocolError::Malformed("it")),
            RejectCause::Malformed
        );
        let reset = AcceptError::Io(io::ErrorKind::ConnectionReset.into());
        assert_eq!(
            RejectCause::from_error(&reset),
            RejectCause::ConnectionReset
        );
        let login = AcceptError::Login("no".to_owned());
        assert!(RejectCause::from_error(&login).is_authentication_failure());
        assert!(!RejectCause::from_error(&AcceptError::Eof).is_authentication_failure());
    }
}
