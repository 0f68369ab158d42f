//! Errors of accepting a request and of opening a stream, with the step that failed.

use std::io;

use adit_wire::Broken;

use crate::cause::{Cause, Party};

/// The error of an attempt to open a stream to a target.
#[derive(Debug, thiserror::Error)]
#[error("{stage}: {why}")]
pub struct DialError {
    /// The step that failed.
    pub stage: Stage,
    /// The cause, typed.
    pub cause: Cause,
    /// The error of the system, or the message of the peer.
    pub why: io::Error,
}

/// The step of a connection that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stage {
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
    /// Creates an error with the [`Cause`] that `why` corresponds to.
    #[must_use]
    pub fn new(stage: Stage, why: io::Error) -> Self {
        let cause = Cause::of(&why);
        Self { stage, cause, why }
    }

    /// Creates the error of a name that was not found, or whose lookup got no answer.
    #[must_use]
    pub(crate) fn unresolved(why: io::Error) -> Self {
        let cause = match Cause::of(&why) {
            Cause::HostUnreachable => Cause::UnknownName,
            other => other,
        };
        Self {
            stage: Stage::Resolve,
            cause,
            why,
        }
    }

    /// Creates the error of a request that the rules forbid.
    #[must_use]
    pub fn denied(what: impl Into<String>) -> Self {
        Self {
            stage: Stage::Route,
            cause: Cause::Denied,
            why: io::Error::new(io::ErrorKind::PermissionDenied, what.into()),
        }
    }

    /// Creates the error of a request that this listener or chain does not support.
    #[must_use]
    pub fn unsupported(what: &'static str) -> Self {
        Self {
            stage: Stage::Route,
            cause: Cause::Unsupported,
            why: io::Error::new(io::ErrorKind::Unsupported, what),
        }
    }

    /// Creates the error of a limit that is reached.
    #[must_use]
    pub fn exhausted(what: &'static str) -> Self {
        Self {
            stage: Stage::Route,
            cause: Cause::Exhausted,
            why: io::Error::new(io::ErrorKind::QuotaExceeded, what),
        }
    }

    /// Creates the error of a hop that did not answer in time.
    #[must_use]
    pub(crate) fn late(hop: &str) -> Self {
        Self {
            stage: Stage::Dialect {
                hop: hop.to_owned(),
            },
            cause: Cause::TimedOut,
            why: io::Error::new(io::ErrorKind::TimedOut, "no answer in time"),
        }
    }

    /// Attributes an error in reaching the server of `hop` to that server instead of the client's target.
    #[must_use]
    pub(crate) fn on_the_way_to(mut self, hop: &str) -> Self {
        if matches!(self.stage, Stage::Connect | Stage::Resolve) {
            self.stage = Stage::Dial {
                hop: hop.to_owned(),
            };
        }
        self
    }

    /// Returns true if the error means that the server of `hop` is unreachable. If another hop's server is
    /// unreachable, that hop reports it; an error in the handshake with that server is about the next hop.
    #[must_use]
    pub(crate) fn is_unreachable(&self, hop: &str) -> bool {
        let ours = match &self.stage {
            Stage::Dial { hop: one } => one == hop,
            Stage::Dialect { .. } | Stage::Route | Stage::Resolve | Stage::Connect => true,
        };
        ours && self.cause.party() == Party::Upstream
    }

    /// Returns the reason that a hop's server stated for its refusal, for the body of an HTTP failure.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        match self.why.get_ref()?.downcast_ref::<Broken>()? {
            Broken::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Returns true if the hop's server is likely at fault, rather than the request.
    pub(crate) fn blames_hop(&self) -> bool {
        match self.stage {
            Stage::Dial { .. } => true,
            // A refusal is a decision about the request, and an unreachable target is not the server's fault.
            Stage::Dialect { .. } => !self.cause.is_of_the_target() && self.refusal().is_none(),
            Stage::Route | Stage::Resolve | Stage::Connect => false,
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
    Wasted(String),
    /// A keyed listener rejected the client and handled it according to its reject policy.
    #[error("rejected: {0}")]
    Rejected(Broken),
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_dialogue(cause: Cause, why: io::Error) -> DialError {
        let hop = "socks5://proxy:1080".to_owned();
        let stage = Stage::Dialect { hop };
        DialError { stage, cause, why }
    }

    #[test]
    fn a_server_is_not_blamed_for_what_it_says_of_a_target() {
        let said = || io::Error::other(Broken::Refused("TTL expired"));
        assert!(!in_dialogue(Cause::TimedOut, said()).blames_hop());
        for cause in [Cause::UnknownName, Cause::DeniedByServer] {
            assert!(!in_dialogue(cause, io::Error::other("no")).blames_hop());
        }
        // Its own silence, its own shortage, and what it makes of us.
        for cause in [
            Cause::TimedOut,
            Cause::FailedAtServer,
            Cause::LoginRefused,
            Cause::Untrusted,
        ] {
            assert!(in_dialogue(cause, io::Error::other("no")).blames_hop());
        }
    }

    #[test]
    fn a_server_behind_another_is_unreachable_if_that_says_so() {
        let refused = || io::Error::other("connection refused");
        let told = in_dialogue(Cause::ConnectionRefused, refused());
        assert!(told.is_unreachable("ss://next:8388"));
        let hop = "socks5://proxy:1080".to_owned();
        let dial = DialError::new(Stage::Dial { hop }, io::ErrorKind::ConnectionRefused.into());
        assert!(dial.is_unreachable("socks5://proxy:1080"));
        assert!(!dial.is_unreachable("ss://next:8388"), "told by that hop");
        assert!(!DialError::denied("a rule").is_unreachable("ss://next:8388"));
    }
}
