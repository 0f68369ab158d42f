//! A DNS client over any path: UDP, TCP, TLS and HTTPS, with several servers and a cache.
//!
//! A [`DnsClient`] has one or more servers. The path to them is a [`DnsPath`]: [`DirectPath`] is this
//! machine's own sockets, and a program can implement others, for example through a chain of proxies.
//!
//! * UDP: each query has a port and a number of its own; lost datagrams are sent again; answers that do not fit
//!   and attempts to guess the number lead to TCP.
//! * TCP and TLS: queries share a connection and do not wait for each other (RFC 7766, RFC 7858).
//! * HTTPS: POST over HTTP/2, or over HTTP/1.1 if the server has nothing else (RFC 8484).
//!
//! Queries over TLS and HTTPS are padded (RFC 8467). Idle connections are closed, and TLS sessions are resumed.
//!
//! The feature `tls`, on by default, has TLS and HTTPS; without it their servers fail with an error.
//!
//! # Examples
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use adit_dns_client::tls::TrustedRoots;
//! use adit_dns_client::{CacheLimits, DirectPath, DnsClient, DnsServer, RemoteServer, Transport};
//! use adit_net::names::LookupOrigin;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let server = RemoteServer::new(Transport::Tls, "9.9.9.9:853".parse()?);
//! let client = DnsClient::new(
//!     vec![DnsServer::Remote(server)],
//!     Arc::new(DirectPath),
//!     Some(CacheLimits::default()),
//!     &TrustedRoots::Machine,
//! );
//! let found = client.resolve("example.test", 443, LookupOrigin::Configuration).await?;
//! println!("{found:?}");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod client;
mod datagram;
mod error;
#[cfg(feature = "tls")]
mod https;
mod link;
mod path;
mod pipeline;
mod server;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_left_out.rs"]
pub mod tls;

use std::time::Duration;

pub use adit_dns::{CacheLimits, CachedAnswer, RecordType, Transport};
pub use client::{DnsClient, LookupCounts, ServerCounts, look_up_families};
pub use error::{LookupError, ServerError};
pub use path::{
    BoxDnsDatagrams, BoxDnsStream, BoxFuture, DirectPath, DnsDatagrams, DnsPath, DnsStream,
};
pub use server::{DnsServer, RemoteServer};

/// Time limit of a direct connection to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of connections that are tried for one query: idle ones may end at any moment.
const MAX_ATTEMPTS: u32 = 3;
