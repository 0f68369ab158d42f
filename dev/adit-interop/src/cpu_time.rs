//! CPU time of the calling thread, and the cost of small operations.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of the calling thread.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Returns the CPU time of the calling thread, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> f64 {
    thread_cpu_time().as_nanos() as f64
}

/// The batches of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct BatchTiming {
    /// Number of batches, the fastest of which counts.
    pub batches: usize,
    /// CPU time of a batch, in nanoseconds.
    pub batch_ns: f64,
    /// Numbers of calls in the two trial batches, which determine the calls per batch.
    pub trial_calls: [u32; 2],
}

impl BatchTiming {
    /// Returns the CPU time of one call, in nanoseconds: the average of the fastest batch.
    ///
    /// A batch has at most a million calls. `call` receives the number of the batch, starting at 0.
    pub fn measure_call(&self, mut call: impl FnMut(usize)) -> f64 {
        let mut run_batch = |index: usize, count: u32| {
            let start = thread_cpu_ns();
            for _ in 0..count {
                call(index);
            }
            (thread_cpu_ns() - start) / f64::from(count)
        };
        let [first, second] = self.trial_calls;
        let estimate = run_batch(0, first).min(run_batch(0, second));
        let count = (self.batch_ns / estimate).clamp(1.0, 1e6) as u32;
        (0..self.batches)
            .map(|index| run_batch(index, count))
            .fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_costs_no_cpu_time_and_work_does() {
        let timing = BatchTiming {
            batches: 3,
            batch_ns: 1e5,
            trial_calls: [1, 2],
        };
        let mut last = 0;
        let sleeping = timing.measure_call(|index| {
            last = index;
            std::thread::sleep(Duration::from_millis(1));
        });
        assert!(sleeping < 500e3, "{sleeping} ns");
        assert_eq!(last, 2);
        let work = |len: u64| {
            timing.measure_call(|_| {
                std::hint::black_box(hash_up_to(len));
            })
        };
        assert!(work(100_000) > 10.0 * work(1000));
    }

    fn hash_up_to(len: u64) -> u64 {
        (0..len).fold(7, |sum, n| {
            std::hint::black_box(sum ^ n).wrapping_mul(0x0100_0000_01b3)
        })
    }
}
