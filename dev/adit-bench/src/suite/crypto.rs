//! Suite `crypto`: sealing and opening in memory, as adit calls its ciphers.

use std::time::Duration;

use adit_crypto::{AeadKey, AeadKind, NonceCounter, TAG_LEN};
use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use super::Suite;
use super::rounds::BenchRun;
use crate::figures::{Figures, OPEN_NS, OPEN_RATE, SEAL_NS, SEAL_RATE, as_float, whole_figure};

/// A datagram, a record of the first edition, and the largest record of the 2022 edition.
const SIZES: [(usize, &str); 3] = [
    (1400, "1,400 B"),
    (16 * 1024, "16 KiB"),
    (64 * 1024, "64 KiB"),
];

/// Size of the memory with successive messages, which fits into the second-level cache.
const ARENA_LEN: usize = 512 * 1024;

/// Measures every cipher at every size, the ciphers in turn.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let least = Duration::from_millis(bench.settings.amounts().cipher_millis);
    for (size, shown) in SIZES {
        let mut kinds = AeadKind::ALL;
        for round in 1..=bench.settings.rounds() {
            for kind in kinds {
                let (case, who) = (format!("messages of {shown}"), cipher_name(kind));
                let outcome = measure_cipher(kind, size, round, least);
                bench
                    .journal
                    .record_outcome(Suite::Crypto, &case, &who, round, outcome);
            }
            kinds.rotate_left(1);
        }
    }
}

/// Returns the name of a cipher: `aes-128-gcm` for `Aes128Gcm`.
fn cipher_name(kind: AeadKind) -> String {
    match kind {
        AeadKind::Aes128Gcm => "aes-128-gcm",
        AeadKind::Aes192Gcm => "aes-192-gcm",
        AeadKind::Aes256Gcm => "aes-256-gcm",
        AeadKind::ChaCha20Poly1305 => "chacha20-poly1305",
        AeadKind::XChaCha20Poly1305 => "xchacha20-poly1305",
        AeadKind::ChaCha8Poly1305 => "chacha8-poly1305",
        AeadKind::XChaCha8Poly1305 => "xchacha8-poly1305",
        other => return format!("{other:?}"),
    }
    .to_owned()
}

fn measure_cipher(kind: AeadKind, size: usize, round: u32, least: Duration) -> Result<Figures> {
    let key = AeadKey::new(kind, &vec![0x42; kind.key_len()])?;
    // A different place in its page for every round: that alone changes results.
    let shift = usize::try_from(round)? * 208 % 4096;
    let mut arena = vec![0; ARENA_LEN + shift];
    let (mut sealing, mut opening) = (NonceCounter::new(kind), NonceCounter::new(kind));
    let (mut seal_time, mut open_time, mut messages) = (Duration::ZERO, Duration::ZERO, 0u64);
    let mut warm = false;
    while seal_time < least || open_time < least {
        let slots = || size + TAG_LEN;
        let mut tags = Vec::with_capacity(ARENA_LEN / slots());
        let start = cpu_clock();
        for slot in arena[shift..].chunks_exact_mut(slots()) {
            let (body, _) = slot.split_at_mut(size);
            tags.push(key.seal_in_place(&sealing.next_nonce()?, body)?);
        }
        let sealed = cpu_clock();
        for (slot, tag) in arena[shift..].chunks_exact_mut(slots()).zip(&tags) {
            let (body, _) = slot.split_at_mut(size);
            key.open_in_place(&opening.next_nonce()?, body, tag)?;
        }
        let opened = cpu_clock();
        ensure!(
            arena.iter().all(|byte| *byte == 0),
            "opening did not restore what was sealed"
        );
        // The first pass only brings memory and code into the caches.
        if warm {
            seal_time += sealed - start;
            open_time += opened - sealed;
            messages += tags.len() as u64;
        }
        warm = true;
    }
    let per_message = |time: Duration| time.as_secs_f64() * 1e9 / as_float(messages);
    let (seal, open) = (per_message(seal_time), per_message(open_time));
    // Bytes per nanosecond equal 10⁹ bytes per second.
    let size = size as f64;
    Ok(vec![
        whole_figure(SEAL_RATE, size / seal),
        whole_figure(OPEN_RATE, size / open),
        whole_figure(SEAL_NS, seal),
        whole_figure(OPEN_NS, open),
    ])
}

/// Returns the processor time of this thread.
pub(super) fn cpu_clock() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cipher_is_measured() {
        for kind in AeadKind::ALL {
            let figures = measure_cipher(kind, 1400, 1, Duration::from_millis(1)).unwrap();
            assert_eq!(figures.len(), 4);
            assert!(
                figures
                    .iter()
                    .all(|(_, value)| value.is_finite() && *value > 0.0),
                "{kind:?}"
            );
            assert!(cipher_name(kind).ends_with("gcm") || cipher_name(kind).ends_with("poly1305"));
        }
    }

    #[test]
    fn the_clock_of_a_thread_stands_still_while_it_sleeps() {
        let before = cpu_clock();
        std::thread::sleep(Duration::from_millis(30));
        assert!(cpu_clock() - before < Duration::from_millis(20));
    }
}
