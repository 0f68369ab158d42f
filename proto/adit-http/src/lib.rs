//! HTTP proxying by CONNECT and absolute-form, sans-IO: both the server's and the client's side.
//!
//! * [`server::Head`] reads the head of one request, checks the password and ends in a
//!   [`server::Request`]: a tunnel to open, or a request rewritten for its origin.
//! * [`body::exchange`] gives the two codecs for the rest of a forwarded exchange: the request's
//!   body exactly as it is framed, and the response with its head rewritten.
//! * [`client::Connect`] asks an upstream proxy for a tunnel.
//!
//! One exchange per connection. The parser is strict on purpose: whatever two parsers could read
//! in two ways is refused, since that is how requests are smuggled past a proxy.
//!
//! Not here: HTTP/2 and HTTP/3, TLS, caching, connecting, access rules, deadlines.
//!
//! Sources: RFC 9110 (semantics), RFC 9112 (HTTP/1.1), RFC 7617 (Basic).

#![forbid(unsafe_code)]

mod authority;
mod basic;
pub mod body;
pub mod client;
mod framing;
mod head;
pub mod server;

pub use framing::Framing;

/// The longest head of a request or a response, in bytes, with its empty line.
pub const MAX_HEAD: usize = 16 << 10;
/// The most header lines of a head.
pub const MAX_FIELDS: usize = 128;
/// The longest start line, in bytes, without its CRLF.
pub const MAX_START_LINE: usize = 8 << 10;
