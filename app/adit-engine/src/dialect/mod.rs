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
use crate::{BoxFuture, DialError, Health};

/// A language that asks a server for a target.
pub trait Dialect: Send + Sync {
    /// Asks the server at the other end of `io` for `to`.
    fn speak<'a>(
        &'a self,
        io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, io::Result<Spoken>>;

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

/// A failed dialogue as an I/O error whose kind the reply table understands.
fn dialogue<E: Into<Broken>>(why: RunError<E>, kind: impl Fn(&E) -> io::ErrorKind) -> io::Error {
    match why {
        RunError::Core { error, .. } => io::Error::new(kind(&error), error.into()),
        RunError::Eof => io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the server closed in the middle of the dialogue",
        ),
        RunError::Io(e) => e,
    }
}
