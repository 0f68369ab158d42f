//! The server side.
//!
//! A [`Server`] creates a [`Handler`] for each connection; [`run_stream`] serves one connection. A task
//! per connection asks the handler to authenticate the user, then calls it for the client's requests.
//! The [`Session`] replies immediately, a [`Handle`] from other tasks.

mod config;
mod handle;
mod handler;
mod handler_policy;
mod session;
mod stream;
mod task;
mod tcp_server;

pub use config::Config;
pub use handle::Handle;
pub use handler::Handler;
pub use handler_policy::{Auth, PublicKeyOffer, Response, VerifiedPublicKey};
pub use session::Session;
pub use stream::{RunningSession, run_stream};
pub use tcp_server::{RunningServer, RunningServerHandle, Server};

/// The reply to a channel that the client asks for.
pub use crate::channel::ChannelOpenHandle;

/// Marks a server's [`Channel`](crate::Channel).
#[derive(Debug)]
#[non_exhaustive]
pub struct Msg;
