//! What a client asked for, and who it is.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use adit_wire::Target;

use crate::account::Account;

/// A boxed future: one is made when a connection is born, none afterwards.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The two ends of an accepted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Where the client comes from.
    pub remote: SocketAddr,
    /// Which of our addresses it came to.
    pub local: SocketAddr,
}

/// What a client asked for: immutable once it is made.
#[derive(Debug, Clone)]
pub struct Request {
    /// Where it wants to go.
    pub target: Target,
    /// Bytes that came inside the request itself and go to the target first.
    pub first: Vec<u8>,
    /// The user, as the client named itself.
    pub user: Option<String>,
    /// What the user's session is counted on, and what ends it, where users can be removed.
    pub account: Option<Arc<Account>>,
}

impl Request {
    /// A request without user and first bytes.
    #[must_use]
    pub const fn to(target: Target) -> Self {
        Self {
            target,
            first: Vec::new(),
            user: None,
            account: None,
        }
    }
}
