//! The server side: authenticates users and yields their requests.

mod accept;
mod config;
mod connection;
mod forward;
mod incoming;
mod policy;
mod session;

pub use accept::Server;
pub use config::ServerConfig;
pub use connection::{Connection, ServerHandle};
pub use forward::{ForwardPlace, ForwardRequest};
pub use incoming::{Incoming, SessionOpening};
pub use policy::{AuthPolicy, Proof};
pub use session::{Reply, ServerSession, SessionControl, SessionRequest};
