//! Why a client was turned away before its request was complete.

use adit_wire::ProtocolError;

/// Why the dialogue ended without a request.
///
/// What the protocol wants to be sent first has been appended to `tx`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A field has a value the protocol does not allow.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// None of the offered methods will do.
    #[error("no acceptable authentication method was offered")]
    NoMethod,
    /// Wrong user name or password.
    #[error("wrong credentials of user `{user}`")]
    BadCredentials {
        /// The name that was tried, escaped for print.
        user: Box<str>,
    },
    /// SOCKS4 has no password, and a password is demanded here.
    #[error("SOCKS4 is not allowed here")]
    NotAllowed,
    /// A command byte that is not CONNECT, BIND or UDP ASSOCIATE.
    #[error("unknown command {0:#04x}")]
    UnknownCommand(u8),
    /// An address type other than 1, 3 and 4.
    #[error("unknown address type {0:#04x}")]
    AddressType(u8),
    /// A field of SOCKS4 without an end in sight.
    #[error("{0} is longer than 255 bytes")]
    TooLong(&'static str),
}

impl From<Refusal> for ProtocolError {
    fn from(why: Refusal) -> Self {
        match why {
            Refusal::Malformed(what) => Self::Malformed(what),
            Refusal::NoMethod | Refusal::BadCredentials { .. } | Refusal::NotAllowed => {
                Self::Unauthentic
            }
            Refusal::UnknownCommand(_) => Self::Malformed("SOCKS command"),
            Refusal::AddressType(_) => Self::Malformed("SOCKS address type"),
            Refusal::TooLong(what) => Self::TooLong { what, limit: 255 },
        }
    }
}
