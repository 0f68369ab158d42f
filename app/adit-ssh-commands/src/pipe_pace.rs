//! How often a pipe is read that another program fills, or written that another program reads.
//!
//! Whoever reads a pipe as soon as there is something wakes for every write of the other program,
//! and whoever writes as soon as there is room for every read. Once a flow is fast, the pipe is made
//! larger, and its reader lets it fill to the half before it looks again, its writer lets it empty.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use adit_wire::u64_from;

/// How much is looked at together, octets.
const WINDOW: u64 = 2 << 20;
/// The longest time for that much: 16 MiB/s. Slower flows are left alone.
const FAST: Duration = Duration::from_millis(125);
/// The longest pause.
const MOST: Duration = Duration::from_millis(3);
/// What the pipe of a fast flow is to hold, if the system agrees, octets.
#[cfg(target_os = "linux")]
const PIPE: usize = 1 << 20;

/// The pauses of one reader or writer.
#[derive(Debug, Default)]
pub(super) struct Pace {
    moved: u64,
    since: Option<Instant>,
    /// Half of what the pipe holds, octets; 0 if it is none. Not known before it is needed.
    half: Option<u64>,
    pause: Duration,
}

impl Pace {
    /// Whether it is so fast that there are pauses.
    pub(super) const fn is_fast(&self) -> bool {
        !self.pause.is_zero()
    }

    /// `n` octets were read at once: how long to wait before the next read, if the pipe is empty
    /// by that and fills fast.
    pub(super) fn after(&mut self, n: usize, pipe: impl AsFd) -> Option<Duration> {
        let n = self.count(n, pipe);
        let drained = self.half.is_some_and(|half| n < half / 2);
        (drained && self.is_fast()).then_some(self.pause)
    }

    /// `n` of `offered` octets were written at once: how long to wait before the next write, if the
    /// pipe is full by that and empties fast.
    pub(super) fn after_write(
        &mut self,
        n: usize,
        offered: usize,
        pipe: impl AsFd,
    ) -> Option<Duration> {
        self.count(n, pipe);
        (n < offered && self.is_fast()).then_some(self.pause)
    }

    /// Counts, and learns how fast the flow is; gives the number.
    fn count(&mut self, n: usize, pipe: impl AsFd) -> u64 {
        let n = u64_from(n);
        self.moved += n;
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.moved >= WINDOW {
            let time = since.elapsed();
            self.pause = Duration::ZERO;
            if time <= FAST {
                let half = self.half.get_or_insert_with(|| widened(pipe) / 2);
                self.pause = pause(*half, self.moved, time);
            }
            (self.moved, self.since) = (0, None);
        }
        n
    }
}

/// How long a flow of `bytes` in `time` needs for `half`.
fn pause(half: u64, bytes: u64, time: Duration) -> Duration {
    let share = u128::from(half) * time.as_nanos() / u128::from(bytes.max(1));
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX)).min(MOST)
}

/// Makes a pipe hold as much as a fast flow wants; gives how much it holds, octets, 0 for what is
/// no pipe.
#[cfg(target_os = "linux")]
pub(super) fn widened(pipe: impl AsFd) -> u64 {
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    let Ok(size) = fcntl_getpipe_size(&pipe) else {
        return 0;
    };
    let size = match size < PIPE {
        // A user's share of pipe memory is bounded; the present size does as well.
        true => fcntl_setpipe_size(&pipe, PIPE).unwrap_or(size),
        false => size,
    };
    u64::try_from(size).unwrap_or(0)
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn widened(_: impl AsFd) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_follow_the_rate() {
        let (half, ms) = (512 << 10, Duration::from_millis);
        assert_eq!(pause(half, WINDOW, ms(100)), MOST);
        assert_eq!(pause(half, WINDOW, ms(2)), Duration::from_micros(500));
        assert_eq!(pause(0, WINDOW, ms(2)), Duration::ZERO);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_fast_pipes_are_let_fill() {
        let (read, write) = std::io::pipe().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let window = usize::try_from(WINDOW).unwrap();
        let mut pace = Pace::default();
        assert_eq!(pace.after(1000, &read), None, "who knows");
        assert_eq!(pace.after(window, &read), None, "there may be more in it");
        let half = widened(&read) / 2;
        assert!(half >= 32 << 10 && pace.half == Some(half));
        let pause = pace.after(1000, &read).unwrap();
        assert!(pause <= MOST && pace.is_fast(), "{pause:?}");
        let mut writer = Pace::default();
        assert_eq!(writer.after_write(1000, 9000, &write), None, "who knows");
        assert_eq!(writer.after_write(window, window, &write), None, "room");
        let pause = writer.after_write(1000, 9000, &write);
        assert!(pause.is_some_and(|pause| pause <= MOST), "{pause:?}");
        let mut other = Pace::default();
        for n in [1000, window, 1000, 1000] {
            assert_eq!(other.after(n, &null), None, "no pipe");
        }
    }
}
