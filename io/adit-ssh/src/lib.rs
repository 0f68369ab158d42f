//! SSH sessions: a task for each connection, channels come out of it.
//!
//! * [`client`]: [`Client::connect`](client::Client::connect) logs in and gives a
//!   [`Session`](client::Session), which opens channels: programs, connections, forwards.
//! * [`server`]: [`Server::accept`](server::Server::accept) lets a user in and gives a
//!   [`Connection`](server::Connection), which tells what the client wants.
//! * [`messages`]: sessions of either end whose program wants to be told everything in its order.
//! * [`own`]: channels and global requests of a program's own types, at both ends.
//!
//! Both work over any [`BoxStream`](adit_stream::BoxStream): a socket, or a channel of another
//! session. A [`Channel`] is a stream too.
//!
//! ```text
//! reader ◀─ Chunks ◀─ Connection ◀─ Transport ◀─ below     the task reads, opens in place, and
//!             Pipe                                          copies each channel's bytes once
//! writer ─▶ Chunks ─▶ Connection ─▶ Transport ─▶ below     the task seals what the windows allow,
//!                                                           many packets for each write
//! ```
//!
//! Handles and the task meet in two places: `mail` has what is to be done, a `pipe` the bytes of
//! one channel. The task waits for no channel: a reader that lags holds back its own window, and
//! what the peer has sent within it waits in its pipe.
//!
//! # Examples
//!
//! ```no_run
//! use adit_ssh::client::{Client, ClientConfig, KnownHostsOnly, Login};
//! use adit_ssh_proto::key::PrivateKey;
//! use std::path::Path;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let key = PrivateKey::read(&std::fs::read_to_string("id_ed25519")?, None)?;
//! let known = KnownHostsOnly::read("example.test", 22, &[Path::new("known_hosts")])?;
//! let config = ClientConfig::known(known, Login::new("alice").with_key(key));
//! let session = Client::dial("example.test", 22, config).await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

/// The snippets of the guide compile as they are. The guide is outside of the package: tests of
/// documentation are the only builds that read it.
#[cfg(doctest)]
#[doc(test(attr(deny(unused_imports))))]
#[doc = include_str!("../../../docs/guides/ssh-library.md")]
mod guide {}

mod about;
mod channel;
mod chunks;
pub mod client;
pub mod computations;
mod driver;
mod error;
mod forwards;
mod line;
mod machine;
mod mail;
pub mod messages;
mod opening;
pub mod own;
mod pipe;
pub mod server;
mod spares;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub use about::Peer;
pub use channel::{Channel, ChannelReader, ChannelWriter};
pub use error::{ConnectError, End, HostKeyRefused, OpenError, RequestError};
pub use machine::{machine, preferred};
pub use opening::Opening;

/// What an asynchronous method of a trait gives.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Signs of life: asked for when nothing has come for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// The longest silence of the peer before it is asked.
    pub interval: Duration,
    /// So many questions without an answer end the session.
    pub missed: u32,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            missed: 3,
        }
    }
}
