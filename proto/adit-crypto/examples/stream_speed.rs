//! Prints the speed of the stream ciphers, in GB/s (10⁹ bytes per second).
//!
//! `cargo run --release -p adit-crypto --example stream_speed [portable|avx2|avx512 [NAME…]]`
//!
//! Each figure is the best of 8 batches by the thread's CPU time. `stream` is one stream of a connection;
//! `restart` starts one for each 1,400 bytes, as packets do, under an existing key. Decryption runs over
//! bytes that are not ciphertext: none of these ciphers depends on that.

use std::{env, hint::black_box};

use adit_crypto::{CpuLevel, Direction, StreamKey, StreamKind, cpu_level, limit_cpu};
use adit_interop::cpu_time::BatchTiming;

const PACKET: usize = 1400;
const BULK: usize = 16384;
const BATCHES: usize = 8;
const BATCH_NS: f64 = 4e6;

fn main() -> Result<(), String> {
    let mut args = env::args().skip(1);
    if let Some(name) = args.next() {
        limit_cpu(CpuLevel::from_name(&name).ok_or("portable, avx2 or avx512")?);
    }
    let mut kinds = args
        .map(|name| name.parse().map_err(|why| format!("{name}: {why}")))
        .collect::<Result<Vec<StreamKind>, _>>()?;
    if kinds.is_empty() {
        kinds.extend(StreamKind::ALL);
    }
    println!("path: {}", cpu_level().name());
    println!(
        "{:<18} {:^17} {:^17} {:^17} {:>8}",
        "", "1400 B, stream", "16 KiB, stream", "1400 B, restart", "key"
    );
    println!(
        "{:<18} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "method", "enc", "dec", "enc", "dec", "enc", "dec", "us"
    );
    for kind in kinds {
        report(kind).map_err(|why| why.to_string())?;
    }
    Ok(())
}

fn report(kind: StreamKind) -> Result<(), adit_crypto::CryptoError> {
    let (secret, iv) = ([0x42; 32], [7; 24]);
    let (secret, iv) = (&secret[..kind.key_len()], &iv[..kind.iv_len()]);
    let key = StreamKey::new(kind, secret)?;
    print!("{:<18}", kind.name());
    for size in [PACKET, BULK] {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let mut buf = vec![0; size];
            let mut stream = key.start_stream(iv, direction)?;
            let ns = best(|| stream.apply(black_box(&mut buf)));
            print!(" {:>8.3}", size as f64 / ns);
        }
    }
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        let mut buf = vec![0; PACKET];
        let ns = best(|| {
            if let Ok(mut stream) = key.start_stream(black_box(iv), direction) {
                stream.apply(black_box(&mut buf));
            }
        });
        print!(" {:>8.3}", PACKET as f64 / ns);
    }
    let ns = best(|| drop(black_box(StreamKey::new(kind, black_box(secret)))));
    println!(" {:>8.2}", ns / 1e3);
    Ok(())
}

/// Returns the CPU time of one call in nanoseconds, the average of the fastest batch.
fn best(mut call: impl FnMut()) -> f64 {
    let timing = BatchTiming {
        batches: BATCHES,
        batch_ns: BATCH_NS,
        trial_calls: [1, 4],
    };
    timing.measure_call(|_| call())
}
