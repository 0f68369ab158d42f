//! SOCKS5, SOCKS4 and SOCKS4a, sans-IO: the server's and the client's side.
//!
//! * [`server`]: the protocol of a listener. [`server::Socks5`] and [`server::Socks4`] are
//!   [`Handshake`](adit_wire::Handshake)s that return a [`Request`]; [`server::encode_reply`] encodes the
//!   answer once the outcome of the request is known.
//! * [`client`]: the protocol of a hop with its upstream proxy.
//! * [`ProxyHeader`]: the PROXY protocol header before a connection, which names the original
//!   client.
//! * [`udp`]: the datagram header of UDP ASSOCIATE and the reassembly of fragments.
//!
//! Not included: connecting, resolving, access rules, timeouts and password storage
//! ([`server::Credentials`] is its interface). The crate needs an allocator, but no `std`.
//!
//! Sources: RFC 1928 (SOCKS5), RFC 1929 (user name and password), the SOCKS4 and SOCKS4a memos.
//!
//! # Examples
//!
//! ```
//! use adit_socks::Command;
//! use adit_socks::client::Socks5Connect;
//! use adit_wire::{Handshake, HandshakeInput, HandshakeProgress, HandshakeOutput};
//!
//! let mut connect = Socks5Connect::new(Command::Connect, "example.test:80".parse().unwrap(), None);
//! let mut sent = Vec::new();
//!
//! // The greeting: SOCKS5, one method, no authentication.
//! let step = connect.step(&mut HandshakeInput::new(&mut []), &mut HandshakeOutput::new(&mut sent))?;
//! assert_eq!((step, &sent[..]), (HandshakeProgress::NeedMore { total: 2 }, &[5, 1, 0][..]));
//!
//! // The proxy agrees to the method, and accepts the request.
//! let mut answer = *b"\x05\x00\x05\x00\x00\x01\xc0\x00\x02\x01\x1f\x90";
//! let step = connect.step(&mut HandshakeInput::new(&mut answer), &mut HandshakeOutput::new(&mut sent))?;
//! assert_eq!(step, HandshakeProgress::Done("192.0.2.1:8080".parse().unwrap()));
//! # Ok::<(), adit_socks::client::ClientError>(())
//! ```

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

extern crate alloc;

pub mod client;
mod proxy_header;
mod reply;
mod request;
pub mod server;
pub mod udp;

pub use proxy_header::ProxyHeader;
pub use reply::Reply;
pub use request::{Command, Request, Version};
/// See [`server::Credentials`].
pub use server::Credentials;
