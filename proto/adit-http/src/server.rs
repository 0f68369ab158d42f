//! The server's side: the protocol of an HTTP proxy listener.

mod forward;
mod head;
mod refusal;

use adit_wire::Target;

pub use head::RequestHandshake;
pub use refusal::{Refusal, explained_failure, failure_response};

use crate::Framing;

/// The answer to CONNECT once the tunnel is established; raw bytes follow.
pub const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// The users of a listener.
pub trait BasicAuth: Send + Sync {
    /// True if a password is required.
    fn is_required(&self) -> bool;

    /// True if the pair is correct. Implementations must take the same time for all users and
    /// passwords of the same lengths. Both are opaque bytes and may be empty.
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool;
}

/// A client's complete request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Open a tunnel; answer with [`ESTABLISHED`] or [`failure_response`]. All following bytes belong to the
    /// tunnel.
    Connect {
        /// The target.
        target: Target,
        /// The user, if a password was required; it was correct.
        user: Option<Vec<u8>>,
    },
    /// Forward one request to its origin and one response back.
    Forward {
        /// The origin.
        target: Target,
        /// The user, if a password was required; it was correct.
        user: Option<Vec<u8>>,
        /// The rewritten head, ready to be sent.
        head: Vec<u8>,
        /// The body that follows in the client's stream, to be forwarded unchanged.
        body: Framing,
        /// True if the client requests an upgrade to WebSocket; the head requests it too.
        upgrade: bool,
        /// True if the method is HEAD, whose response has no body.
        head_request: bool,
        /// True if the client may send another request on this connection ([`crate::body::keep_alive_codecs`]).
        keep: bool,
    },
}
