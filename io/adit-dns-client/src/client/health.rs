//! The pauses of servers that fail.

use std::time::Duration;

use tokio::time::Instant;

/// The first pause.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The state of a server: after failures, it is queried last for a while.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// The pause after the last failure; zero after an answer.
    pause: Duration,
    until: Option<Instant>,
}

impl Health {
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Starts a pause, twice as long as the last one. Failures during a pause are those of queries that were
    /// sent before, or when all servers had failed.
    pub(super) fn failed(&mut self, now: Instant) {
        if self.is_paused(now) {
            return;
        }
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, MAX_PAUSE);
        self.until = Some(now + self.pause);
    }

    pub(super) fn is_paused(&self, now: Instant) -> bool {
        self.paused_until(now).is_some()
    }

    /// Returns the end of the pause, if there is one now.
    pub(super) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_an_answer() {
        let mut health = Health::default();
        let mut now = Instant::now();
        assert!(!health.is_paused(now));
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            health.failed(now);
            health.failed(now + Duration::from_millis(10));
            let end = now + Duration::from_secs(seconds);
            assert!(
                health.is_paused(end - Duration::from_millis(1)),
                "{seconds}"
            );
            assert!(!health.is_paused(end), "{seconds}");
            now = end;
        }
        health.succeeded();
        health.failed(now);
        assert!(!health.is_paused(now + Duration::from_secs(1)));
    }
}
