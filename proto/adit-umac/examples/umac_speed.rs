//! Prints the time of one tag in nanoseconds, compared with other MACs.
//!
//! `cargo run --release -p adit-umac --example umac_speed`
//!
//! Each figure is the best of 12 batches by the thread's CPU time, with increasing nonces as in a
//! connection. `session` reuses the last block of pads, `key` computes a block for each tag.

use std::hint::black_box;

use adit_crypto::{hmac_md5, hmac_sha256};
use adit_interop::cpu_time::BatchTiming;
use adit_umac::{Nonce, SimdLevel, Umac, UmacSession};

const SIZES: [usize; 6] = [32, 36, 256, 1024, 16 * 1024, 32 * 1024];
const BATCHES: usize = 12;
const BATCH_NS: f64 = 4e6;
const KEY: [u8; 16] = *b"abcdefghijklmnop";

fn main() {
    println!("best level: {}\n", SimdLevel::best_available().name());
    print!("{:<28}", "ns for one tag");
    for size in SIZES {
        print!(" {size:>8} B");
    }
    println!(" {:>10}", "GB/s, 32K");
    for level in SimdLevel::ALL
        .into_iter()
        .filter(|level| level.is_available())
    {
        umac::<4>(level);
        umac::<8>(level);
        umac::<12>(level);
        umac::<16>(level);
    }
    row("UMAC-64 in 1000 B pieces", |message| {
        let mut session = UmacSession::<8>::new(&KEY);
        let mut number = 0u64;
        best(|| {
            number += 1;
            let mut hasher = session.new_hasher();
            black_box(message)
                .chunks(1000)
                .for_each(|part| hasher.update(part));
            black_box(hasher.finish_tag(number.into()));
        })
    });
    row("HMAC-SHA256", |message| {
        best(|| {
            black_box(hmac_sha256(&KEY, &[black_box(message)]));
        })
    });
    row("HMAC-MD5", |message| {
        best(|| {
            black_box(hmac_md5(&KEY, &[black_box(message)]));
        })
    });
    let ns = best(|| {
        black_box(Umac::<16>::new(black_box(&KEY)));
    });
    println!("\nkey setup: {ns:.0} ns");
}

fn umac<const TAG: usize>(level: SimdLevel) {
    let key = || Umac::<TAG>::with_level(&KEY, level);
    let name = |kind: &str| format!("UMAC-{} {} {kind}", 8 * TAG, level.name());
    if let Some(umac) = key() {
        row(&name("key"), |message| {
            let mut number = 0u64;
            best(|| {
                number += 1;
                black_box(umac.compute_tag(Nonce::from(number), black_box(message)));
            })
        });
    }
    if let Some(umac) = key().filter(|_| TAG <= 8) {
        let mut session = UmacSession::from(umac);
        row(&name("session"), |message| {
            let mut number = 0u64;
            best(|| {
                number += 1;
                black_box(session.compute_tag(Nonce::from(number), black_box(message)));
            })
        });
    }
}

fn row(name: &str, mut measure: impl FnMut(&[u8]) -> f64) {
    print!("{name:<28}");
    let mut last = 0.0;
    for size in SIZES {
        let message: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        let ns = measure(&message);
        print!(" {ns:>10.1}");
        last = size as f64 / ns;
    }
    println!(" {last:>10.2}");
}

/// Returns the CPU time of one call in nanoseconds, the average of the fastest batch.
fn best(mut call: impl FnMut()) -> f64 {
    let timing = BatchTiming {
        batches: BATCHES,
        batch_ns: BATCH_NS,
        trial_calls: [10, 100],
    };
    timing.measure_call(|_| call())
}
