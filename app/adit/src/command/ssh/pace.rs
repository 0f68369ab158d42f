//! How often a pipe is read that others fill.
//!
//! Whoever reads a pipe as soon as there is something wakes for every write of the other program.
//! Once a flow is fast, its reader lets the pipe fill to the half before it looks again.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

/// What a pipe is to hold, if the system agrees, octets.
#[cfg(target_os = "linux")]
const PIPE: usize = 1 << 20;
/// How much is looked at together, octets.
const WINDOW: u64 = 8 << 20;
/// The longest time for that much: 0.8 Gbit/s. Slower flows are left alone.
const FAST: Duration = Duration::from_millis(80);
/// The longest pause.
const MOST: Duration = Duration::from_micros(1500);

/// Makes a pipe hold as much as it may; gives how much that is, octets. Nothing for other files.
#[cfg(target_os = "linux")]
pub(super) fn widened(file: &File) -> Option<u64> {
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    let size = fcntl_getpipe_size(file).ok()?;
    let size = match size < PIPE {
        // A user's share of pipe memory is bounded; the present size does as well.
        true => fcntl_setpipe_size(file, PIPE).unwrap_or(size),
        false => size,
    };
    u64::try_from(size).ok()
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn widened(_: &File) -> Option<u64> {
    None
}

/// The pauses of one reader.
#[derive(Debug)]
pub(super) struct Pace {
    /// What a pause is to bring, octets; nothing where there are none.
    half: Option<u64>,
    moved: u64,
    since: Option<Instant>,
    pause: Duration,
}

impl Pace {
    /// For a pipe of this size.
    pub(super) fn new(pipe: Option<u64>) -> Self {
        Self {
            half: pipe.map(|size| size / 2),
            moved: 0,
            since: None,
            pause: Duration::ZERO,
        }
    }

    /// So much was read at once: waits if the pipe is empty by that and fills fast.
    pub(super) fn rest(&mut self, n: usize) {
        let Some(half) = self.half else {
            return;
        };
        let n = u64::try_from(n).unwrap_or(u64::MAX);
        self.moved += n;
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.moved >= WINDOW {
            self.pause = pause(half, self.moved, since.elapsed());
            (self.moved, self.since) = (0, None);
        }
        if !self.pause.is_zero() && n < half / 2 {
            thread::sleep(self.pause);
        }
    }
}

/// How long a flow of `bytes` in `time` needs for `half`; none for a slow one.
fn pause(half: u64, bytes: u64, time: Duration) -> Duration {
    if time > FAST {
        return Duration::ZERO;
    }
    let share = u128::from(half) * time.as_nanos() / u128::from(bytes.max(1));
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX)).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_follow_the_rate() {
        let (half, ms) = (512 << 10, Duration::from_millis);
        assert_eq!(pause(half, WINDOW, ms(81)), Duration::ZERO, "slow");
        assert_eq!(pause(half, WINDOW, ms(80)), MOST);
        assert_eq!(pause(half, WINDOW, ms(8)), Duration::from_micros(500));
    }

    #[test]
    fn only_fast_pipes_are_let_fill() {
        let mut pace = Pace::new(None);
        for _ in 0..100 {
            pace.rest(1 << 20);
        }
        assert_eq!(pace.pause, Duration::ZERO, "no pipe");
        let mut pace = Pace::new(Some(1 << 20));
        for _ in 0..100 {
            pace.rest(512 << 10);
        }
        assert!(pace.pause > Duration::ZERO && pace.pause <= MOST);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pipes_are_widened_and_files_are_not() {
        let (read, _write) = std::io::pipe().unwrap();
        let read = File::from(std::os::fd::OwnedFd::from(read));
        assert!(widened(&read).unwrap() >= 64 << 10);
        assert_eq!(widened(&File::open("/dev/null").unwrap()), None);
    }
}
