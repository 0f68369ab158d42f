//! `adit bench …`: what this machine can do, measured on the spot.

mod mac;
mod ssh;

use std::time::Duration;

use super::Done;
use crate::args;

/// Does what was typed.
pub(super) fn bench(typed: &args::Bench) -> Done {
    match &typed.what {
        args::BenchWhat::Mac(mac) => mac::mac(mac),
        args::BenchWhat::Ssh(ssh) => ssh::ssh(ssh),
    }
}

/// Rounds of which the fastest counts: everything else is what the machine did besides.
const ROUNDS: u32 = 15;

/// Nanoseconds of one `work`, the fastest of several rounds that take `spend` together.
fn nanoseconds(spend: Duration, mut work: impl FnMut()) -> f64 {
    let round = spend / ROUNDS;
    let mut batch = 1u32;
    // As many in a row as make the clock's own cost vanish.
    let mut took = time(batch, &mut work);
    while took < round && batch < 1 << 28 {
        batch *= 2;
        took = time(batch, &mut work);
    }
    let fastest = (1..ROUNDS).fold(took, |best, _| best.min(time(batch, &mut work)));
    fastest.as_secs_f64() * 1e9 / f64::from(batch)
}

fn time(batch: u32, work: &mut impl FnMut()) -> Duration {
    let start = std::time::Instant::now();
    for _ in 0..batch {
        work();
    }
    start.elapsed()
}
