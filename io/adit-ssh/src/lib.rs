//! SSH sessions for tokio: one task drives each connection, and channels are handles to it.
//!
//! * [`client`]: [`Client::connect`](client::Client::connect) logs in and returns a
//!   [`Session`](client::Session), which opens channels: programs, connections, forwards.
//! * [`server`]: [`Server::accept`](server::Server::accept) authenticates a user and returns a
//!   [`Connection`](server::Connection), which yields the client's requests.
//! * [`messages`]: sessions at either end for programs that need every event in order.
//! * [`custom`]: channels and global requests of application-defined types, at both ends.
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
//! Handles and the task share two things: `shared_session` holds pending commands, a `shared_channel`
//! holds the bytes of one channel. The task never waits for a channel: a slow reader only stalls its own window, and the
//! data that the peer has sent within that window stays there.
//!
//! # Examples
//!
//! ```no_run
//! use adit_ssh::client::{Client, ClientConfig, KnownHostsOnly, Login};
//! use adit_ssh_proto::key::PrivateKey;
//! use std::path::Path;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let key = PrivateKey::from_text(&std::fs::read_to_string("id_ed25519")?, None)?;
//! let known = KnownHostsOnly::read("example.test", 22, &[Path::new("known_hosts")])?;
//! let config = ClientConfig::for_known_host(known, Login::new("alice").with_key(key));
//! let session = Client::connect_tcp("example.test", 22, config).await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

/// Compiles the snippets of the guide as tests. The guide is outside of the package, and documentation
/// tests are the only builds that read it.
#[cfg(doctest)]
#[doc(test(attr(deny(unused_imports))))]
#[doc = include_str!("../../../docs/guides/ssh-library.md")]
mod guide {}

mod byte_queue;
mod channel;
pub mod client;
pub mod computations;
mod cpu;
pub mod custom;
mod driver;
mod error;
mod incoming_channel;
pub mod messages;
mod peer;
mod routes;
pub mod server;
mod shared_channel;
mod shared_session;
mod spare_buffers;
mod transport_stream;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub use channel::{Channel, ChannelReader, ChannelWriter};
pub use cpu::{cpu_features, preferred_algorithms};
pub use error::{ConnectError, HostKeyRefused, OpenError, RequestError, SessionEnd};
pub use incoming_channel::IncomingChannel;
pub use peer::Peer;

/// A boxed future, as the asynchronous methods of this crate's traits return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Settings for keepalive requests, which are sent when the peer has been silent for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Time without a packet from the peer before a request is sent.
    pub interval: Duration,
    /// Number of unanswered requests after which the session ends.
    pub max_missed: u32,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            max_missed: 3,
        }
    }
}
