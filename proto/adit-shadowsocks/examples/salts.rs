//! What a full pool of salts costs in time and memory (SEC-R2, SEC-R4).
//!
//! `cargo run --release -p adit-shadowsocks --example salts`

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an example that measures"
)]

use std::time::Instant;

use adit_shadowsocks::{Restart, SaltPool};
use adit_wire::Unix;

const NOW: Unix = Unix(1_700_000_000);
/// A shard is full a little before all are, so not the last of the million.
const SALTS: u64 = 990_000;

fn salt(n: u64) -> [u8; 32] {
    let mut out = [0; 32];
    for (chunk, at) in out.chunks_mut(8).zip(0..) {
        let mixed = (n * 4 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        chunk.copy_from_slice(&(mixed ^ (mixed >> 29)).to_le_bytes());
    }
    out
}

/// Resident memory of this process in MiB, where the system tells.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|n| n.parse().ok());
    pages.unwrap_or(0.0) * 4096.0 / f64::from(1 << 20)
}

fn main() {
    for (edition, stamp) in [("2022", Some(NOW)), ("AEAD", None)] {
        let salts: Vec<_> = (0..SALTS).map(salt).collect();
        let before = resident();
        let pool = SaltPool::new([1; 16], NOW, Restart::Lenient);
        let timed = |expected: bool| {
            let start = Instant::now();
            for salt in &salts {
                assert_eq!(pool.insert(salt, stamp, NOW).is_ok(), expected);
            }
            start.elapsed().as_secs_f64() * 1e9 / SALTS as f64
        };
        let (insert, check) = (timed(true), timed(false));
        let memory = resident() - before;
        println!(
            "{edition}: {SALTS} salts, {memory:.1} MiB; new {insert:.0} ns, seen {check:.0} ns"
        );
        if stamp.is_none() {
            let start = Instant::now();
            let export = pool.export();
            let exported = start.elapsed().as_secs_f64() * 1e3;
            let mut again = SaltPool::new([2; 16], NOW, Restart::Lenient);
            let start = Instant::now();
            let taken = again.restore(export.expose()).unwrap();
            let restored = start.elapsed().as_secs_f64() * 1e3;
            let size = export.expose().len() as f64 / f64::from(1 << 20);
            println!(
                "export {size:.1} MiB in {exported:.1} ms, restored {taken} in {restored:.1} ms"
            );
        }
    }
}
