//! Times as they are typed.

use std::time::Duration;

/// Reads a time of at least a second: `90s`, `30m`, `1h`.
///
/// # Errors
/// What was expected.
pub fn read_time(text: &str) -> Result<Duration, String> {
    adit_config::parse_duration(text)
        .filter(|time| *time >= Duration::from_secs(1))
        .ok_or_else(|| "expected a time like `90s`, `30m` or `1h`".to_owned())
}
