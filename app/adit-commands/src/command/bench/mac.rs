//! `adit bench mac`: the message authentication codes of SSH, HMAC-MD5 for comparison, and those of
//! ShadowsocksR's frames, which are computed in batches.

use std::hint::black_box;
use std::time::Duration;

use adit_cli::CommandResult;
use adit_crypto::{HmacKey, HmacKind, HmacMd5Batch, MAC_LANES, SipBatch, SipKey};
use adit_umac::{Nonce, UmacSession};
use adit_wire::usize_from;

use super::rows::{RowPrinter, time_operation};
use crate::args;

const KEY: [u8; 32] = [0x42; 32];

pub(super) fn bench_mac(typed: &args::bench::BenchMacArgs) -> CommandResult {
    let rows = RowPrinter::new("bench mac", &typed.span);
    for (name, measure) in MACS {
        for &length in &typed.bytes {
            let message = vec![7; usize_from(length)];
            rows.print_row(name, length, measure(&message, rows.time_per_row()));
        }
    }
    let of_ssh = |name: &str| name.starts_with("umac-") || name == "hmac-sha2-256";
    let advice = rows.fastest(of_ssh).map(|(name, speed)| {
        // A tag of 64 bits is shorter than what SSH's other codes have.
        let second = rows.fastest(|other| of_ssh(other) && other != "umac-64");
        match second {
            Some((second, slower)) if name == "umac-64" => {
                format!("Use {second}: {slower:.1} GB/s, with a tag of 128 bits or more; umac-64 has {speed:.1} GB/s")
            }
            _ => format!("Use {name}: {speed:.1} GB/s"),
        }
    });
    rows.finish(advice.as_deref());
    Ok(())
}

type Measure = fn(&[u8], Duration) -> f64;

/// All codes with their names.
const MACS: [(&str, Measure); 7] = [
    ("umac-64", time_umac::<8>),
    ("umac-128", time_umac::<16>),
    ("hmac-sha2-256", |message, spend| {
        time_hmac(HmacKind::Sha256, message, spend)
    }),
    ("hmac-md5", |message, spend| {
        time_hmac(HmacKind::Md5, message, spend)
    }),
    ("hmac-md5-of-8", |message, spend| {
        let Some(batch) = HmacMd5Batch::new([&KEY; MAC_LANES]) else {
            return time_hmac(HmacKind::Md5, message, spend);
        };
        time_batched(message, spend, |messages| {
            black_box(batch.compute_tags(messages));
        })
    }),
    ("siphash-1-3", time_siphash),
    ("siphash-1-3-of-8", |message, spend| {
        let Some(batch) = SipBatch::new(&[KEY_16; MAC_LANES]) else {
            return time_siphash(message, spend);
        };
        time_batched(message, spend, |messages| {
            black_box(batch.compute_hashes(messages));
        })
    }),
];

const KEY_16: [u8; 16] = [0x42; 16];

fn time_siphash(message: &[u8], spend: Duration) -> f64 {
    let key = SipKey::new(KEY_16);
    time_operation(spend, || {
        black_box(key.hash_bytes(black_box(message)));
    })
}

/// Times one message of a batch whose codes are computed together.
fn time_batched(message: &[u8], spend: Duration, tags: impl Fn([&[u8]; MAC_LANES])) -> f64 {
    let all = message.repeat(MAC_LANES);
    let mut parts = all.chunks(message.len().max(1));
    let messages = [(); MAC_LANES].map(|()| parts.next().unwrap_or_default());
    time_operation(spend, || tags(black_box(messages))) / MAC_LANES as f64
}

/// Times UMAC over the packets of one connection, with consecutive nonces.
fn time_umac<const TAG: usize>(message: &[u8], spend: Duration) -> f64 {
    let (key, _) = KEY.split_first_chunk().unwrap_or((&[0; 16], &[]));
    let mut session = UmacSession::<TAG>::new(key);
    let mut number = 0u64;
    time_operation(spend, || {
        black_box(session.compute_tag(Nonce::from(number), black_box(message)));
        number += 1;
    })
}

/// Times HMAC over the packets of one connection, with one key.
fn time_hmac(kind: HmacKind, message: &[u8], spend: Duration) -> f64 {
    let key = HmacKey::new(kind, &KEY);
    time_operation(spend, || {
        black_box(key.tag(&[black_box(message)]));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_messages_take_longer() {
        for (name, measure) in MACS {
            let [short, long] =
                [32, 16 * 1024].map(|len| measure(&vec![1; len], Duration::from_millis(15)));
            assert!(short > 0.0 && long > 2.0 * short, "{name}: {short} {long}");
        }
    }
}
