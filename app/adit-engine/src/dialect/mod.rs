//! The languages spoken with a hop's server, one module each.

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

/// A language that asks a server for a target.
pub trait Dialect: Send + Sync {
    /// Asks the server at the other end of `io` for `to`.
    fn speak<'a>(
        &'a self,
        io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Spoken, DialogueError>>;

    /// What to ask the server for if datagrams go in a stream instead (UDP over TCP, version 2).
    fn stream_of_datagrams(&self) -> Option<Target> {
        None
    }

    /// What is known of the server, if the dialect looks after that itself.
    fn health(&self) -> Option<&Arc<Health>> {
        None
    }

    /// Opens a way for datagrams through `server`, which is reached through `via`.
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
    /// How long a first payload is worth waiting for.
    pub first_wait: Duration,
    /// An eye on the server, if it has a key.
    pub watch: Option<Watch>,
}

impl Spoken {
    /// A stream with nothing to wait for.
    fn plain(io: BoxStream) -> Self {
        Self {
            io,
            first_wait: Duration::ZERO,
            watch: None,
        }
    }
}

/// Why a dialogue with a hop's server has failed.
#[derive(Debug)]
pub struct DialogueError {
    /// Why.
    pub cause: Cause,
    /// What the system or the server said.
    pub why: io::Error,
}

impl DialogueError {
    /// Of a handshake; `cause` is what its own errors mean.
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
                    "the server closed in the middle of the dialogue",
                ),
            },
            RunError::Io(why) => why.into(),
        }
    }

    /// The same, of the server of `hop`.
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
            // Our rules have allowed it before the dialogue began.
            Cause::Denied => Cause::DeniedByServer,
            other => other,
        };
        Self { cause, why }
    }
}
