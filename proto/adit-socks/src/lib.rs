//! SOCKS5, SOCKS4 and SOCKS4a, sans-IO: both the server's and the client's side.
//!
//! * [`server`]: what a listener speaks. [`server::Socks5`] and [`server::Socks4`] are
//!   [`Handshake`](adit_wire::Handshake)s that end in a [`Request`]; the answer to it is written
//!   by [`server::reply`] when the engine knows how the request went.
//! * [`client`]: what a hop speaks to its upstream proxy.
//! * [`ProxyHeader`]: what another proxy says before all that, about whose connection it is.
//! * [`udp`]: the datagram header of UDP ASSOCIATE and the reassembly of fragments.
//!
//! Not here: connecting, resolving, access rules, deadlines, the store of passwords
//! ([`server::Credentials`] is its interface).
//!
//! Sources: RFC 1928 (SOCKS5), RFC 1929 (user name and password), the SOCKS4 and SOCKS4a memos.
//!
//! # Examples
//!
//! ```
//! use adit_socks::Command;
//! use adit_socks::client::Connect;
//! use adit_wire::{Handshake, Rx, Step, Tx};
//!
//! let mut connect = Connect::new(Command::Connect, "example.test:80".parse().unwrap(), None);
//! let mut sent = Vec::new();
//!
//! // The greeting: SOCKS5, one method, no authentication.
//! let step = connect.step(&mut Rx::new(&mut []), &mut Tx::new(&mut sent))?;
//! assert_eq!((step, &sent[..]), (Step::NeedMore { total: 2 }, &[5, 1, 0][..]));
//!
//! // The proxy agrees to the method, and accepts the request.
//! let mut answer = *b"\x05\x00\x05\x00\x00\x01\xc0\x00\x02\x01\x1f\x90";
//! let step = connect.step(&mut Rx::new(&mut answer), &mut Tx::new(&mut sent))?;
//! assert_eq!(step, Step::Done("192.0.2.1:8080".parse().unwrap()));
//! # Ok::<(), adit_socks::client::ClientError>(())
//! ```

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
