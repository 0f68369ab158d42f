//! What failed, and where.

use std::io;

use adit_wire::Broken;

use crate::cause::{Cause, Party};

/// Why no stream to a target could be opened.
#[derive(Debug, thiserror::Error)]
#[error("{stage}: {why}")]
pub struct DialError {
    /// The step that failed.
    pub stage: Stage,
    /// Why it failed.
    pub cause: Cause,
    /// What the system or the peer said.
    pub why: io::Error,
}

/// The step of a connection that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stage {
    /// The router.
    #[error("route")]
    Route,
    /// Looking up a name.
    #[error("resolve")]
    Resolve,
    /// Connecting to the target itself.
    #[error("connect")]
    Connect,
    /// Connecting to a hop's server.
    #[error("connect to {hop}")]
    Dial {
        /// The hop, as `dialect://host:port`.
        hop: String,
    },
    /// The dialogue with a hop's server.
    #[error("dialogue with {hop}")]
    Dialect {
        /// The hop, as `dialect://host:port`.
        hop: String,
    },
}

impl DialError {
    /// What the system said in a step, with the cause that its error stands for.
    #[must_use]
    pub fn new(stage: Stage, why: io::Error) -> Self {
        let cause = Cause::of(&why);
        Self { stage, cause, why }
    }

    /// A name was not found, or nobody has told its addresses.
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

    /// Forbidden by our rules.
    #[must_use]
    pub fn denied(what: impl Into<String>) -> Self {
        Self {
            stage: Stage::Route,
            cause: Cause::Denied,
            why: io::Error::new(io::ErrorKind::PermissionDenied, what.into()),
        }
    }

    /// Something this listener or chain cannot do.
    #[must_use]
    pub fn unsupported(what: &'static str) -> Self {
        Self {
            stage: Stage::Route,
            cause: Cause::Unsupported,
            why: io::Error::new(io::ErrorKind::Unsupported, what),
        }
    }

    /// A limit of ours is reached.
    #[must_use]
    pub fn exhausted(what: &'static str) -> Self {
        Self {
            stage: Stage::Route,
            cause: Cause::Exhausted,
            why: io::Error::new(io::ErrorKind::QuotaExceeded, what),
        }
    }

    /// A hop has not opened the way in time.
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

    /// An error on the way to the server of `hop` concerns that server, not the client's target.
    #[must_use]
    pub(crate) fn on_the_way_to(mut self, hop: &str) -> Self {
        if matches!(self.stage, Stage::Connect | Stage::Resolve) {
            self.stage = Stage::Dial {
                hop: hop.to_owned(),
            };
        }
        self
    }

    /// Whether this means that the server of `hop` is not reached. Another hop's server that is not
    /// reached is told by that hop; what that server says in its dialogue is about the next one.
    #[must_use]
    pub(crate) fn is_unreachable(&self, hop: &str) -> bool {
        let ours = match &self.stage {
            Stage::Dial { hop: one } => one == hop,
            Stage::Dialect { .. } | Stage::Route | Stage::Resolve | Stage::Connect => true,
        };
        ours && self.cause.party() == Party::Upstream
    }

    /// What a hop's server has said in refusing, for the body of an HTTP failure.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        match self.why.get_ref()?.downcast_ref::<Broken>()? {
            Broken::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Whether a hop's server, and not what was asked of it, is likely to blame.
    pub(crate) fn blames_hop(&self) -> bool {
        match self.stage {
            Stage::Dial { .. } => true,
            // What it refuses it has judged; a target that is not there is not its fault.
            Stage::Dialect { .. } => !self.cause.is_of_the_target() && self.refusal().is_none(),
            Stage::Route | Stage::Resolve | Stage::Connect => false,
        }
    }
}

/// Why a client's request was not understood. The client has had its answer, if it gets one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The client closed before its request was complete.
    #[error("the client closed before its request was complete")]
    Eof,
    /// The client did not finish its request in time.
    #[error("the request did not come in time")]
    Deadline,
    /// Too many clients had not made their request, and this one was the oldest of them.
    #[error("newer connections needed its place")]
    Evicted,
    /// The client's bytes were refused.
    #[error("{0}")]
    Refused(String),
    /// The client's user and password are not known.
    #[error("{0}")]
    Login(String),
    /// The client had keys computed, and left without a login.
    #[error("{0}")]
    Wasted(String),
    /// A keyed listener rejected the client; it was treated by the reject policy.
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
