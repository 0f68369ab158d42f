//! The request of a client, and the addresses of its connection.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use adit_wire::Target;

use crate::user_account::UserAccount;

/// A boxed future. Connections allocate them only while they are set up.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The two ends of an accepted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionAddrs {
    /// Address of the client.
    pub remote: SocketAddr,
    /// Local address that the client connected to.
    pub local: SocketAddr,
}

/// The request of a client. It does not change once created.
#[derive(Debug, Clone)]
pub struct Request {
    /// The requested destination.
    pub target: Target,
    /// Payload that arrived with the request and is sent to the target first.
    pub first_bytes: Vec<u8>,
    /// The user name that the client stated.
    pub user: Option<String>,
    /// The account that counts the user's session and can end it, where users can be removed.
    pub account: Option<Arc<UserAccount>>,
}

impl Request {
    /// Creates a request without a user and without first bytes.
    #[must_use]
    pub const fn for_target(target: Target) -> Self {
        Self {
            target,
            first_bytes: Vec::new(),
            user: None,
            account: None,
        }
    }
}
