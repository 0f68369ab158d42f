//! HTTP proxying with CONNECT and absolute-form, sans-IO: the server's and the client's side.
//!
//! * [`server::RequestHandshake`] reads the head of one request, checks the password and returns a
//!   [`server::Request`]: a tunnel to open, or a request rewritten for its origin.
//! * [`body::exchange_codecs`] returns the two codecs for the rest of a forwarded exchange: the request's
//!   body with its framing unchanged, and the response with its head rewritten.
//! * [`client::HttpConnect`] requests a tunnel from an upstream proxy.
//!
//! A client may send more requests on the same connection ([`body::keep_alive_codecs`]); each of them gets its
//! own connection to the origin. The parser is strict on purpose: anything that two parsers could
//! read differently is refused, because that is how requests are smuggled past a proxy. From an
//! origin it accepts what browsers accept: folded lines and repeated equal lengths, both of which
//! it forwards as one.
//!
//! Not included: HTTP/2 and HTTP/3, TLS, caching, connecting, access rules, timeouts.
//!
//! Sources: RFC 9110 (semantics), RFC 9112 (HTTP/1.1), RFC 7617 (Basic).
//!
//! # Examples
//!
//! ```
//! use adit_http::client::HttpConnect;
//! use adit_wire::{Handshake, HandshakeInput, HandshakeProgress, HandshakeOutput};
//!
//! let mut connect = HttpConnect::new("example.test:443".parse().unwrap(), None);
//! let mut answer = *b"HTTP/1.1 200 Connection established\r\n\r\n";
//! let mut sent = Vec::new();
//! let step = connect.step(&mut HandshakeInput::new(&mut answer), &mut HandshakeOutput::new(&mut sent))?;
//! assert_eq!(step, HandshakeProgress::Done(()));
//! assert!(sent.starts_with(b"CONNECT example.test:443 HTTP/1.1\r\n"));
//! # Ok::<(), adit_http::client::ClientError>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod authority;
mod basic;
pub mod body;
pub mod client;
mod framing;
mod head;
pub mod server;

pub use framing::Framing;

/// Maximum length of a request's head in bytes, including its empty line.
pub const MAX_HEAD: usize = 16 << 10;
/// Maximum number of header lines of a request.
pub const MAX_FIELDS: usize = 128;
/// Maximum length of a response's head in bytes: the limit of Squid, a quarter of that of browsers.
pub const MAX_RESPONSE_HEAD: usize = 64 << 10;
/// Maximum number of header lines of a response. Browsers have no such limit.
pub const MAX_RESPONSE_FIELDS: usize = 1000;
/// Maximum length of a start line in bytes, without its CRLF.
pub const MAX_START_LINE: usize = 8 << 10;
