//! The server side: authenticates users and yields their requests.

mod accept;
mod config;
mod connection;
mod forward_request;
mod incoming;
mod policy;
mod session;

pub use accept::Server;
pub use config::ServerConfig;
pub use connection::{Connection, ServerHandle};
pub use forward_request::{ForwardAddress, ForwardRequest};
pub use incoming::{Incoming, IncomingSession};
pub use policy::{AuthPolicy, KeyProof};
pub use session::{RequestReply, ServerSession, SessionControl, SessionRequest};
