//! The protocols of hops' servers, client side, one module per protocol.

mod http;
mod shadowsocks;
mod socks;
mod ssr;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_stream::{BoxStream, RunError};
use adit_wire::{Broken, Target};

pub use http::Http;
pub use shadowsocks::Shadowsocks;
pub use socks::{Socks4a, Socks5};
pub use ssr::ShadowsocksR;

use crate::connector::{Connector, Watch};
use crate::udp::BoxDatagrams;
use crate::{BoxFuture, Cause, DialError, Health, Stage};

/// A protocol that requests targets from a server.
pub trait Dialect: Send + Sync {
    /// Requests `to` from the server at the other end of `io`.
    fn speak<'a>(
        &'a self,
        io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Spoken, DialogueError>>;

    /// Returns the target to request for UDP over TCP (version 2), if datagrams are sent in a stream.
    fn stream_of_datagrams(&self) -> Option<Target> {
        None
    }

    /// Returns the health of the server, if the dialect tracks it itself.
    fn health(&self) -> Option<&Arc<Health>> {
        None
    }

    /// Opens a path for datagrams through `server`, which is reached through `via`.
    fn associate<'a>(
        &'a self,
        _via: &'a dyn Connector,
        _server: &'a Target,
    ) -> BoxFuture<'a, Result<BoxDatagrams, DialError>> {
        Box::pin(async { Err(DialError::unsupported("this hop does not carry datagrams")) })
    }
}

/// A stream that leads to the target.
pub struct Spoken {
    /// The stream.
    pub io: BoxStream,
    /// Time to wait for a first payload.
    pub first_wait: Duration,
    /// Watches the server, if it has a key.
    pub watch: Option<Watch>,
}

impl Spoken {
    /// Wraps a stream that has nothing to wait for.
    fn plain(io: BoxStream) -> Self {
        Self {
            io,
            first_wait: Duration::ZERO,
            watch: None,
        }
    }
}

/// The error of a handshake with a hop's server.
#[derive(Debug)]
pub struct DialogueError {
    /// The cause, typed.
    pub cause: Cause,
    /// The error of the system or of the server.
    pub why: io::Error,
}

impl DialogueError {
    /// Converts the error of a handshake; `cause` maps errors of the protocol.
    fn of<E: Into<Broken>>(why: RunError<E>, cause: impl Fn(&E) -> Cause) -> Self {
        match why {
            RunError::Core { error, .. } => Self {
                cause: cause(&error),
                why: io::Error::other(error.into()),
            },
            RunError::Eof => Self {
                cause: Cause::Closed,
                why: io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the server closed the connection during the handshake",
                ),
            },
            RunError::Io(why) => why.into(),
        }
    }

    /// Converts to an error of the hop `hop`.
    pub(crate) fn with(self, hop: String) -> DialError {
        DialError {
            stage: Stage::Dialect { hop },
            cause: self.cause,
            why: self.why,
        }
    }
}

impl From<io::Error> for DialogueError {
    fn from(why: io::Error) -> Self {
        let cause = match Cause::of(&why) {
            // The local rules allowed the request before the handshake started.
            Cause::Denied => Cause::DeniedByServer,
            other => other,
        };
        Self { cause, why }
    }
}
