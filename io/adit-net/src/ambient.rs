//! The clocks and random generators of the running system, as the cores take them.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use adit_wire::{Clock, Entropy, Time, Unix, narrow};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Number of bytes after which a thread's generator is reseeded from the system (SEC-C4).
const RESEED_AFTER: usize = 1 << 20;

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn unix(&self) -> Unix {
        Unix(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| d.as_secs()),
        )
    }
}

/// Returns the current wall-clock time.
#[must_use]
pub fn unix() -> Unix {
    SystemClock.unix()
}

/// Returns the current monotonic time, counted from the first call in this process.
#[must_use]
pub fn now() -> Time {
    static START: OnceLock<Instant> = OnceLock::new();
    let spent = START.get_or_init(Instant::now).elapsed();
    Time(narrow(spent.as_micros()))
}

/// The calling thread's generator: ChaCha, seeded from the system and reseeded every MiB.
///
/// Creating one is cheap; it has no state of its own. Do not use it in a process that forks and continues
/// in both halves: both would draw the same bytes. (Checking the process ID at every draw is a system call
/// that costs more than all the rest.)
#[derive(Debug, Clone, Copy, Default)]
pub struct Chance;

struct Seeded {
    rng: StdRng,
    left: usize,
}

thread_local! {
    static SEEDED: RefCell<Option<Seeded>> = const { RefCell::new(None) };
}

impl Entropy for Chance {
    fn fill(&mut self, out: &mut [u8]) {
        SEEDED.with_borrow_mut(|slot| {
            if slot.as_ref().is_none_or(|s| s.left < out.len()) {
                *slot = Some(Seeded {
                    rng: seed(),
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
pub struct SystemChance;

impl Entropy for SystemChance {
    fn fill(&mut self, out: &mut [u8]) {
        seed_bytes(out);
    }
}

fn seed() -> StdRng {
    let mut seed = [0; 32];
    seed_bytes(&mut seed);
    StdRng::from_seed(seed)
}

/// # Panics
/// Panics if the system has no source of random bytes: nothing that needs a key may continue then.
fn seed_bytes(out: &mut [u8]) {
    use rand::TryRng;
    #[cfg(target_os = "linux")]
    if from_the_kernel(out) {
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
fn from_the_kernel(out: &mut [u8]) -> bool {
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
        Chance.fill(&mut a);
        Chance.fill(&mut b);
        assert_ne!(a, b);
        let mut big = vec![0; RESEED_AFTER + 1];
        Chance.fill(&mut big);
        assert!(big.iter().any(|&x| x != 0));
    }

    /// Tests that a static program in a root without `/dev` has a source.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_is_asked_itself() {
        let mut bytes = [0; 300];
        assert!(from_the_kernel(&mut bytes));
        assert!(bytes.iter().any(|&b| b != 0) && from_the_kernel(&mut []));
    }

    #[test]
    fn clocks_run() {
        assert!(unix() > Unix(1_700_000_000));
        let first = now();
        assert!(now() >= first);
    }
}
