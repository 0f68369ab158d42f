//! Prints the cost of packets with each cipher and MAC, in seconds of CPU time per GiB.
//!
//! `cargo run --release -p adit-ssh-proto --example ssh_packet_speed`
//!
//! Measures packets with 32 KiB of data, like those of channels, in batches of 8 in one buffer.
//! Each figure is the best of 12 batches by the thread's CPU time. System calls are not included.

use std::hint::black_box;

use adit_crypto::{Secret, cpu_level};
use adit_interop::cpu_time::{BatchTiming, thread_cpu_ns};
use adit_ssh_proto::algorithm::{Cipher, Compression, Mac};
use adit_ssh_proto::packet::{DirectionKeys, Opened, Opener, Sealer};

const DATA: usize = 32 * 1024;
const TOGETHER: usize = 8;
const BATCHES: usize = 12;
const BATCH_NS: f64 = 2e7;
const GIB: f64 = (1u64 << 30) as f64;

fn main() {
    println!("SIMD level: {}\n", cpu_level().name());
    println!(
        "{:<31} {:<30} {:>6} {:>6} {:>6} {:>9}",
        "s per GiB", "", "seal", "open", "both", "100 B, ns"
    );
    for &cipher in Cipher::ALL {
        if cipher.is_aead() {
            row(cipher, None);
            continue;
        }
        for &mac in Mac::ALL {
            if cipher == Cipher::Aes128Ctr || mac == Mac::Umac64Etm {
                row(cipher, Some(mac));
            }
        }
    }
}

fn row(cipher: Cipher, mac: Option<Mac>) {
    let (seal, open) = measure(cipher, mac, DATA);
    let per_gib = |ns: f64| ns / 1e9 * GIB / DATA as f64;
    let (short_seal, short_open) = measure(cipher, mac, 100);
    println!(
        "{:<31} {:<30} {:>6.3} {:>6.3} {:>6.3} {:>4.0} {:>4.0}",
        cipher.name(),
        mac.map_or("", Mac::name),
        per_gib(seal),
        per_gib(open),
        per_gib(seal + open),
        short_seal,
        short_open,
    );
}

/// Returns the time to seal and to open one packet with `len` bytes of data, in nanoseconds.
fn measure(cipher: Cipher, mac: Option<Mac>, len: usize) -> (f64, f64) {
    let mut sealer = Sealer::new();
    sealer.set_keys(keys(cipher, mac), true).expect("keys");
    let mut out = Vec::new();
    // The payload is already there, as if read from a socket; only its header is written.
    let seal_all = |sealer: &mut Sealer, out: &mut Vec<u8>, data: &[u8]| {
        out.clear();
        for _ in 0..TOGETHER {
            let start = sealer.begin_packet(out);
            out.extend_from_slice(data);
            sealer.seal_begun(start, out).expect("room");
        }
    };
    let data = vec![0x5a; len];
    let mut copied = Vec::new();
    let copy = best(|| {
        copied.clear();
        (0..TOGETHER).for_each(|_| copied.extend_from_slice(black_box(&data)));
        black_box(&mut copied);
    });
    let seal = best(|| seal_all(&mut sealer, &mut out, black_box(&data))) - copy;

    // Each batch has to be sealed before it is opened; the time of sealing is not counted.
    let mut opener = Opener::new();
    opener.set_keys(keys(cipher, mac), true).expect("keys");
    sealer.set_keys(keys(cipher, mac), true).expect("keys");
    let mut least = f64::INFINITY;
    let turns = (BATCH_NS * 10.0 / (seal * 2.0)).clamp(200.0, 20_000.0) as usize;
    for _ in 0..turns {
        seal_all(&mut sealer, &mut out, &data);
        let start = thread_cpu_ns();
        let mut wire = out.as_mut_slice();
        while !wire.is_empty() {
            let Ok(Opened::Packet { consumed, .. }) = opener.open(wire) else {
                panic!("the sealed packet must be opened");
            };
            wire = &mut wire[consumed..];
        }
        least = least.min(thread_cpu_ns() - start);
    }
    (seal / TOGETHER as f64, least / TOGETHER as f64)
}

fn keys(cipher: Cipher, mac: Option<Mac>) -> DirectionKeys {
    let (key, iv) = cipher.key_iv_len();
    DirectionKeys {
        cipher,
        mac,
        compression: Compression::None,
        key: Secret::new(vec![1; key]),
        iv: Secret::new(vec![2; iv]),
        mac_key: Secret::new(vec![3; mac.map_or(0, |mac| mac.key_tag_len().0)]),
    }
}

/// Returns the CPU time of one call in nanoseconds, the average of the fastest batch.
fn best(mut call: impl FnMut()) -> f64 {
    let timing = BatchTiming {
        batches: BATCHES,
        batch_ns: BATCH_NS,
        trial_calls: [3, 30],
    };
    timing.measure_call(|_| call())
}
