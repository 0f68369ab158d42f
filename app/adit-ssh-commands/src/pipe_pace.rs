//! Pacing of reads from and writes to a pipe that another program uses.
//!
//! A reader that reads as soon as there is data wakes for every write of the other program, and a writer that
//! writes as soon as there is space wakes for every read. Once a flow is fast, the pipe is enlarged, and its
//! reader lets it fill to half before the next read; its writer lets it drain by as much.

use std::time::{Duration, Instant};

use adit_wire::u64_from;

use crate::channel_pipes::AsStream;

/// Amount of data over which the rate is measured, in bytes.
const PACE_WINDOW: u64 = 2 << 20;
/// Maximum time for [`PACE_WINDOW`] in a fast flow: 16 MiB/s. Slower flows are not paced.
const FAST_WINDOW_TIME: Duration = Duration::from_millis(125);
/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_millis(3);
/// Requested capacity of the pipe of a fast flow, in bytes.
#[cfg(target_os = "linux")]
const FAST_PIPE_SIZE: usize = 1 << 20;

/// Computes the pauses of one reader or writer.
#[derive(Debug, Default)]
pub(super) struct PipePacer {
    moved: u64,
    since: Option<Instant>,
    /// Half the capacity of the pipe, in bytes; 0 if it is not a pipe. Set when first needed.
    half: Option<u64>,
    pause: Duration,
}

impl PipePacer {
    /// Returns true if the flow is fast enough for pauses.
    pub(super) const fn is_fast(&self) -> bool {
        !self.pause.is_zero()
    }

    /// Records a read of `n` bytes. Returns the pause before the next read, if this one drained the pipe and the
    /// flow is fast.
    pub(super) fn pause_after_read(&mut self, n: usize, pipe: impl AsStream) -> Option<Duration> {
        let n = self.measure(n, pipe);
        let drained = self.half.is_some_and(|half| n < half / 2);
        (drained && self.is_fast()).then_some(self.pause)
    }

    /// Records a write of `n` of `offered` bytes. Returns the pause before the next write, if this one filled the
    /// pipe and the flow is fast.
    pub(super) fn pause_after_write(
        &mut self,
        n: usize,
        offered: usize,
        pipe: impl AsStream,
    ) -> Option<Duration> {
        self.measure(n, pipe);
        (n < offered && self.is_fast()).then_some(self.pause)
    }

    /// Counts `n` bytes and measures the rate; returns `n`.
    fn measure(&mut self, n: usize, pipe: impl AsStream) -> u64 {
        let n = u64_from(n);
        self.moved += n;
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.moved >= PACE_WINDOW {
            let time = since.elapsed();
            self.pause = Duration::ZERO;
            if time <= FAST_WINDOW_TIME {
                let half = self.half.get_or_insert_with(|| widen_pipe(pipe) / 2);
                self.pause = fill_time(*half, self.moved, time);
            }
            (self.moved, self.since) = (0, None);
        }
        n
    }
}

/// Returns the time that a flow of `bytes` per `time` takes for `half`, up to [`MAX_PAUSE`].
fn fill_time(half: u64, bytes: u64, time: Duration) -> Duration {
    let share = u128::from(half) * time.as_nanos() / u128::from(bytes.max(1));
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX)).min(MAX_PAUSE)
}

/// Enlarges a pipe for a fast flow. Returns its capacity, in bytes; 0 if it is not a pipe.
#[cfg(target_os = "linux")]
pub(super) fn widen_pipe(pipe: impl AsStream) -> u64 {
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    let Ok(size) = fcntl_getpipe_size(&pipe) else {
        return 0;
    };
    let size = match size < FAST_PIPE_SIZE {
        // Fails if the user's limit of pipe memory is reached; the present size works too.
        true => fcntl_setpipe_size(&pipe, FAST_PIPE_SIZE).unwrap_or(size),
        false => size,
    };
    u64::try_from(size).unwrap_or(0)
}

/// Returns 0: other systems do not report the capacity.
#[cfg(not(target_os = "linux"))]
pub(super) fn widen_pipe(_: impl AsStream) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_follow_the_rate() {
        let (half, ms) = (512 << 10, Duration::from_millis);
        assert_eq!(fill_time(half, PACE_WINDOW, ms(100)), MAX_PAUSE);
        assert_eq!(
            fill_time(half, PACE_WINDOW, ms(2)),
            Duration::from_micros(500)
        );
        assert_eq!(fill_time(0, PACE_WINDOW, ms(2)), Duration::ZERO);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_fast_pipes_are_let_fill() {
        let (read, write) = std::io::pipe().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let window = usize::try_from(PACE_WINDOW).unwrap();
        let mut pace = PipePacer::default();
        assert_eq!(pace.pause_after_read(1000, &read), None, "not measured yet");
        assert_eq!(
            pace.pause_after_read(window, &read),
            None,
            "it may hold more"
        );
        let half = widen_pipe(&read) / 2;
        assert!(half >= 32 << 10 && pace.half == Some(half));
        let pause = pace.pause_after_read(1000, &read).unwrap();
        assert!(pause <= MAX_PAUSE && pace.is_fast(), "{pause:?}");
        let mut writer = PipePacer::default();
        assert_eq!(
            writer.pause_after_write(1000, 9000, &write),
            None,
            "not measured yet"
        );
        assert_eq!(
            writer.pause_after_write(window, window, &write),
            None,
            "room"
        );
        let pause = writer.pause_after_write(1000, 9000, &write);
        assert!(pause.is_some_and(|pause| pause <= MAX_PAUSE), "{pause:?}");
        let mut other = PipePacer::default();
        for n in [1000, window, 1000, 1000] {
            assert_eq!(other.pause_after_read(n, &null), None, "no pipe");
        }
    }
}
