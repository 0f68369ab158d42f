//! The client's side.
//!
//! [`connect`] exchanges keys and asks the program's [`Handler`] about the server's; the
//! [`Handle`] logs the user in and opens channels. A task of the session reads what comes, tells
//! the handler, and puts it into the channels.

mod auth;
mod config;
mod connect;
mod handle;
mod handler;
mod login;
mod run;
mod session;

pub use config::Config;
pub use connect::{connect, connect_stream};
pub use handle::Handle;
pub use handler::{DisconnectReason, Handler, RemoteDisconnectInfo};
pub use login::{KeyboardInteractiveAuthResponse, Prompt};
pub use session::Session;

pub use crate::AuthResult;
/// The answer to a channel that the server wants.
pub use crate::channel::ChannelOpenHandle;

/// Marks a [`Channel`](crate::Channel) of a client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Msg;
