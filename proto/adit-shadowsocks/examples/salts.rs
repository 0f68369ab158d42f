//! Time and memory of a full salt pool (SEC-R2, SEC-R4).
//!
//! `cargo run --release -p adit-shadowsocks --example salts`

#![allow(clippy::unwrap_used, reason = "an example that measures")]

use adit_shadowsocks::{RestartPolicy, SaltPool};
use adit_wire::UnixTime;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::read;
use rustix::param::page_size;
use rustix::time::{ClockId, clock_gettime};

const NOW: UnixTime = UnixTime(1_700_000_000);
/// Salts are spread over the shards of the pool at random, and a full shard refuses: the pool never takes a whole million.
const SALTS: u64 = 980_000;

fn salt(n: u64) -> [u8; 32] {
    let mut out = [0; 32];
    for (chunk, at) in out.chunks_mut(8).zip(0..) {
        let mixed = (n * 4 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        chunk.copy_from_slice(&(mixed ^ (mixed >> 29)).to_le_bytes());
    }
    out
}

/// Returns the time this thread has been on a CPU, in nanoseconds: other processes may be running.
fn worked() -> f64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

/// Returns the resident memory of this process in MiB, where the system reports it.
fn resident() -> f64 {
    let mut text = [0; 128];
    let file = open("/proc/self/statm", OFlags::RDONLY, Mode::empty());
    let read = file.and_then(|file| read(file, &mut text));
    let text = str::from_utf8(&text[..read.unwrap_or(0)]).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|n| n.parse().ok());
    pages.unwrap_or(0.0) * page_size() as f64 / f64::from(1 << 20)
}

fn main() {
    for (edition, stamp) in [("2022", Some(NOW)), ("AEAD", None)] {
        let salts: Vec<_> = (0..SALTS).map(salt).collect();
        let before = resident();
        let pool = SaltPool::new([1; 16], NOW, RestartPolicy::Lenient);
        let timed = |expected: bool| {
            let start = worked();
            for salt in &salts {
                assert_eq!(pool.insert_salt(salt, stamp, NOW).is_ok(), expected);
            }
            (worked() - start) / SALTS as f64
        };
        let (insert, check) = (timed(true), timed(false));
        let memory = resident() - before;
        println!(
            "{edition}: {SALTS} salts, {memory:.1} MiB; new {insert:.0} ns, seen {check:.0} ns"
        );
        if stamp.is_none() {
            let start = worked();
            let export = pool.export_digests();
            let exported = (worked() - start) / 1e6;
            let mut again = SaltPool::new([2; 16], NOW, RestartPolicy::Lenient);
            let start = worked();
            let taken = again.restore_digests(export.expose()).unwrap();
            let restored = (worked() - start) / 1e6;
            let size = export.expose().len() as f64 / f64::from(1 << 20);
            println!(
                "export {size:.1} MiB in {exported:.1} ms, restored {taken} in {restored:.1} ms"
            );
        }
    }
}
