//! The protocols of hops' servers, client side, one module per protocol.

mod http;
mod shadowsocks;
mod socks;
mod ssr;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_stream::{BoxStream, HandshakeError};
use adit_wire::{ProtocolError, Target};

pub use http::HttpConnect;
pub use shadowsocks::ShadowsocksDialect;
pub use socks::{Socks4a, Socks5};
pub use ssr::SsrDialect;

use crate::connector::{Connector, HopWatch};
use crate::udp::BoxDatagramPath;
use crate::{BoxFuture, DialError, DialStage, FailureCause, ServerHealth};

/// A protocol that requests targets from a server.
pub trait HopDialect: Send + Sync {
    /// Requests `to` from the server at the other end of `io`.
    fn request_target<'a>(
        &'a self,
        io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<RequestedStream, HopError>>;

    /// Returns the target to request for UDP over TCP (version 2), if datagrams are sent in a stream.
    fn udp_over_tcp_target(&self) -> Option<Target> {
        None
    }

    /// Returns the health of the server, if the dialect tracks it itself.
    fn server_health(&self) -> Option<&Arc<ServerHealth>> {
        None
    }

    /// Opens a path for datagrams through `server`, which is reached through `via`.
    fn open_datagrams<'a>(
        &'a self,
        _via: &'a dyn Connector,
        _server: &'a Target,
    ) -> BoxFuture<'a, Result<BoxDatagramPath, DialError>> {
        Box::pin(async { Err(DialError::unsupported("this hop does not carry datagrams")) })
    }
}

/// A stream that leads to the target.
pub struct RequestedStream {
    /// The stream.
    pub io: BoxStream,
    /// Time to wait for a first payload.
    pub first_wait: Duration,
    /// Watches the server, if it has a key.
    pub watch: Option<HopWatch>,
}

impl RequestedStream {
    /// Wraps a stream that has nothing to wait for.
    fn without_wait(io: BoxStream) -> Self {
        Self {
            io,
            first_wait: Duration::ZERO,
            watch: None,
        }
    }
}

/// The error of a handshake with a hop's server.
#[derive(Debug)]
pub struct HopError {
    /// The cause, typed.
    pub cause: FailureCause,
    /// The error of the system or of the server.
    pub why: io::Error,
}

impl HopError {
    /// Converts the error of a handshake; `cause` maps errors of the protocol.
    fn from_handshake<E: Into<ProtocolError>>(
        why: HandshakeError<E>,
        cause: impl Fn(&E) -> FailureCause,
    ) -> Self {
        match why {
            HandshakeError::Core { error, .. } => Self {
                cause: cause(&error),
                why: io::Error::other(error.into()),
            },
            HandshakeError::Eof => Self {
                cause: FailureCause::Closed,
                why: io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the server closed the connection during the handshake",
                ),
            },
            HandshakeError::Io(why) => why.into(),
        }
    }

    /// Converts to an error of the hop `hop`.
    pub(crate) fn into_dial_error(self, hop: String) -> DialError {
        DialError {
            stage: DialStage::Dialect { hop },
            cause: self.cause,
            source_error: self.why,
        }
    }
}

impl From<io::Error> for HopError {
    fn from(why: io::Error) -> Self {
        let cause = match FailureCause::from_io_error(&why) {
            // The local rules allowed the request before the handshake started.
            FailureCause::Denied => FailureCause::DeniedByServer,
            other => other,
        };
        Self { cause, why }
    }
}
