//! The times of deliveries: time limits, and the waits after failures.

use std::time::Duration;

/// The times of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookTiming {
    /// The time limit of a request.
    pub request: Duration,
    /// The wait after the first failure, which doubles with each further one.
    pub first_wait: Duration,
    /// The longest wait after a failure.
    pub longest_wait: Duration,
    /// The age from which on an event is not delivered any more.
    pub oldest: Duration,
    /// Interval at which the states of users are compared.
    pub watch: Duration,
}

impl Default for WebhookTiming {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(10),
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(300),
            oldest: Duration::from_secs(3 * 86_400),
            watch: Duration::from_secs(1),
        }
    }
}
