//! SOCKS5, SOCKS4 and SOCKS4a, sans-IO: the server's and the client's side.
//!
//! * [`server`]: the protocol of a listener. [`server::Socks5`] and [`server::Socks4`] are
//!   [`Handshake`](adit_wire::Handshake)s that return a [`Request`]; [`server::reply`] encodes the
//!   answer once the outcome of the request is known.
//! * [`client`]: the protocol of a hop with its upstream proxy.
//! * [`ProxyHeader`]: the PROXY protocol header before a connection, which names the original
//!   client.
//! * [`udp`]: the datagram header of UDP ASSOCIATE and the reassembly of fragments.
//!
//! Not included: connecting, resolving, access rules, timeouts and password storage
//! ([`server::Credentials`] is its interface).
//!
//! Sources: RFC 1928 (SOCKS5), RFC 1929 (user name and password), the SOCKS4 and SOCKS4a memos.

#![forbid(unsafe_code)]

pub mod client;
mod proxied;
mod reply;
mod request;
pub mod server;
pub mod udp;

pub use proxied::ProxyHeader;
pub use reply::Reply;
pub use request::{Command, Request, Version};
/// See [`server::Credentials`].
pub use server::Credentials;
