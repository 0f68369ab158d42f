//! Parser for times on the command line.

use std::time::Duration;

/// Parses a time of at least one second: `90s`, `30m`, `1h`.
///
/// # Errors
/// A message with the expected form.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    adit_config::parse_duration(text)
        .filter(|time| *time >= Duration::from_secs(1))
        .ok_or_else(|| "expected a time like `90s`, `30m` or `1h`".to_owned())
}
