//! The load of the process for the reports of the node: rates, failures and the time of handshakes.

use std::collections::VecDeque;
use std::time::Duration;

use adit_engine::{Engine, HistogramStats};
use tokio::time::Instant;

/// Time over which rates are measured.
const RATE_WINDOW: Duration = Duration::from_secs(10);
/// Time over which failures and handshakes are counted.
const ERROR_WINDOW: Duration = Duration::from_secs(60);

/// The counters of the process at one time.
#[derive(Debug, Clone, Default)]
struct Sample {
    bytes: [u64; 2],
    rejects: u64,
    /// Upper bounds in microseconds, each with the number of handshakes up to it.
    handshakes: Vec<(u64, u64)>,
    handshake_count: u64,
}

/// The load of the last minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) up_per_second: u64,
    pub(crate) down_per_second: u64,
    pub(crate) errors_per_10000: u32,
    pub(crate) handshake_p99_us: u64,
}

/// Samples of the counters.
#[derive(Debug, Default)]
pub(crate) struct LoadMeter(VecDeque<(Instant, Sample)>);

impl LoadMeter {
    /// Adds a sample, and returns the load.
    pub(crate) fn sample(&mut self, engine: &Engine) -> Load {
        let now = Instant::now();
        let sample = Sample::of(engine);
        let at = |window: Duration| {
            let mut older = self.0.iter();
            older.find(|(time, _)| now.duration_since(*time) <= window)
        };
        let mut load = Load::default();
        if let Some((time, before)) = at(RATE_WINDOW) {
            let millis = now.duration_since(*time).as_millis().max(1);
            let rate = |now: u64, before: u64| {
                let added = u128::from(now.saturating_sub(before)) * 1000;
                u64::try_from(added / millis).unwrap_or(u64::MAX)
            };
            let ([up, down], [up_before, down_before]) = (sample.bytes, before.bytes);
            load.up_per_second = rate(up, up_before);
            load.down_per_second = rate(down, down_before);
        }
        if let Some((_, before)) = at(ERROR_WINDOW) {
            load.errors_per_10000 = sample.errors_since(before);
            load.handshake_p99_us = sample.handshake_p99_since(before);
        }
        self.0.push_back((now, sample));
        while let Some((time, _)) = self.0.front()
            && now.duration_since(*time) > ERROR_WINDOW
        {
            self.0.pop_front();
        }
        load
    }
}

impl Sample {
    fn of(engine: &Engine) -> Self {
        let mut sample = Self::default();
        for (_, counts) in engine.listener_counts() {
            let [up, down] = &mut sample.bytes;
            *up = up.saturating_add(counts.up);
            *down = down.saturating_add(counts.down);
        }
        for (_, stats) in engine.stage_stats() {
            let rejects = stats.rejects.iter().map(|(_, count)| count);
            let failures = stats.dial_failures.iter().map(|(_, count)| count);
            sample.rejects += rejects.chain(failures).sum::<u64>();
            sample.add_handshakes(&stats.handshake);
        }
        sample
    }

    fn add_handshakes(&mut self, stats: &HistogramStats) {
        self.handshake_count += stats.count;
        for (bound, count) in &stats.buckets {
            let bound = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
            match self
                .handshakes
                .iter_mut()
                .find(|(known, _)| *known == bound)
            {
                Some((_, sum)) => *sum += count,
                None => self.handshakes.push((bound, *count)),
            }
        }
    }

    fn errors_since(&self, before: &Self) -> u32 {
        let rejects = self.rejects.saturating_sub(before.rejects);
        let served = self.handshake_count.saturating_sub(before.handshake_count);
        let all = rejects.saturating_add(served).max(1);
        let part = u128::from(rejects) * 10_000 / u128::from(all);
        u32::try_from(part).unwrap_or(10_000)
    }

    /// Returns the bound that 99 of 100 handshakes keep.
    fn handshake_p99_since(&self, before: &Self) -> u64 {
        let count = self.handshake_count.saturating_sub(before.handshake_count);
        if count == 0 {
            return 0;
        }
        let within = |(bound, sum): &(u64, u64)| {
            let known = before.handshakes.iter().find(|(known, _)| known == bound);
            sum.saturating_sub(known.map_or(0, |(_, sum)| *sum))
        };
        let found = self
            .handshakes
            .iter()
            .find(|bucket| u128::from(within(bucket)) * 100 >= u128::from(count) * 99);
        found.map_or(u64::MAX, |(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_added_counts() {
        let sample = |rejects, counts: [u64; 3]| Sample {
            rejects,
            handshakes: vec![(500, counts[0]), (2000, counts[1])],
            handshake_count: counts[2],
            ..Sample::default()
        };
        let (before, now) = (sample(5, [100, 100, 100]), sample(6, [198, 199, 199]));
        assert_eq!(now.errors_since(&before), 100);
        assert_eq!(now.handshake_p99_since(&before), 2000);
        assert_eq!(now.handshake_p99_since(&now), 0);
        assert_eq!(sample(0, [0, 0, 10]).handshake_p99_since(&before), 0);
        assert_eq!(
            sample(0, [100, 100, 150]).handshake_p99_since(&before),
            u64::MAX
        );
    }
}
