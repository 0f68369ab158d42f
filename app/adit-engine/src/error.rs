//! Who failed, where, and what the client is told: one table.

use std::io;

use adit_socks::Reply;
use adit_wire::Broken;

/// Why no stream to a target could be opened.
#[derive(Debug, thiserror::Error)]
#[error("{stage}: {why}")]
pub struct DialError {
    /// The step that failed.
    pub stage: Stage,
    /// The party at fault.
    pub fault: Fault,
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

/// The party at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The client asked for something impossible.
    Client,
    /// The target or a hop does not answer as it should.
    Upstream,
    /// Our rules forbid it.
    Policy,
    /// Our own machine is short of something.
    Local,
}

impl DialError {
    /// An error of a step, with the fault that its kind tells.
    #[must_use]
    pub fn new(stage: Stage, why: io::Error) -> Self {
        let fault = match why.kind() {
            io::ErrorKind::PermissionDenied => Fault::Policy,
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::TimedOut
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidData => Fault::Upstream,
            io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => Fault::Client,
            _ => Fault::Local,
        };
        Self { stage, fault, why }
    }

    /// Forbidden by our rules.
    #[must_use]
    pub fn denied(what: impl Into<String>) -> Self {
        Self {
            stage: Stage::Route,
            fault: Fault::Policy,
            why: io::Error::new(io::ErrorKind::PermissionDenied, what.into()),
        }
    }

    /// Something this listener or chain cannot do.
    #[must_use]
    pub fn unsupported(what: &'static str) -> Self {
        Self {
            stage: Stage::Route,
            fault: Fault::Client,
            why: io::Error::new(io::ErrorKind::Unsupported, what),
        }
    }

    /// The SOCKS5 reply for this error (RFC 1928 section 6).
    #[must_use]
    pub fn socks_reply(&self) -> Reply {
        match self.why.kind() {
            io::ErrorKind::PermissionDenied => Reply::NotAllowed,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
                Reply::NetworkUnreachable
            }
            io::ErrorKind::HostUnreachable => Reply::HostUnreachable,
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted => Reply::ConnectionRefused,
            io::ErrorKind::TimedOut => Reply::TtlExpired,
            io::ErrorKind::Unsupported if self.fault == Fault::Client => Reply::CommandNotSupported,
            io::ErrorKind::Unsupported => Reply::AddressTypeNotSupported,
            _ => match self.why.raw_os_error() {
                // EAFNOSUPPORT and EPROTONOSUPPORT have no kind of their own.
                Some(97 | 93) if cfg!(target_os = "linux") => Reply::AddressTypeNotSupported,
                _ => Reply::GeneralFailure,
            },
        }
    }

    /// The HTTP status for this error.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        match (self.fault, self.why.kind()) {
            (Fault::Policy, _) => 403,
            (_, io::ErrorKind::TimedOut) => 504,
            (Fault::Local, _) => 503,
            _ => 502,
        }
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
            Stage::Dialect { .. } => {
                // What it refuses it has judged; a target that is not there is not its fault.
                let answered = matches!(
                    self.why.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::HostUnreachable
                        | io::ErrorKind::NetworkUnreachable
                );
                !answered && self.refusal().is_none()
            }
            Stage::Route | Stage::Resolve | Stage::Connect => false,
        }
    }

    /// A short name for logs and metrics.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self.fault {
            Fault::Client => "client",
            Fault::Upstream => "upstream",
            Fault::Policy => "policy",
            Fault::Local => "local",
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

    #[test]
    fn every_dial_error_has_the_reply_of_the_table() {
        use io::ErrorKind as K;
        for (kind, reply, status) in [
            (K::ConnectionRefused, Reply::ConnectionRefused, 502),
            (K::TimedOut, Reply::TtlExpired, 504),
            (K::HostUnreachable, Reply::HostUnreachable, 502),
            (K::NetworkUnreachable, Reply::NetworkUnreachable, 502),
            (K::PermissionDenied, Reply::NotAllowed, 403),
            (K::OutOfMemory, Reply::GeneralFailure, 503),
        ] {
            let e = DialError::new(Stage::Connect, kind.into());
            assert_eq!(
                (e.socks_reply(), e.http_status()),
                (reply, status),
                "{kind:?}"
            );
        }
        let e = DialError::unsupported("bind");
        assert_eq!(e.socks_reply(), Reply::CommandNotSupported);
        let e = DialError::new(Stage::Connect, io::Error::from_raw_os_error(97));
        assert_eq!(e.socks_reply(), Reply::AddressTypeNotSupported);
    }
}
