//! Suite `headers`: the keys, headers and packets of Shadowsocks in memory, with their time and
//! allocations.

use std::hint::black_box;
use std::time::Duration;

use adit_crypto::{AeadKey, AeadKind, HeaderCipher, KdfContext, NonceCounter, hkdf_sha1_subkey};
use adit_net::system::ThreadRng;
use adit_shadowsocks::{Edition, Method};
use adit_wire::Entropy;
use anyhow::Result;

use super::Suite;
use super::crypto::cpu_clock;
use super::rounds::BenchRun;
use crate::figures::{ALLOCATIONS, Figures, NS_PER_OP, OVER_CIPHER, as_float, whole_figure};
use crate::packet_loop::PacketPair;

const KEYS_CASE: &str = "keys and headers";

/// Number of operations between two readings of the clock.
const BATCH: u32 = 1000;

/// Payloads of packets.
const SIZES: [(usize, &str); 2] = [(1024, "1,024 B"), (1400, "1,400 B")];

/// Number of packets that fit into the second-level cache.
const PACKETS: usize = 256;

/// The methods of the packets, each with its cipher alone.
const METHODS: [(Method, AeadKind); 5] = [
    (Method::Aes256Gcm, AeadKind::Aes256Gcm),
    (Method::ChaCha20IetfPoly1305, AeadKind::ChaCha20Poly1305),
    (Method::Blake3Aes128Gcm, AeadKind::Aes128Gcm),
    (Method::Blake3Aes256Gcm, AeadKind::Aes256Gcm),
    (Method::Blake3ChaCha20Poly1305, AeadKind::XChaCha20Poly1305),
];

const KEY: [u8; 32] = [0x42; 32];

/// Measures every operation, all of them in every round.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let least = Duration::from_millis(bench.settings.amounts().cipher_millis);
    for round in 1..=bench.settings.rounds() {
        for bits in [128, 256] {
            for (what, outcome) in key_operations(least, bits) {
                bench
                    .journal
                    .record_outcome(Suite::Headers, KEYS_CASE, &what, round, outcome);
            }
        }
    }
    for (size, shown) in SIZES {
        let case = format!("packets of {shown}");
        for round in 1..=bench.settings.rounds() {
            for (method, cipher) in METHODS {
                let (seal, open) = match measure_packets(method, cipher, size, least) {
                    Ok((seal, open)) => (Ok(seal), Ok(open)),
                    Err(why) => (Err(anyhow::anyhow!("{why:#}")), Err(why)),
                };
                for (step, outcome) in [("seal", seal), ("open", open)] {
                    let who = format!("{method}, {step}");
                    bench
                        .journal
                        .record_outcome(Suite::Headers, &case, &who, round, outcome);
                }
            }
        }
    }
}

/// Measures time and allocations of each operation with a key of `bits` bits.
fn key_operations(least: Duration, bits: usize) -> [(String, Result<Figures>); 5] {
    let len = bits / 8;
    let key = KEY.get(..len).unwrap_or_default();
    let context = KdfContext::new("shadowsocks 2022 session subkey");
    let salt = derive_subkey(least, len, |_, _| Ok(()));
    let hkdf = derive_subkey(least, len, |salt, out| {
        Ok(hkdf_sha1_subkey(key, salt, out)?)
    });
    let blake3 = derive_subkey(least, len, |salt, out| {
        context.derive_key(&[key, salt], out);
        Ok(())
    });
    let encrypt = measure_block(least, key, HeaderCipher::encrypt_block);
    let decrypt = measure_block(least, key, HeaderCipher::decrypt_block);
    [
        (format!("salt of {len} B"), salt),
        (format!("salt of {len} B, HKDF-SHA1 subkey"), hkdf),
        (format!("salt of {len} B, BLAKE3 subkey"), blake3),
        (format!("AES-{bits} header, encrypt"), encrypt),
        (format!("AES-{bits} header, decrypt"), decrypt),
    ]
}

/// Draws a salt and derives a key from it, both of `len` bytes.
fn derive_subkey(
    least: Duration,
    len: usize,
    derive: impl Fn(&[u8], &mut [u8]) -> Result<()>,
) -> Result<Figures> {
    let (mut salt, mut out) = ([0; 32], [0; 32]);
    time_and_allocations(least, || {
        let (salt, _) = salt.split_at_mut(len);
        let (out, _) = out.split_at_mut(len);
        ThreadRng.fill(salt);
        derive(black_box(salt), out)?;
        black_box(out);
        Ok(())
    })
}

/// Measures `work` on the same block each time, so that operations do not wait for one another.
fn measure_block(
    least: Duration,
    key: &[u8],
    work: impl Fn(&HeaderCipher, &mut [u8; 16]),
) -> Result<Figures> {
    let cipher = HeaderCipher::new(key)?;
    let block = [7; 16];
    time_and_allocations(least, || {
        let mut block = *black_box(&block);
        work(&cipher, &mut block);
        black_box(block);
        Ok(())
    })
}

/// Measures time and allocations of one operation, by the thread's own clock.
fn time_and_allocations(least: Duration, mut work: impl FnMut() -> Result<()>) -> Result<Figures> {
    let mut batch = || (0..BATCH).try_for_each(|_| work());
    batch()?;
    let allocations = count_allocations(&mut batch)?;
    let (start, mut batches) = (cpu_clock(), 0);
    let mut took = Duration::ZERO;
    while took < least || batches == 0 {
        batch()?;
        batches += 1;
        took = cpu_clock() - start;
    }
    let operations = f64::from(BATCH) * f64::from(batches);
    Ok(vec![
        whole_figure(NS_PER_OP, took.as_secs_f64() * 1e9 / operations),
        whole_figure(ALLOCATIONS, allocations / f64::from(BATCH)),
    ])
}

/// Returns the number of allocations of this thread during `work`.
fn count_allocations(work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    let mut outcome = Ok(());
    let info = allocation_counter::measure(|| outcome = work());
    outcome.map(|()| as_float(info.count_total))
}

/// Measures whole packets, sealed by a client and opened by a server, against the cipher alone.
fn measure_packets(
    method: Method,
    cipher: AeadKind,
    size: usize,
    least: Duration,
) -> Result<(Figures, Figures)> {
    let mut packets = PacketPair::new(method, size, PACKETS, &mut ThreadRng)?;
    // The first passes create the session, fill the caches, and let the window of a server's
    // session grow to its full width.
    for _ in 0..=8192 / PACKETS {
        packets.seal_all(&mut ThreadRng)?;
        packets.open_all()?;
    }
    let seal_allocations = count_allocations(&mut || packets.seal_all(&mut ThreadRng))?;
    let open_allocations = count_allocations(&mut || packets.open_all())?;
    // The cipher over the same bytes: the payload and the data that the protocol seals with it,
    // which are an IPv4 address and, in the 2022 edition, type, time and length of the padding.
    let inside = match method.edition() {
        Edition::Aead2022 => 1 + 8 + 2 + 7,
        _ => 7,
    };
    let mut bare = BareCipher::new(cipher, size + inside)?;
    let (mut seal, mut open, mut passes) = (Duration::ZERO, Duration::ZERO, 0u32);
    let (mut bare_seal, mut bare_open) = (Duration::ZERO, Duration::ZERO);
    while seal < least || open < least {
        let start = cpu_clock();
        packets.seal_all(&mut ThreadRng)?;
        let sealed = cpu_clock();
        packets.open_all()?;
        let opened = cpu_clock();
        bare.seal()?;
        let bare_sealed = cpu_clock();
        bare.open()?;
        bare_open += cpu_clock() - bare_sealed;
        bare_seal += bare_sealed - opened;
        seal += sealed - start;
        open += opened - sealed;
        passes += 1;
    }
    let count = packets.count() as f64;
    let figures = |time: Duration, bare: Duration, allocations: f64| {
        vec![
            whole_figure(
                NS_PER_OP,
                time.as_secs_f64() * 1e9 / (count * f64::from(passes)),
            ),
            whole_figure(ALLOCATIONS, allocations / count),
            whole_figure(OVER_CIPHER, time.as_secs_f64() / bare.as_secs_f64()),
        ]
    };
    Ok((
        figures(seal, bare_seal, seal_allocations),
        figures(open, bare_open, open_allocations),
    ))
}

/// The same number of messages, of the payload's size, with only the cipher.
struct BareCipher {
    key: AeadKey,
    sealing: NonceCounter,
    opening: NonceCounter,
    size: usize,
    arena: Vec<u8>,
    tags: Vec<[u8; adit_crypto::TAG_LEN]>,
}

impl BareCipher {
    fn new(cipher: AeadKind, size: usize) -> Result<Self> {
        let mut bare = Self {
            key: AeadKey::new(cipher, KEY.get(..cipher.key_len()).unwrap_or_default())?,
            sealing: NonceCounter::new(cipher),
            opening: NonceCounter::new(cipher),
            size,
            arena: vec![0; size * PACKETS],
            tags: vec![[0; adit_crypto::TAG_LEN]; PACKETS],
        };
        bare.seal()?;
        bare.open()?;
        Ok(bare)
    }

    fn seal(&mut self) -> Result<()> {
        for (body, tag) in self.arena.chunks_exact_mut(self.size).zip(&mut self.tags) {
            *tag = self.key.seal_in_place(&self.sealing.next_nonce()?, body)?;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        for (body, tag) in self.arena.chunks_exact_mut(self.size).zip(&self.tags) {
            self.key
                .open_in_place(&self.opening.next_nonce()?, body, tag)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(1);

    fn value(figures: &Figures, quantity: crate::figures::Quantity) -> f64 {
        let found = figures.iter().find(|(m, _)| m.quantity == quantity);
        found.unwrap().1
    }

    #[test]
    fn keys_and_headers_allocate_nothing() {
        for bits in [128, 256] {
            for (what, outcome) in key_operations(LEAST, bits) {
                let figures = outcome.unwrap();
                assert!(value(&figures, NS_PER_OP) > 0.0, "{what}");
                assert_eq!(value(&figures, ALLOCATIONS), 0.0, "{what}");
            }
        }
    }

    #[test]
    fn the_counter_counts() {
        let count = count_allocations(&mut || {
            black_box(vec![0u8; 10]);
            Ok(())
        });
        assert_eq!(count.unwrap(), 1.0);
        assert!(count_allocations(&mut || anyhow::bail!("no")).is_err());
    }

    #[test]
    fn packets_of_the_2022_edition_are_sealed_without_an_allocation() {
        for (method, cipher) in METHODS {
            let (seal, open) = measure_packets(method, cipher, 1024, LEAST).unwrap();
            for figures in [&seal, &open] {
                assert!(value(figures, NS_PER_OP) > 0.0 && value(figures, OVER_CIPHER) > 0.0);
            }
            assert_eq!(value(&seal, ALLOCATIONS), 0.0, "{method}");
            assert_eq!(value(&open, ALLOCATIONS), 0.0, "{method}");
        }
    }
}
