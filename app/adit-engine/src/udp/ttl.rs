//! How long associations live.

use std::time::Duration;

/// How long associations are kept without traffic.
#[derive(Debug, Clone, Copy)]
pub struct Ttl {
    /// Any traffic.
    pub idle: Duration,
    /// Associations that only asked for names (port 53).
    pub dns: Duration,
}
