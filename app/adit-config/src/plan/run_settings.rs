//! Settings of the process that runs a plan.

use core::time::Duration;

/// Time that open connections have to end after SIGTERM, unless the file says otherwise.
const DEFAULT_DRAIN: Duration = Duration::from_secs(30);

/// The settings of `[run]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSettings {
    /// True if changes of the file, and of files that it refers to, are applied without a signal.
    pub watch: bool,
    /// Time that open connections have to end after SIGTERM.
    pub drain: Duration,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            watch: false,
            drain: DEFAULT_DRAIN,
        }
    }
}
