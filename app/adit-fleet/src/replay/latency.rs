//! The usual duration of calls, from those of the last minute.

use std::time::Duration;

use tokio::time::Instant;

/// Time after which a generation is complete; two of them are remembered.
const GENERATION: Duration = Duration::from_secs(30);
/// Number of classes: two per power of two, in microseconds, up to half an hour.
const CLASSES: usize = 64;

/// A histogram of the durations of the last 30 to 60 seconds.
pub(super) struct LatencyWindow {
    since: Instant,
    current: [u32; CLASSES],
    previous: [u32; CLASSES],
}

impl LatencyWindow {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            current: [0; CLASSES],
            previous: [0; CLASSES],
        }
    }

    pub(super) fn record(&mut self, duration: Duration, now: Instant) {
        self.rotate(now);
        if let Some(count) = self.current.get_mut(class_of(duration)) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns the 99th percentile, rounded up by at most a half; `None` without durations.
    pub(super) fn p99(&mut self, now: Instant) -> Option<Duration> {
        self.rotate(now);
        let counts = self.current.iter().zip(&self.previous);
        let counts = counts.map(|(a, b)| u64::from(*a) + u64::from(*b));
        let total: u64 = counts.clone().sum();
        let mut above = total / 100;
        for (class, count) in counts.enumerate().rev() {
            if count > above {
                return Some(upper_bound(class));
            }
            above -= count;
        }
        None
    }

    fn rotate(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.since);
        if age < GENERATION {
            return;
        }
        let last = std::mem::replace(&mut self.current, [0; CLASSES]);
        self.previous = if age < 2 * GENERATION {
            last
        } else {
            [0; CLASSES]
        };
        self.since = now;
    }
}

/// Returns the class of a duration: classes 2n and 2n + 1 are the halves of what is below 2^n µs and from 2^(n-1) µs on.
fn class_of(duration: Duration) -> usize {
    let bounds = 0..CLASSES;
    let mut bounds = bounds.filter(|class| duration <= upper_bound(*class));
    bounds.next().unwrap_or(CLASSES - 1)
}

/// Returns the longest duration of a class.
fn upper_bound(class: usize) -> Duration {
    let power = 1_u64 << (class / 2).min(40);
    let micros = if class.is_multiple_of(2) {
        power * 3 / 4
    } else {
        power
    };
    Duration::from_micros(micros.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_hundredth_is_left_out() {
        let now = Instant::now();
        let mut window = LatencyWindow::new(now);
        assert_eq!(window.p99(now), None);
        window.record(ms(10), now);
        let one = window.p99(now).unwrap();
        assert!((ms(10)..=ms(14)).contains(&one), "{one:?}");
        for _ in 0..298 {
            window.record(ms(10), now);
        }
        window.record(ms(900), now);
        assert_eq!(window.p99(now), Some(one));
        for _ in 0..4 {
            window.record(ms(900), now);
        }
        assert!(window.p99(now).unwrap() >= ms(900));
    }

    #[tokio::test(start_paused = true)]
    async fn durations_are_forgotten_after_a_minute() {
        let now = Instant::now();
        let mut window = LatencyWindow::new(now);
        window.record(ms(200), now);
        assert!(window.p99(now + ms(31_000)).is_some());
        assert!(window.p99(now + ms(59_000)).is_some());
        assert!(window.p99(now + ms(62_000)).is_none());
        let mut window = LatencyWindow::new(now);
        window.record(ms(200), now);
        assert!(window.p99(now + ms(61_000)).is_none());
    }

    #[test]
    fn classes_are_in_order() {
        for class in 2..CLASSES - 1 {
            let bound = upper_bound(class);
            assert!(bound <= upper_bound(class + 1));
            assert!(upper_bound(class_of(bound)) == bound, "{class}");
        }
        assert_eq!(class_of(Duration::ZERO), 0);
        assert_eq!(class_of(Duration::from_secs(1_000_000)), CLASSES - 1);
    }
}
