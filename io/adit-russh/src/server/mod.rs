//! The server's side.
//!
//! A [`Server`] makes a [`Handler`] for each connection; [`run_stream`] takes one connection in. A
//! task of the connection asks the handler who may come in, then tells it what the client wants;
//! the [`Session`] answers at once, a [`Handle`] from other tasks.

mod auth;
mod config;
mod handle;
mod handler;
mod listen;
mod run;
mod session;
mod stream;

pub use auth::{Auth, PublicKeyOffer, Response, VerifiedPublicKey};
pub use config::Config;
pub use handle::Handle;
pub use handler::Handler;
pub use listen::{RunningServer, RunningServerHandle, Server};
pub use session::Session;
pub use stream::{RunningSession, run_stream};

/// The answer to a channel that the client wants.
pub use crate::channel::ChannelOpenHandle;

/// Marks a [`Channel`](crate::Channel) of a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct Msg;
