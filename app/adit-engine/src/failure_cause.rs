//! The typed cause of a failed connection to a destination or a hop; `RejectCause` is that of a client that is not served.
//! It is determined where the failure occurs, so that code that answers a client, tries another server or counts failures
//! does not examine texts or I/O error kinds.

use std::io;

use adit_socks::Reply;

/// The cause of a failed connection.
///
/// A hop that passes on an error of a more distant server keeps its cause: the client of the hop learns
/// the same as it would from a direct connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureCause {
    /// The local rules forbid the request.
    Denied,
    /// This listener or chain does not support the request.
    Unsupported,
    /// This machine has no socket for addresses of this family.
    AddressFamily,
    /// The name has no address.
    UnknownName,
    /// There is no route to the host, or it does not answer.
    HostUnreachable,
    /// There is no route to the network.
    NetworkUnreachable,
    /// No process listens on the port.
    ConnectionRefused,
    /// The connection was reset.
    ConnectionReset,
    /// No answer arrived in time.
    TimedOut,
    /// A server closed the connection during the handshake.
    Closed,
    /// A server does not implement the protocol, or has a different key.
    Malformed,
    /// A hop's server failed to prove its identity.
    Untrusted,
    /// A hop's server and this client have no algorithm in common.
    Incompatible,
    /// A hop's server refused the login.
    LoginRefused,
    /// A hop's server forbids the request.
    DeniedByServer,
    /// A hop's server does not support the request.
    UnsupportedByServer,
    /// A hop's server failed without a specific reason.
    FailedAtServer,
    /// A limit of adit or of this machine is reached.
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

/// The party at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultSide {
    /// The client: its request is impossible.
    Client,
    /// The target or a hop: it does not answer as it should.
    Upstream,
    /// The local rules: they forbid the request.
    Policy,
    /// This machine: it lacks a resource.
    Local,
}

impl FailureCause {
    /// All causes.
    pub const ALL: [Self; 23] = [
        Self::Denied,
        Self::Unsupported,
        Self::AddressFamily,
        Self::UnknownName,
        Self::HostUnreachable,
        Self::NetworkUnreachable,
        Self::ConnectionRefused,
        Self::ConnectionReset,
        Self::TimedOut,
        Self::Closed,
        Self::Malformed,
        Self::Untrusted,
        Self::Incompatible,
        Self::LoginRefused,
        Self::DeniedByServer,
        Self::UnsupportedByServer,
        Self::FailedAtServer,
        Self::Exhausted,
        Self::OverQuota,
        Self::Expired,
        Self::TooManySessions,
        Self::TooManyDevices,
        Self::System,
    ];

    /// Returns the cause for an I/O error, or for the message of a peer that it contains.
    #[must_use]
    pub fn from_io_error(why: &io::Error) -> Self {
        use io::ErrorKind as K;
        match why.kind() {
            K::PermissionDenied => Self::Denied,
            K::NetworkUnreachable | K::NetworkDown => Self::NetworkUnreachable,
            K::HostUnreachable => Self::HostUnreachable,
            K::ConnectionRefused => Self::ConnectionRefused,
            K::ConnectionReset | K::ConnectionAborted => Self::ConnectionReset,
            K::TimedOut => Self::TimedOut,
            K::UnexpectedEof | K::BrokenPipe | K::NotConnected => Self::Closed,
            K::InvalidData => Self::Malformed,
            K::Unsupported | K::InvalidInput => Self::Unsupported,
            K::QuotaExceeded | K::OutOfMemory | K::AddrInUse | K::AddrNotAvailable => {
                Self::Exhausted
            }
            _ => Self::from_os_error_code(why.raw_os_error().unwrap_or_default()),
        }
    }

    /// Returns the cause for an OS error code that has no `ErrorKind` of its own.
    const fn from_os_error_code(code: i32) -> Self {
        if cfg!(target_os = "linux") {
            match code {
                // EAFNOSUPPORT, EPROTONOSUPPORT
                97 | 93 => return Self::AddressFamily,
                // ENFILE, EMFILE, ENOBUFS
                23 | 24 | 105 => return Self::Exhausted,
                _ => {}
            }
        }
        Self::System
    }

    /// Returns the party at fault.
    #[must_use]
    pub const fn fault_side(self) -> FaultSide {
        match self {
            Self::Denied
            | Self::OverQuota
            | Self::Expired
            | Self::TooManySessions
            | Self::TooManyDevices => FaultSide::Policy,
            Self::Unsupported => FaultSide::Client,
            Self::AddressFamily | Self::Exhausted | Self::System => FaultSide::Local,
            _ => FaultSide::Upstream,
        }
    }

    /// Returns true if the same request may succeed later without a change of configuration. Decisions of a
    /// rule, a key or a capability stay the same until a person changes them.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        !matches!(
            self,
            Self::Denied
                | Self::Unsupported
                | Self::AddressFamily
                | Self::Untrusted
                | Self::Incompatible
                | Self::LoginRefused
                | Self::DeniedByServer
                | Self::UnsupportedByServer
                | Self::OverQuota
                | Self::Expired
        )
    }

    /// Returns true if the cause, reported by a hop's server, is about the target: a decision on it or the
    /// result of an attempt to reach it. Other causes suggest that another server may do better.
    pub(crate) const fn concerns_target(self) -> bool {
        matches!(
            self,
            Self::DeniedByServer
                | Self::ConnectionRefused
                | Self::UnknownName
                | Self::HostUnreachable
                | Self::NetworkUnreachable
        )
    }

    /// Returns the SOCKS5 reply for this cause (RFC 1928 section 6).
    #[must_use]
    pub const fn socks_reply(self) -> Reply {
        match self {
            Self::Denied
            | Self::DeniedByServer
            | Self::OverQuota
            | Self::Expired
            | Self::TooManySessions
            | Self::TooManyDevices => Reply::NotAllowed,
            Self::NetworkUnreachable => Reply::NetworkUnreachable,
            Self::HostUnreachable | Self::UnknownName => Reply::HostUnreachable,
            Self::ConnectionRefused | Self::ConnectionReset => Reply::ConnectionRefused,
            Self::TimedOut => Reply::TtlExpired,
            Self::Unsupported | Self::UnsupportedByServer => Reply::CommandNotSupported,
            Self::AddressFamily => Reply::AddressTypeNotSupported,
            Self::Closed
            | Self::Malformed
            | Self::Untrusted
            | Self::Incompatible
            | Self::LoginRefused
            | Self::FailedAtServer
            | Self::Exhausted
            | Self::System => Reply::GeneralFailure,
        }
    }

    /// Returns the cause for the SOCKS5 reply of a hop's server.
    #[must_use]
    pub(crate) const fn from_socks_reply(reply: Reply) -> Self {
        match reply {
            Reply::NotAllowed => Self::DeniedByServer,
            Reply::NetworkUnreachable => Self::NetworkUnreachable,
            Reply::HostUnreachable => Self::HostUnreachable,
            Reply::ConnectionRefused => Self::ConnectionRefused,
            Reply::TtlExpired => Self::TimedOut,
            Reply::CommandNotSupported => Self::UnsupportedByServer,
            Reply::AddressTypeNotSupported => Self::AddressFamily,
            _ => Self::FailedAtServer,
        }
    }

    /// Returns the HTTP status for this cause (RFC 9110 section 15).
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match (self, self.fault_side()) {
            (Self::TimedOut, _) => 504,
            (_, FaultSide::Policy) => 403,
            (_, FaultSide::Local) => 503,
            (_, FaultSide::Client | FaultSide::Upstream) => 502,
        }
    }

    /// Returns a short name for logs, metrics and headers: a token of RFC 9110 section 5.6.2.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Unsupported => "unsupported",
            Self::AddressFamily => "address-family",
            Self::UnknownName => "unknown-name",
            Self::HostUnreachable => "host-unreachable",
            Self::NetworkUnreachable => "network-unreachable",
            Self::ConnectionRefused => "connection-refused",
            Self::ConnectionReset => "connection-reset",
            Self::TimedOut => "timed-out",
            Self::Closed => "closed",
            Self::Malformed => "malformed",
            Self::Untrusted => "untrusted",
            Self::Incompatible => "incompatible",
            Self::LoginRefused => "login-refused",
            Self::DeniedByServer => "denied-by-server",
            Self::UnsupportedByServer => "unsupported-by-server",
            Self::FailedAtServer => "failed-at-server",
            Self::Exhausted => "exhausted",
            Self::OverQuota => "over-quota",
            Self::Expired => "expired",
            Self::TooManySessions => "too-many-sessions",
            Self::TooManyDevices => "too-many-devices",
            Self::System => "system",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_has_a_cause() {
        use io::ErrorKind as K;
        for (kind, cause) in [
            (K::ConnectionRefused, FailureCause::ConnectionRefused),
            (K::TimedOut, FailureCause::TimedOut),
            (K::HostUnreachable, FailureCause::HostUnreachable),
            (K::NetworkUnreachable, FailureCause::NetworkUnreachable),
            (K::PermissionDenied, FailureCause::Denied),
            (K::UnexpectedEof, FailureCause::Closed),
            (K::OutOfMemory, FailureCause::Exhausted),
            (K::Other, FailureCause::System),
        ] {
            assert_eq!(FailureCause::from_io_error(&kind.into()), cause);
        }
        for (code, cause) in [
            (97, FailureCause::AddressFamily),
            (24, FailureCause::Exhausted),
            (5, FailureCause::System),
        ] {
            assert_eq!(
                FailureCause::from_io_error(&io::Error::from_raw_os_error(code)),
                cause
            );
        }
    }

    #[test]
    fn every_cause_has_its_answers() {
        let told = |cause: FailureCause| (cause.socks_reply(), cause.http_status());
        for (cause, reply, status) in [
            (FailureCause::Denied, Reply::NotAllowed, 403),
            (FailureCause::DeniedByServer, Reply::NotAllowed, 502),
            (FailureCause::OverQuota, Reply::NotAllowed, 403),
            (FailureCause::TooManyDevices, Reply::NotAllowed, 403),
            (FailureCause::LoginRefused, Reply::GeneralFailure, 502),
            (FailureCause::UnknownName, Reply::HostUnreachable, 502),
            (
                FailureCause::ConnectionRefused,
                Reply::ConnectionRefused,
                502,
            ),
            (FailureCause::TimedOut, Reply::TtlExpired, 504),
            (FailureCause::FailedAtServer, Reply::GeneralFailure, 502),
            (FailureCause::Exhausted, Reply::GeneralFailure, 503),
            (FailureCause::Unsupported, Reply::CommandNotSupported, 502),
            (
                FailureCause::AddressFamily,
                Reply::AddressTypeNotSupported,
                503,
            ),
        ] {
            assert_eq!(told(cause), (reply, status), "{cause:?}");
        }
        let mut labels = FailureCause::ALL.map(FailureCause::label);
        labels.sort_unstable();
        assert!(labels.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_proxy_behind_a_proxy_tells_the_same() {
        for cause in FailureCause::ALL {
            let reply = cause.socks_reply();
            let again = FailureCause::from_socks_reply(reply);
            assert_eq!(again.socks_reply(), reply, "{cause:?}");
            assert!(
                again.fault_side() != FaultSide::Policy,
                "{cause:?} is not our rule"
            );
        }
    }

    #[test]
    fn what_only_people_can_change_is_not_tried_again_soon() {
        for cause in [
            FailureCause::Denied,
            FailureCause::Untrusted,
            FailureCause::LoginRefused,
            FailureCause::DeniedByServer,
            FailureCause::OverQuota,
        ] {
            assert!(!cause.is_retryable(), "{cause:?}");
        }
        for cause in [
            FailureCause::TimedOut,
            FailureCause::ConnectionRefused,
            FailureCause::Exhausted,
            FailureCause::TooManySessions,
        ] {
            assert!(cause.is_retryable(), "{cause:?}");
        }
    }
}
