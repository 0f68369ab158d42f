//! The pauses of servers that fail.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The first pause.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Time for which a server that could not be reached is not connected to again. This does not depend on names, so it
/// holds for all of them.
const UNREACHABLE: Duration = Duration::from_secs(1);

/// The state of a server: after failures, it is queried last for a while.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// The pause after the last failure; zero after an answer.
    pause: Duration,
    until: Option<Instant>,
    /// The reason why the server could not be reached, and the time until which it is not tried again.
    unreachable: Option<(Arc<str>, Instant)>,
}

impl Health {
    /// Ends the pause, and returns true if the server had failed.
    pub(super) fn succeeded(&mut self) -> bool {
        let before = std::mem::take(self);
        before.until.is_some()
    }

    /// Keeps the reason why the server could not be reached.
    pub(super) fn set_unreachable(&mut self, why: Arc<str>, now: Instant) {
        self.unreachable = Some((why, now + UNREACHABLE));
    }

    /// Returns the reason why the server could not be reached, while it is not tried again.
    pub(super) fn unreachable(&self, now: Instant) -> Option<Arc<str>> {
        let (why, until) = self.unreachable.as_ref()?;
        (*until > now).then(|| why.clone())
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
        assert!(health.succeeded() && !health.succeeded());
        health.failed(now);
        assert!(!health.is_paused(now + Duration::from_secs(1)));
        health.set_unreachable("refused".into(), now);
        assert_eq!(health.unreachable(now).as_deref(), Some("refused"));
        assert_eq!(health.unreachable(now + UNREACHABLE), None);
    }
}
