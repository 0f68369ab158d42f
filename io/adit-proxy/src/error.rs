//! Errors of both sides.

use std::io;

use adit_wire::TargetError;

use crate::handshake::HandshakeFailure;

/// The reason a connection through a proxy, or of a client, was not established.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The target is not `host:port`.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Client: the SOCKS proxy refused, or its bytes are not SOCKS.
    #[error(transparent)]
    SocksProxy(#[from] adit_socks::client::ClientError),
    /// Client: the HTTP proxy refused, or its bytes are not HTTP.
    #[error(transparent)]
    HttpProxy(#[from] adit_http::client::ClientError),
    /// Server: a SOCKS client was refused. It has received the reply.
    #[error(transparent)]
    SocksClient(#[from] adit_socks::server::Refusal),
    /// Server: an HTTP client was refused. It has received the response.
    #[error(transparent)]
    HttpClient(#[from] adit_http::server::Refusal),
    /// Server: an HTTP client sent a request other than CONNECT. It has received a response.
    #[error("the client sent an HTTP request other than CONNECT")]
    NotConnect,
    /// Server: the client requested a command other than CONNECT. It has received the reply.
    #[error("the client requested {0:?}, and only Connect is supported")]
    Command(adit_socks::Command),
    /// The peer closed the stream during the handshake.
    #[error("the peer closed the connection during the handshake")]
    Eof,
    /// The stream failed, or the proxy or the target cannot be reached.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Error> for io::Error {
    fn from(why: Error) -> Self {
        match why {
            Error::Io(why) => why,
            Error::Eof => Self::new(io::ErrorKind::UnexpectedEof, why),
            Error::Target(_) => Self::new(io::ErrorKind::InvalidInput, why),
            _ => Self::other(why),
        }
    }
}

impl<E: Into<Self>> From<HandshakeFailure<E>> for Error {
    fn from(why: HandshakeFailure<E>) -> Self {
        match why {
            HandshakeFailure::Core(why) => why.into(),
            HandshakeFailure::Eof => Self::Eof,
            HandshakeFailure::Io(why) => why.into(),
        }
    }
}
