//! A histogram of durations that threads add to without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds: from a connection on the same machine to the usual time limits.
const BOUNDS: [u64; 12] = [
    500, 2_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    10_000_000,
];

/// Counts durations in buckets.
#[derive(Debug, Default)]
pub(crate) struct DurationHistogram {
    buckets: [AtomicU64; BOUNDS.len()],
    /// Durations above all bounds.
    above: AtomicU64,
    /// Sum, in microseconds.
    sum: AtomicU64,
}

/// The counts of a histogram at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramStats {
    /// Upper bounds of the buckets, each with the number of durations up to it.
    pub buckets: Vec<(Duration, u64)>,
    /// Number of durations.
    pub count: u64,
    /// Sum of all durations.
    pub sum: Duration,
}

impl DurationHistogram {
    /// Counts a duration.
    pub(crate) fn record(&self, duration: Duration) {
        // More than half a million years are not measured.
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| *bound < micros);
        let bucket = self.buckets.get(at).unwrap_or(&self.above);
        bucket.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns the current counts. Several threads add while they are read, so that the sum may lag behind.
    pub(crate) fn stats(&self) -> HistogramStats {
        let mut count = 0;
        let buckets = BOUNDS.iter().zip(&self.buckets);
        let buckets = buckets.map(|(bound, bucket)| {
            count += bucket.load(Ordering::Relaxed);
            (Duration::from_micros(*bound), count)
        });
        HistogramStats {
            buckets: buckets.collect(),
            count: count + self.above.load(Ordering::Relaxed),
            sum: Duration::from_micros(self.sum.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_its_bucket_and_all_later_ones() {
        let histogram = DurationHistogram::default();
        for micros in [0, 500, 501, 250_000, 10_000_000, 10_000_001] {
            histogram.record(Duration::from_micros(micros));
        }
        let stats = histogram.stats();
        let up_to = |micros| {
            let bound = Duration::from_micros(micros);
            let found = stats.buckets.iter().find(|(known, _)| *known == bound);
            found.map(|(_, count)| *count)
        };
        assert_eq!(up_to(500), Some(2));
        assert_eq!(up_to(2_000), Some(3));
        assert_eq!(up_to(100_000), Some(3));
        assert_eq!(up_to(250_000), Some(4));
        assert_eq!(up_to(10_000_000), Some(5));
        assert_eq!(stats.count, 6);
        assert_eq!(stats.sum, Duration::from_micros(20_251_002));
    }

    #[test]
    fn bounds_ascend() {
        assert!(BOUNDS.is_sorted_by(|a, b| a < b));
    }
}
