//! Prints the speed of ChaCha-Poly1305: this crate's, AWS-LC's and RustCrypto's.
//!
//! `cargo run --release -p adit-crypto --example speed [portable|avx2|avx512 [BYTES…]]`
//!
//! Each figure is the best of 16 batches by the thread's CPU time, on a warm key, with an offset into the
//! buffer that changes from batch to batch. `adit` is the implementation that the crate selects, so it
//! equals AWS-LC where that is selected.

use std::{env, hint::black_box};

use adit_crypto::{AeadKey, AeadKind, CpuLevel, cpu_level, limit_cpu};
use adit_interop::cpu_time::BatchTiming;
use aws_lc_rs::aead as lc;
use chacha20poly1305::{
    ChaCha8Poly1305, ChaCha20Poly1305, KeyInit, XChaCha8Poly1305, XChaCha20Poly1305,
    aead::AeadInOut,
};

const SIZES: [usize; 5] = [32, 1024, 1400, 16384, 65536];
const BATCHES: usize = 16;
const BATCH_NS: f64 = 4e6;
const KEY: [u8; 32] = [0x42; 32];
const NONCE: [u8; 24] = [7; 24];

const KINDS: [AeadKind; 4] = [
    AeadKind::ChaCha8Poly1305,
    AeadKind::XChaCha8Poly1305,
    AeadKind::ChaCha20Poly1305,
    AeadKind::XChaCha20Poly1305,
];

fn main() -> Result<(), String> {
    let mut args = env::args().skip(1);
    if let Some(name) = args.next() {
        limit_cpu(CpuLevel::from_name(&name).ok_or("portable, avx2 or avx512")?);
    }
    let mut sizes = args
        .map(|size| size.parse().map_err(|_| format!("{size} is not a size")))
        .collect::<Result<Vec<usize>, _>>()?;
    if sizes.is_empty() {
        sizes.extend(SIZES);
    }
    println!("path: {}", cpu_level().name());
    println!(
        "{:<18} {:>6} {:<10} {:>9} {:>6} {:>9} {:>6}",
        "method", "bytes", "by", "seal ns", "GB/s", "open ns", "GB/s"
    );
    for kind in KINDS {
        for &size in &sizes {
            report(kind, size, "adit", adit(kind, size)?);
            if let Some(figures) = aws_lc(kind, size)? {
                report(kind, size, "aws-lc", figures);
            }
            report(kind, size, "rustcrypto", rustcrypto(kind, size));
        }
    }
    Ok(())
}

fn report(kind: AeadKind, size: usize, by: &str, (seal, open): (f64, f64)) {
    let kind = format!("{kind:?}");
    let speed = |ns: f64| size as f64 / ns;
    println!(
        "{kind:<18} {size:>6} {by:<10} {seal:>9.1} {:>6.2} {open:>9.1} {:>6.2}",
        speed(seal),
        speed(open),
    );
}

fn adit(kind: AeadKind, size: usize) -> Result<(f64, f64), String> {
    let key = AeadKey::new(kind, &KEY).map_err(|why| why.to_string())?;
    let nonce = &NONCE[..kind.nonce_len()];
    Ok(both(
        size,
        |buf| key.seal_in_place(nonce, buf).unwrap_or_default(),
        |buf, tag| key.open_in_place(nonce, buf, tag).is_ok(),
    ))
}

/// AWS-LC has 20 rounds and 12-byte nonces only.
fn aws_lc(kind: AeadKind, size: usize) -> Result<Option<(f64, f64)>, String> {
    if kind != AeadKind::ChaCha20Poly1305 {
        return Ok(None);
    }
    let key = lc::UnboundKey::new(&lc::CHACHA20_POLY1305, &KEY).map_err(|why| why.to_string())?;
    let key = lc::LessSafeKey::new(key);
    let nonce = || lc::Nonce::assume_unique_for_key([7; 12]);
    Ok(Some(both(
        size,
        |buf| {
            key.seal_in_place_separate_tag(nonce(), lc::Aad::empty(), buf)
                .ok()
                .and_then(|tag| tag.as_ref().try_into().ok())
                .unwrap_or_default()
        },
        |buf, tag| {
            key.open_in_place_separate_tag(nonce(), lc::Aad::empty(), tag, buf)
                .is_ok()
        },
    )))
}

fn rustcrypto(kind: AeadKind, size: usize) -> (f64, f64) {
    match kind {
        AeadKind::ChaCha8Poly1305 => of_crate(&ChaCha8Poly1305::new(&KEY.into()), size),
        AeadKind::XChaCha8Poly1305 => of_crate(&XChaCha8Poly1305::new(&KEY.into()), size),
        AeadKind::XChaCha20Poly1305 => of_crate(&XChaCha20Poly1305::new(&KEY.into()), size),
        _ => of_crate(&ChaCha20Poly1305::new(&KEY.into()), size),
    }
}

fn of_crate<A: AeadInOut>(key: &A, size: usize) -> (f64, f64) {
    let nonce = chacha20poly1305::aead::Nonce::<A>::default();
    both(
        size,
        |buf| {
            key.encrypt_inout_detached(&nonce, &[], buf.into())
                .ok()
                .and_then(|tag| tag[..].try_into().ok())
                .unwrap_or_default()
        },
        |buf, tag| {
            tag[..].try_into().is_ok_and(|tag| {
                key.decrypt_inout_detached(&nonce, &[], buf.into(), tag)
                    .is_ok()
            })
        },
    )
}

/// Returns the nanoseconds to seal and to open `size` bytes.
fn both(
    size: usize,
    seal: impl Fn(&mut [u8]) -> [u8; 16],
    open: impl Fn(&mut [u8], &[u8; 16]) -> bool,
) -> (f64, f64) {
    let mut memory = vec![0u8; size + 4096];
    let sealing = best(|offset| {
        black_box(seal(black_box(&mut memory[offset..offset + size])));
    });
    // Opening turns ciphertext into plaintext, and the next opening needs the ciphertext again: copying it
    // back is timed separately and subtracted.
    let mut sealed = vec![0u8; size];
    let tag = seal(&mut sealed);
    let opening = best(|offset| {
        let buf = &mut memory[offset..offset + size];
        buf.copy_from_slice(black_box(&sealed));
        assert!(black_box(open(black_box(buf), &tag)));
    });
    let copying = best(|offset| {
        let buf = &mut memory[offset..offset + size];
        buf.copy_from_slice(black_box(&sealed));
        black_box(buf);
    });
    (sealing, opening - copying)
}

/// Returns the CPU time of one call in nanoseconds, the average of the fastest batch.
fn best(mut call: impl FnMut(usize)) -> f64 {
    let timing = BatchTiming {
        batches: BATCHES,
        batch_ns: BATCH_NS,
        trial_calls: [8, 64],
    };
    timing.measure_call(|batch| call(batch * 208 % 4096))
}
