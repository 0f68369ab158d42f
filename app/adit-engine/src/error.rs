//! Errors of accepting a request and of opening a stream, with the step that failed.

use std::io;

use adit_wire::ProtocolError;

use crate::failure_cause::{FailureCause, FaultSide};
use crate::user_registry::UserRefusal;

/// The error of an attempt to open a stream to a target.
#[derive(Debug, thiserror::Error)]
#[error("{stage}: {source_error}")]
pub struct DialError {
    /// The step that failed.
    pub stage: DialStage,
    /// The cause, typed.
    pub cause: FailureCause,
    /// The error of the system, or the message of the peer.
    pub source_error: io::Error,
}

/// The step of a connection that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialStage {
    /// Choosing the route.
    #[error("route")]
    Route,
    /// Looking up a name.
    #[error("resolve")]
    Resolve,
    /// Connecting to the target itself.
    #[error("connect")]
    Connect,
    /// Connecting to the server of a hop.
    #[error("connect to {hop}")]
    Dial {
        /// The hop, as `dialect://host:port`.
        hop: String,
    },
    /// The handshake with the server of a hop.
    #[error("handshake with {hop}")]
    Dialect {
        /// The hop, as `dialect://host:port`.
        hop: String,
    },
}

impl DialError {
    /// Creates an error with the [`FailureCause`] that `why` corresponds to.
    #[must_use]
    pub fn new(stage: DialStage, source_error: io::Error) -> Self {
        let cause = FailureCause::from_io_error(&source_error);
        Self {
            stage,
            cause,
            source_error,
        }
    }

    /// Creates the error of a name that was not found, or whose lookup got no answer.
    #[must_use]
    pub(crate) fn from_lookup_error(source_error: io::Error) -> Self {
        let cause = match FailureCause::from_io_error(&source_error) {
            FailureCause::HostUnreachable => FailureCause::UnknownName,
            other => other,
        };
        Self {
            stage: DialStage::Resolve,
            cause,
            source_error,
        }
    }

    /// Creates the error of a request that the rules forbid.
    #[must_use]
    pub fn denied_by_rule(what: impl Into<String>) -> Self {
        Self {
            stage: DialStage::Route,
            cause: FailureCause::Denied,
            source_error: io::Error::new(io::ErrorKind::PermissionDenied, what.into()),
        }
    }

    /// Creates the error of a request that this listener or chain does not support.
    #[must_use]
    pub fn unsupported(what: &'static str) -> Self {
        Self {
            stage: DialStage::Route,
            cause: FailureCause::Unsupported,
            source_error: io::Error::new(io::ErrorKind::Unsupported, what),
        }
    }

    /// Creates the error of a limit that is reached.
    #[must_use]
    pub fn limit_reached(what: &'static str) -> Self {
        Self {
            stage: DialStage::Route,
            cause: FailureCause::Exhausted,
            source_error: io::Error::new(io::ErrorKind::QuotaExceeded, what),
        }
    }

    /// Creates the error of a user whose limits allow no further session.
    #[must_use]
    pub(crate) fn refused_user(why: UserRefusal) -> Self {
        Self {
            stage: DialStage::Route,
            cause: why.cause(),
            source_error: io::Error::new(io::ErrorKind::QuotaExceeded, why.text()),
        }
    }

    /// Creates the error of datagrams that another node of a fleet has seen.
    #[must_use]
    pub(crate) fn replayed() -> Self {
        Self {
            stage: DialStage::Route,
            cause: FailureCause::Denied,
            source_error: io::Error::new(io::ErrorKind::InvalidData, ProtocolError::Replayed),
        }
    }

    /// Creates the error of a hop that did not answer in time.
    #[must_use]
    pub(crate) fn hop_timed_out(hop: &str) -> Self {
        Self {
            stage: DialStage::Dialect {
                hop: hop.to_owned(),
            },
            cause: FailureCause::TimedOut,
            source_error: io::Error::new(io::ErrorKind::TimedOut, "no answer in time"),
        }
    }

    /// Attributes an error in reaching the server of `hop` to that server instead of the client's target.
    #[must_use]
    pub(crate) fn attribute_to_hop(mut self, hop: &str) -> Self {
        if matches!(self.stage, DialStage::Connect | DialStage::Resolve) {
            self.stage = DialStage::Dial {
                hop: hop.to_owned(),
            };
        }
        self
    }

    /// Returns true if the error means that the server of `hop` is unreachable. If another hop's server is
    /// unreachable, that hop reports it; an error in the handshake with that server is about the next hop.
    #[must_use]
    pub(crate) fn is_hop_unreachable(&self, hop: &str) -> bool {
        let ours = match &self.stage {
            DialStage::Dial { hop: one } => one == hop,
            DialStage::Dialect { .. }
            | DialStage::Route
            | DialStage::Resolve
            | DialStage::Connect => true,
        };
        ours && self.cause.fault_side() == FaultSide::Upstream
    }

    /// Returns the reason that a hop's server stated for its refusal, for the body of an HTTP failure.
    #[must_use]
    pub fn server_refusal(&self) -> Option<&'static str> {
        match self
            .source_error
            .get_ref()?
            .downcast_ref::<ProtocolError>()?
        {
            ProtocolError::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Returns true if the hop's server is likely at fault, rather than the request.
    pub(crate) fn blames_hop(&self) -> bool {
        match self.stage {
            DialStage::Dial { .. } => true,
            // A refusal is a decision about the request, and an unreachable target is not the server's fault.
            DialStage::Dialect { .. } => {
                !self.cause.concerns_target() && self.server_refusal().is_none()
            }
            DialStage::Route | DialStage::Resolve | DialStage::Connect => false,
        }
    }
}

/// The error of a client's request. The client has been answered already if it gets an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The client closed the connection before its request was complete.
    #[error("the client closed before its request was complete")]
    Eof,
    /// The client did not finish its request in time.
    #[error("the request did not arrive in time")]
    Deadline,
    /// Too many clients had not completed their request, and this connection was the oldest of them.
    #[error("evicted to make room for newer connections")]
    Evicted,
    /// The client's bytes are not a valid request, or the request is not allowed.
    #[error("{0}")]
    Refused(String),
    /// The client's user name or password is wrong.
    #[error("{0}")]
    Login(String),
    /// The client caused a key exchange, and closed the connection without a login.
    #[error("{0}")]
    AbandonedKeyExchange(String),
    /// A keyed listener rejected the client and handled it according to its reject policy.
    #[error("rejected: {0}")]
    Rejected(ProtocolError),
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_dialogue(cause: FailureCause, why: io::Error) -> DialError {
        let hop = "socks5://proxy:1080".to_owned();
        let stage = DialStage::Dialect { hop };
        DialError {
            stage,
            cause,
            source_error: why,
        }
    }

    #[test]
    fn a_server_is_not_blamed_for_what_it_says_of_a_target() {
        let said = || io::Error::other(ProtocolError::Refused("TTL expired"));
        assert!(!in_dialogue(FailureCause::TimedOut, said()).blames_hop());
        for cause in [FailureCause::UnknownName, FailureCause::DeniedByServer] {
            assert!(!in_dialogue(cause, io::Error::other("no")).blames_hop());
        }
        // Its own silence, its own shortage, and what it makes of us.
        for cause in [
            FailureCause::TimedOut,
            FailureCause::FailedAtServer,
            FailureCause::LoginRefused,
            FailureCause::Untrusted,
        ] {
            assert!(in_dialogue(cause, io::Error::other("no")).blames_hop());
        }
    }

    #[test]
    fn a_server_behind_another_is_unreachable_if_that_says_so() {
        let refused = || io::Error::other("connection refused");
        let told = in_dialogue(FailureCause::ConnectionRefused, refused());
        assert!(told.is_hop_unreachable("ss://next:8388"));
        let hop = "socks5://proxy:1080".to_owned();
        let dial = DialError::new(
            DialStage::Dial { hop },
            io::ErrorKind::ConnectionRefused.into(),
        );
        assert!(dial.is_hop_unreachable("socks5://proxy:1080"));
        assert!(
            !dial.is_hop_unreachable("ss://next:8388"),
            "told by that hop"
        );
        assert!(!DialError::denied_by_rule("a rule").is_hop_unreachable("ss://next:8388"));
    }
}
