//! HTTP proxying by CONNECT and absolute-form, sans-IO: both the server's and the client's side.
//!
//! * [`server::Head`] reads the head of one request, checks the password and ends in a
//!   [`server::Request`]: a tunnel to open, or a request rewritten for its origin.
//! * [`body::exchange`] gives the two codecs for the rest of a forwarded exchange: the request's
//!   body exactly as it is framed, and the response with its head rewritten.
//! * [`client::Connect`] asks an upstream proxy for a tunnel.
//!
//! A client may ask again on the same connection ([`body::kept`]); each of its requests has a
//! connection of its own to the origin. The parser is strict on purpose: whatever two parsers could
//! read in two ways is refused, since that is how requests are smuggled past a proxy. Of an origin
//! it takes what browsers take: folded lines and equal lengths, which it passes on as one.
//!
//! Not here: HTTP/2 and HTTP/3, TLS, caching, connecting, access rules, deadlines.
//!
//! Sources: RFC 9110 (semantics), RFC 9112 (HTTP/1.1), RFC 7617 (Basic).
//!
//! # Examples
//!
//! ```
//! use adit_http::client::Connect;
//! use adit_wire::{Handshake, Rx, Step, Tx};
//!
//! let mut connect = Connect::new("example.test:443".parse().unwrap(), None);
//! let mut answer = *b"HTTP/1.1 200 Connection established\r\n\r\n";
//! let mut sent = Vec::new();
//! let step = connect.step(&mut Rx::new(&mut answer), &mut Tx::new(&mut sent))?;
//! assert_eq!(step, Step::Done(()));
//! assert!(sent.starts_with(b"CONNECT example.test:443 HTTP/1.1\r\n"));
//! # Ok::<(), adit_http::client::ClientError>(())
//! ```

#![forbid(unsafe_code)]

mod authority;
mod basic;
pub mod body;
pub mod client;
mod framing;
mod head;
pub mod server;

pub use framing::Framing;

/// The longest head of a request, in bytes, with its empty line.
pub const MAX_HEAD: usize = 16 << 10;
/// The most header lines of a request.
pub const MAX_FIELDS: usize = 128;
/// The longest head of an origin's response: as much as Squid takes, a quarter of what browsers do.
pub const MAX_RESPONSE_HEAD: usize = 64 << 10;
/// The most header lines of a response. Browsers do not count them.
pub const MAX_RESPONSE_FIELDS: usize = 1000;
/// The longest start line, in bytes, without its CRLF.
pub const MAX_START_LINE: usize = 8 << 10;
