//! Log lines of failed logins (user, source, methods), and a limit on their rate.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use adit_wire::Time;

/// Maximum number of lines per [`RATE_WINDOW`].
const MAX_LINES: u32 = 60;
/// Time window of the rate limit.
const RATE_WINDOW: Duration = Duration::from_secs(60);
/// Maximum length of a logged user name, in characters.
const MAX_USER_LEN: usize = 64;
/// Maximum number of logged methods per connection.
const MAX_METHODS: usize = 4;

/// The login attempts of one connection.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct LoginAttempts {
    user: String,
    methods: Vec<&'static str>,
    count: u32,
}

impl LoginAttempts {
    /// Records an attempt; only the last user name is kept.
    pub(super) fn record_attempt(&mut self, user: &str, method: &'static str) {
        if self.count == 0 || self.user != user {
            self.user = user.chars().take(MAX_USER_LEN).collect();
        }
        self.count = self.count.saturating_add(1);
        if !self.methods.contains(&method) && self.methods.len() < MAX_METHODS {
            self.methods.push(method);
        }
    }

    /// Returns the text for the log, if there were attempts. It cannot end the line or control a terminal.
    pub(super) fn describe_attempts(&self) -> Option<String> {
        let methods = self.methods.join(", ");
        let times = match self.count {
            0 => return None,
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        Some(format!("{:?} tried {methods} ({times})", self.user))
    }
}

/// A rate limit for log lines.
#[derive(Debug, Default)]
pub(super) struct LogRateLimit(Mutex<RateWindow>);

#[derive(Debug, Default)]
struct RateWindow {
    since: Time,
    lines: u32,
    suppressed: u64,
}

impl LogRateLimit {
    /// Returns the number of lines suppressed before this one, or `None` if this one is suppressed too.
    pub(super) fn admit_line(&self, now: Time) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(window.since) >= RATE_WINDOW {
            (window.since, window.lines) = (now, 0);
        }
        if window.lines >= MAX_LINES {
            window.suppressed = window.suppressed.saturating_add(1);
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_is_one_line_of_plain_text() {
        let mut tries = LoginAttempts::default();
        assert_eq!(tries.describe_attempts(), None);
        tries.record_attempt("root\n1.2.3.4: ann is in\u{1b}[2J", "none");
        tries.record_attempt(&"x".repeat(1000), "password");
        tries.record_attempt("root\n\u{1b}\u{202e}", "password");
        let told = tries.describe_attempts().unwrap();
        assert_eq!(
            told,
            r#""root\n\u{1b}\u{202e}" tried none, password (3 times)"#
        );
        tries.record_attempt(&"x".repeat(1000), "publickey");
        assert!(tries.describe_attempts().unwrap().len() < 150);
    }

    #[test]
    fn lines_are_few_and_those_left_out_are_counted() {
        let rate = LogRateLimit::default();
        let at = |seconds: u64| Time(1_000_000 * (1000 + seconds));
        let lines = (0..500)
            .filter(|_| rate.admit_line(at(0)).is_some())
            .count();
        assert_eq!(lines, 60);
        assert_eq!(rate.admit_line(at(59)), None);
        assert_eq!(rate.admit_line(at(60)), Some(441));
        assert_eq!(rate.admit_line(at(61)), Some(0));
    }
}
