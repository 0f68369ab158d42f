//! The typed cause for which a listener serves no request. [`FailureCause`] is that of a request whose destination cannot
//! be reached.

use std::io;

use adit_wire::ProtocolError;

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
    pub(crate) fn from_protocol_error(why: ProtocolError) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

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
