//! The clocks and random generators of the running system, as the cores take them.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use adit_wire::{Clock, Entropy, Time, UnixTime, narrow_int};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Number of bytes after which a thread's generator is reseeded from the system (SEC-C4).
const RESEED_AFTER: usize = 1 << 20;

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn unix_time(&self) -> UnixTime {
        UnixTime(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| d.as_secs()),
        )
    }
}

/// Returns the current wall-clock time.
#[must_use]
pub fn unix_now() -> UnixTime {
    SystemClock.unix_time()
}

/// Returns the current monotonic time, counted from the first call in this process.
#[must_use]
pub fn monotonic_now() -> Time {
    static START: OnceLock<Instant> = OnceLock::new();
    let spent = START.get_or_init(Instant::now).elapsed();
    Time(narrow_int(spent.as_micros()))
}

/// The calling thread's generator: ChaCha, seeded from the system and reseeded every MiB.
///
/// Creating one is cheap; it has no state of its own. Do not use it in a process that forks and continues
/// in both halves: both would draw the same bytes. (Checking the process ID at every draw is a system call
/// that costs more than all the rest.)
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadRng;

struct ReseedingRng {
    rng: StdRng,
    left: usize,
}

thread_local! {
    static SEEDED: RefCell<Option<ReseedingRng>> = const { RefCell::new(None) };
}

impl Entropy for ThreadRng {
    fn fill(&mut self, out: &mut [u8]) {
        SEEDED.with_borrow_mut(|slot| {
            if slot.as_ref().is_none_or(|s| s.left < out.len()) {
                *slot = Some(ReseedingRng {
                    rng: new_seeded_rng(),
                    left: RESEED_AFTER.max(out.len()),
                });
            }
            if let Some(s) = slot {
                s.left -= out.len();
                s.rng.fill_bytes(out);
            }
        });
    }
}

/// The system's generator, for long-lived keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRng;

impl Entropy for SystemRng {
    fn fill(&mut self, out: &mut [u8]) {
        fill_from_system(out);
    }
}

fn new_seeded_rng() -> StdRng {
    let mut seed = [0; 32];
    fill_from_system(&mut seed);
    StdRng::from_seed(seed)
}

/// # Panics
/// Panics if the system has no source of random bytes: nothing that needs a key may continue then.
fn fill_from_system(out: &mut [u8]) {
    use rand::TryRng;
    #[cfg(target_os = "linux")]
    if fill_by_getrandom(out) {
        return;
    }
    if let Err(why) = rand::rngs::SysRng.try_fill_bytes(out) {
        panic!("the system's random generator failed: {why}");
    }
}

/// Fills `out` by getrandom(2); returns false if the kernel does not have it. The libraries look up its
/// wrapper in the C library at run time, which a static program does not have, and then need
/// `/dev/urandom`, which an empty root does not have.
#[cfg(target_os = "linux")]
fn fill_by_getrandom(out: &mut [u8]) -> bool {
    use rustix::rand::{GetRandomFlags, getrandom};
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match getrandom(rest, GetRandomFlags::empty()) {
            Ok(n) => done += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_differs_and_reseeds() {
        let (mut a, mut b) = ([0; 32], [0; 32]);
        ThreadRng.fill(&mut a);
        ThreadRng.fill(&mut b);
        assert_ne!(a, b);
        let mut big = vec![0; RESEED_AFTER + 1];
        ThreadRng.fill(&mut big);
        assert!(big.iter().any(|&x| x != 0));
    }

    /// Tests that a static program in a root without `/dev` has a source.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_is_asked_itself() {
        let mut bytes = [0; 300];
        assert!(fill_by_getrandom(&mut bytes));
        assert!(bytes.iter().any(|&b| b != 0) && fill_by_getrandom(&mut []));
    }

    #[test]
    fn clocks_run() {
        assert!(unix_now() > UnixTime(1_700_000_000));
        let first = monotonic_now();
        assert!(monotonic_now() >= first);
    }
}
