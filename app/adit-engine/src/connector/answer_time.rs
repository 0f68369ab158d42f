//! The usual answer time of a group member.

use std::time::Duration;

/// Usual time of a member that has not been measured.
const UNMEASURED: Duration = Duration::from_millis(400);
/// Minimum of the usual time.
const MIN_USUAL: Duration = Duration::from_millis(250);
/// Maximum of the usual time.
const MAX_USUAL: Duration = Duration::from_secs(3);

/// A smoothed estimate of the time from the start of a request to its first answer, as the round trip time of
/// TCP is estimated (RFC 6298 section 2).
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct AnswerTime {
    /// Mean and deviation, once there is a sample.
    measured: Option<(Duration, Duration)>,
}

impl AnswerTime {
    /// Adds a sample.
    pub(super) fn add_sample(&mut self, sample: Duration) {
        // A target that needs minutes says nothing about the server.
        let sample = sample.min(MAX_USUAL);
        self.measured = Some(match self.measured {
            None => (sample, sample / 2),
            Some((mean, deviation)) => (
                (mean * 7 + sample) / 8,
                (deviation * 3 + mean.abs_diff(sample)) / 4,
            ),
        });
    }

    /// Returns the mean.
    pub(super) fn mean(&self) -> Option<Duration> {
        self.measured.map(|(mean, _)| mean)
    }

    /// Returns the time within which nearly all answers arrive, from 250 ms to 3 s.
    pub(super) fn usual(&self) -> Duration {
        self.measured.map_or(UNMEASURED, |(mean, deviation)| {
            (mean + deviation * 4).clamp(MIN_USUAL, MAX_USUAL)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples: &[u64]) -> AnswerTime {
        let mut time = AnswerTime::default();
        for millis in samples {
            time.add_sample(Duration::from_millis(*millis));
        }
        time
    }

    #[test]
    fn the_usual_time_follows_the_samples_within_bounds() {
        assert_eq!(after(&[]).usual(), UNMEASURED);
        assert_eq!(after(&[1]).usual(), MIN_USUAL);
        assert_eq!(after(&[400]).usual(), Duration::from_millis(1200));
        assert_eq!(after(&[100_000; 9]).mean(), Some(MAX_USUAL));
        assert_eq!(after(&[100_000; 9]).usual(), MAX_USUAL);
        let steady = after(&[400; 40]);
        assert_eq!(steady.mean(), Some(Duration::from_millis(400)));
        assert!(steady.usual() < Duration::from_millis(410), "{steady:?}");
        let mut slower = steady;
        slower.add_sample(Duration::from_millis(1200));
        assert_eq!(slower.mean(), Some(Duration::from_millis(500)));
        assert!(slower.usual() > Duration::from_millis(1200), "{slower:?}");
    }
}
