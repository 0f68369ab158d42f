//! The server's side: what a listener for HTTP proxying speaks.

mod forward;
mod head;
mod refusal;

use adit_wire::Target;

pub use head::Head;
pub use refusal::{Refusal, explained, failure};

use crate::Framing;

/// The answer to CONNECT when the tunnel stands; raw bytes follow.
pub const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Who may use the listener.
pub trait BasicAuth: Send + Sync {
    /// Whether a password is demanded.
    fn required(&self) -> bool;

    /// Whether the pair is right. Must take the same time for every user and password of the
    /// same lengths. Both are opaque bytes and may be empty.
    fn check(&self, user: &[u8], password: &[u8]) -> bool;
}

/// A complete request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Open a tunnel; answer [`ESTABLISHED`] or [`failure`]. All that follows is the tunnel's.
    Connect {
        /// Where to.
        target: Target,
        /// The user, if a password was demanded: it was right.
        user: Option<Vec<u8>>,
    },
    /// Forward one request to its origin and one response back.
    Forward {
        /// The origin.
        target: Target,
        /// The user, if a password was demanded: it was right.
        user: Option<Vec<u8>>,
        /// The rewritten head, ready to be sent.
        head: Vec<u8>,
        /// The body that follows in the client's stream, forwarded as it stands.
        body: Framing,
        /// Whether the client wants to go on with WebSocket and the head says so.
        upgrade: bool,
        /// Whether the method is HEAD, whose response has no body.
        head_request: bool,
        /// Whether the client may ask again on this connection ([`crate::body::kept`]).
        keep: bool,
    },
}
