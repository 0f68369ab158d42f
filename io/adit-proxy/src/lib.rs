//! SOCKS5, SOCKS4a and HTTP CONNECT over any tokio stream, client and server.
//!
//! * [`socks5::connect`], [`socks4::connect`] and [`http::connect`] connect to a proxy, request a
//!   target and return the `TcpStream`.
//! * [`socks5::connect_over`] and its siblings do the same over a stream that you have: a TLS stream,
//!   a channel of SSH, or a connection through another proxy. You get the same stream back.
//! * [`accept`] is the server: it detects the protocol, checks the login and returns the request,
//!   which you grant, refuse, or connect with [`AcceptedClient::connect`].
//!
//! A handshake reads not one byte more than its own messages, so the stream continues with the
//! first byte of the target or of the client. HTTP heads have no length, so they are read byte by
//! byte; wrap a stream in `tokio::io::BufReader` where that matters.
//!
//! No call has a time limit: wrap it in `tokio::time::timeout`. Dropping a future closes the stream.
//!
//! The protocols themselves are in the crates `adit-socks` and `adit-http`, without sockets.
//!
//! # Examples
//!
//! A connection through two proxies:
//!
//! ```no_run
//! use adit_proxy::{http, socks5};
//! use tokio::net::TcpStream;
//!
//! async fn dial() -> Result<TcpStream, adit_proxy::Error> {
//!     let login = Some(("ann", "secret"));
//!     let stream = socks5::connect("127.0.0.1:1080", "proxy.example:3128", login).await?;
//!     http::connect_over(stream, "example.com:443", None).await
//! }
//! ```
//!
//! A server for SOCKS5, SOCKS4a and HTTP clients on one port:
//!
//! ```no_run
//! use adit_proxy::{Error, Users, accept};
//! use tokio::net::{TcpListener, TcpStream};
//!
//! async fn serve(client: TcpStream) -> Result<(), Error> {
//!     let users = Users::new([("ann", "secret")]);
//!     let (mut client, mut target) = accept(client, &users).await?.connect().await?;
//!     tokio::io::copy_bidirectional(&mut client, &mut target).await?;
//!     Ok(())
//! }
//!
//! # async fn run() -> std::io::Result<()> {
//! let listener = TcpListener::bind("127.0.0.1:1080").await?;
//! loop {
//!     let (client, _) = listener.accept().await?;
//!     tokio::spawn(serve(client));
//! }
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod dial;
mod error;
mod handshake;
pub mod http;
mod server;
pub mod socks4;
pub mod socks5;
mod target;
mod users;

pub use adit_socks::server::Credentials;
pub use adit_socks::{Command, Reply};
pub use adit_wire::{Host, Target, TargetError};
pub use error::Error;
pub use server::{AcceptedClient, Protocol, accept};
pub use target::IntoTarget;
pub use users::Users;
