//! Errors of an upstream SOCKS proxy.

use adit_wire::ProtocolError;

use crate::Reply;

/// The reason a handshake with the proxy failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The proxy's bytes are not SOCKS.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// The proxy accepts none of the methods that the client can offer.
    #[error("the proxy accepts none of the offered authentication methods")]
    NoMethod,
    /// The proxy chose a method that was not offered.
    #[error("the proxy chose method {0:#04x}, which was not offered")]
    Method(u8),
    /// The proxy refused user name and password.
    #[error("the proxy refused user name and password")]
    BadCredentials,
    /// User name or password do not fit the protocol.
    #[error("user name or password is longer than 255 bytes, or contains a NUL in SOCKS4")]
    CredentialsForm,
    /// SOCKS4 cannot express the request.
    #[error("SOCKS4 has no {0}")]
    NotInSocks4(&'static str),
    /// The proxy answered the request with a failure.
    #[error("the proxy replied: {0}")]
    Replied(Reply),
    /// The proxy answered the request with an unassigned code.
    #[error("the proxy replied with the unknown code {0:#04x}")]
    UnknownReply(u8),
}

impl From<ClientError> for ProtocolError {
    fn from(why: ClientError) -> Self {
        match why {
            ClientError::Malformed(what) => Self::Malformed(what),
            ClientError::Method(_) => Self::Malformed("method of the proxy"),
            ClientError::NoMethod => Self::Refused("no acceptable authentication method"),
            ClientError::BadCredentials => Self::Refused("wrong user name or password"),
            ClientError::CredentialsForm => Self::TooLong {
                what: "user name or password",
                limit: 255,
            },
            ClientError::NotInSocks4(what) => Self::NoRoom(what),
            ClientError::Replied(reply) => Self::Refused(reply.as_str()),
            ClientError::UnknownReply(_) => Self::Refused("unknown reply code"),
        }
    }
}
