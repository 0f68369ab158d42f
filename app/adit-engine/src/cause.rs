//! Why a connection did not come about: typed where it is found out, so that whoever answers a
//! client, tries another server or counts failures asks this and no text and no kind of I/O error.

use std::io;

use adit_socks::Reply;

/// Why a connection did not come about.
///
/// A hop that passes on what a server further away has said keeps the cause: its client learns
/// what a direct connection would have told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Our rules forbid it.
    Denied,
    /// This listener or chain has no such service.
    Unsupported,
    /// There is no socket for addresses of this family.
    AddressFamily,
    /// The name has no address.
    UnknownName,
    /// No route to the host, or nobody there answers.
    HostUnreachable,
    /// No route to the network.
    NetworkUnreachable,
    /// Nobody listens at the port.
    ConnectionRefused,
    /// The connection was cut off.
    ConnectionReset,
    /// There was no answer in time.
    TimedOut,
    /// A server closed in the middle of the dialogue.
    Closed,
    /// A server does not speak the protocol, or has another key.
    Malformed,
    /// A hop's server is not the one that it should be.
    Untrusted,
    /// A hop's server and this end have no algorithm in common.
    Incompatible,
    /// A hop's server refuses the login.
    LoginRefused,
    /// A hop's server forbids what was asked of it.
    DeniedByServer,
    /// A hop's server has no such service.
    UnsupportedByServer,
    /// A hop's server has failed, and does not say how.
    FailedAtServer,
    /// A limit of ours or of this machine is reached.
    Exhausted,
    /// Anything else that the system says.
    System,
}

/// The party at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    /// The client asked for something impossible.
    Client,
    /// The target or a hop does not answer as it should.
    Upstream,
    /// Our rules forbid it.
    Policy,
    /// Our own machine is short of something.
    Local,
}

impl Cause {
    /// What the system's error means, or the message of a peer that is in it.
    #[must_use]
    pub fn of(why: &io::Error) -> Self {
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
            _ => Self::of_code(why.raw_os_error().unwrap_or_default()),
        }
    }

    /// What has no kind of its own in the standard library.
    const fn of_code(code: i32) -> Self {
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

    /// Who is at fault.
    #[must_use]
    pub const fn party(self) -> Party {
        match self {
            Self::Denied => Party::Policy,
            Self::Unsupported => Party::Client,
            Self::AddressFamily | Self::Exhausted | Self::System => Party::Local,
            _ => Party::Upstream,
        }
    }

    /// Whether the same request may succeed later as everything is. What a rule, a key or a
    /// capability decides stays as it is until somebody changes it.
    #[must_use]
    pub const fn may_retry(self) -> bool {
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
        )
    }

    /// Whether a hop's server that says this has judged the target, or tells how its own attempt
    /// to reach it went. A server that is short of something, or of us, may be worse than others.
    pub(crate) const fn is_of_the_target(self) -> bool {
        matches!(
            self,
            Self::DeniedByServer
                | Self::ConnectionRefused
                | Self::UnknownName
                | Self::HostUnreachable
                | Self::NetworkUnreachable
        )
    }

    /// The SOCKS5 reply for it (RFC 1928 section 6).
    #[must_use]
    pub const fn socks_reply(self) -> Reply {
        match self {
            Self::Denied | Self::DeniedByServer => Reply::NotAllowed,
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

    /// What the SOCKS5 reply of a hop's server means.
    #[must_use]
    pub(crate) const fn of_socks_reply(reply: Reply) -> Self {
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

    /// The HTTP status for it (RFC 9110 section 15).
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match (self, self.party()) {
            (Self::TimedOut, _) => 504,
            (_, Party::Policy) => 403,
            (_, Party::Local) => 503,
            (_, Party::Client | Party::Upstream) => 502,
        }
    }

    /// A short name for logs, metrics and headers: a token of RFC 9110 section 5.6.2.
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
            Self::System => "system",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Cause; 19] = [
        Cause::Denied,
        Cause::Unsupported,
        Cause::AddressFamily,
        Cause::UnknownName,
        Cause::HostUnreachable,
        Cause::NetworkUnreachable,
        Cause::ConnectionRefused,
        Cause::ConnectionReset,
        Cause::TimedOut,
        Cause::Closed,
        Cause::Malformed,
        Cause::Untrusted,
        Cause::Incompatible,
        Cause::LoginRefused,
        Cause::DeniedByServer,
        Cause::UnsupportedByServer,
        Cause::FailedAtServer,
        Cause::Exhausted,
        Cause::System,
    ];

    #[test]
    fn what_the_system_says_has_a_cause() {
        use io::ErrorKind as K;
        for (kind, cause) in [
            (K::ConnectionRefused, Cause::ConnectionRefused),
            (K::TimedOut, Cause::TimedOut),
            (K::HostUnreachable, Cause::HostUnreachable),
            (K::NetworkUnreachable, Cause::NetworkUnreachable),
            (K::PermissionDenied, Cause::Denied),
            (K::UnexpectedEof, Cause::Closed),
            (K::OutOfMemory, Cause::Exhausted),
            (K::Other, Cause::System),
        ] {
            assert_eq!(Cause::of(&kind.into()), cause);
        }
        for (code, cause) in [
            (97, Cause::AddressFamily),
            (24, Cause::Exhausted),
            (5, Cause::System),
        ] {
            assert_eq!(Cause::of(&io::Error::from_raw_os_error(code)), cause);
        }
    }

    #[test]
    fn every_cause_has_its_answers() {
        let told = |cause: Cause| (cause.socks_reply(), cause.http_status());
        for (cause, reply, status) in [
            (Cause::Denied, Reply::NotAllowed, 403),
            (Cause::DeniedByServer, Reply::NotAllowed, 502),
            (Cause::LoginRefused, Reply::GeneralFailure, 502),
            (Cause::UnknownName, Reply::HostUnreachable, 502),
            (Cause::ConnectionRefused, Reply::ConnectionRefused, 502),
            (Cause::TimedOut, Reply::TtlExpired, 504),
            (Cause::FailedAtServer, Reply::GeneralFailure, 502),
            (Cause::Exhausted, Reply::GeneralFailure, 503),
            (Cause::Unsupported, Reply::CommandNotSupported, 502),
            (Cause::AddressFamily, Reply::AddressTypeNotSupported, 503),
        ] {
            assert_eq!(told(cause), (reply, status), "{cause:?}");
        }
        let mut labels = ALL.map(Cause::label);
        labels.sort_unstable();
        assert!(labels.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_proxy_behind_a_proxy_tells_the_same() {
        for cause in ALL {
            let reply = cause.socks_reply();
            let again = Cause::of_socks_reply(reply);
            assert_eq!(again.socks_reply(), reply, "{cause:?}");
            assert!(again.party() != Party::Policy, "{cause:?} is not our rule");
        }
    }

    #[test]
    fn what_only_people_can_change_is_not_tried_again_soon() {
        for cause in [
            Cause::Denied,
            Cause::Untrusted,
            Cause::LoginRefused,
            Cause::DeniedByServer,
        ] {
            assert!(!cause.may_retry(), "{cause:?}");
        }
        for cause in [Cause::TimedOut, Cause::ConnectionRefused, Cause::Exhausted] {
            assert!(cause.may_retry(), "{cause:?}");
        }
    }
}
