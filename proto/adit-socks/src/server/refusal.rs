//! Refusals of clients before their request was complete.

use alloc::boxed::Box;

use adit_wire::ProtocolError;

/// The reason a handshake ended without a request.
///
/// The answer that the protocol requires has been appended to `tx`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A field has a value that the protocol does not allow.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// None of the offered methods is acceptable.
    #[error("no acceptable authentication method was offered")]
    NoMethod,
    /// Wrong user name or password.
    #[error("wrong credentials of user `{user}`")]
    BadCredentials {
        /// The attempted user name, escaped for printing.
        user: Box<str>,
    },
    /// SOCKS4 has no password, and this listener requires one.
    #[error("SOCKS4 is not allowed: the listener requires a password")]
    NotAllowed,
    /// A command byte that is not CONNECT, BIND or UDP ASSOCIATE.
    #[error("unknown command {0:#04x}")]
    UnknownCommand(u8),
    /// An address type other than 1, 3 and 4.
    #[error("unknown address type {0:#04x}")]
    AddressType(u8),
    /// A SOCKS4 field whose end was not found.
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
