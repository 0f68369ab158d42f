//! The client side.
//!
//! [`connect()`] exchanges keys and asks the application's [`Handler`] to check the host key. The
//! [`Handle`] authenticates the user and opens channels. A task per session reads messages, calls the
//! handler, and passes messages to the channels.

mod config;
mod connect;
mod handle;
mod handler;
mod login_request;
mod login_task;
mod session;
mod signer_login;
mod task;

pub use config::Config;
pub use connect::{connect, connect_stream};
pub use handle::Handle;
pub use handler::{DisconnectReason, Handler, RemoteDisconnectInfo};
pub use login_request::{KeyboardInteractiveAuthResponse, Prompt};
pub use session::Session;

pub use crate::AuthResult;
/// The reply to a channel that the server asks for.
pub use crate::channel::ChannelOpenHandle;

/// Marks a client's [`Channel`](crate::Channel).
#[derive(Debug)]
#[non_exhaustive]
pub struct Msg;
