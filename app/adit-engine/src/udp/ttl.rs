//! Lifetimes of associations.

use std::time::Duration;

/// Idle timeouts of associations.
#[derive(Debug, Clone, Copy)]
pub struct AssociationTtl {
    /// Timeout of associations with any traffic.
    pub idle: Duration,
    /// Timeout of associations that only sent DNS queries (port 53).
    pub dns: Duration,
}
