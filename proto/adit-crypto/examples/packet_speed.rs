//! Prints the speed of sealing and opening packets of 1,500 bytes, in MB/s (10⁶ bytes per second).
//!
//! `cargo run --release -p adit-crypto --example packet_speed [portable|avx2|avx512 [NAME…]]`
//!
//! Both directions count, as in kcp-go's own benchmarks: bytes encrypted and decrypted divided by the time
//! of both. `cipher` is the cipher alone, `packet` nonce, check and cipher, one packet at a time, and
//! `batch` the same with 32 packets sealed by one call. `go/kcpcrypt` in `dev/adit-bench` prints the first
//! two for kcp-go. Each figure is the best of 12 batches by the thread's CPU time.

use std::{env, hint::black_box};

use adit_crypto::packet::session::{Role, SessionCipher, SessionKey};
use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_crypto::{CpuLevel, CryptoError, Direction, cpu_level, limit_cpu};
use adit_interop::cpu_time::BatchTiming;
use adit_wire::Entropy;

const PACKET: usize = 1500;
const SIDE: usize = 32;
const BATCHES: usize = 12;
const BATCH_NS: f64 = 4e6;

/// Nonces that cost almost nothing.
struct Weyl(u64);

impl Entropy for Weyl {
    fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let bytes = self.0.to_le_bytes();
            chunk.copy_from_slice(bytes.split_at(chunk.len()).0);
        }
    }
}

fn main() -> Result<(), String> {
    let mut args = env::args().skip(1);
    if let Some(name) = args.next() {
        limit_cpu(CpuLevel::from_name(&name).ok_or("portable, avx2 or avx512")?);
    }
    let mut kinds = args
        .map(|name| name.parse().map_err(|why| format!("{name}: {why}")))
        .collect::<Result<Vec<PacketKind>, _>>()?;
    if kinds.is_empty() {
        kinds.extend(PacketKind::ALL);
    }
    println!("path: {}", cpu_level().name());
    println!("{:<12} {:>9} {:>9} {:>9}", "", "cipher", "packet", "batch");
    for kind in kinds {
        report(kind, PacketCheck::Crc32).map_err(|why| why.to_string())?;
    }
    report(PacketKind::Aes128, PacketCheck::HighwayHash).map_err(|why| why.to_string())?;
    for cipher in [SessionCipher::Aes128Gcm, SessionCipher::ChaCha20Poly1305] {
        session(cipher).map_err(|why| why.to_string())?;
    }
    crc();
    Ok(())
}

fn report(kind: PacketKind, check: PacketCheck) -> Result<(), CryptoError> {
    let key = PacketKey::from_key(kind, check, &[0x42; 32])?;
    let name = match check {
        PacketCheck::Crc32 => kind.name().to_owned(),
        PacketCheck::HighwayHash => format!("{kind} kcp9"),
    };
    print!("{name:<12}");
    let mut packet = [0; PACKET];
    let mut rng = Weyl(1);
    if matches!(
        kind,
        PacketKind::None | PacketKind::Null | PacketKind::Aes128Gcm
    ) {
        print!(" {:>9}", "");
    } else {
        let ns = best(|| {
            key.apply_cipher(Direction::Encrypt, black_box(&mut packet));
            key.apply_cipher(Direction::Decrypt, black_box(&mut packet));
        });
        print!(" {:>9.0}", rate(1, ns));
    }
    let ns = best(|| {
        let sealed = key.seal(black_box(&mut packet), &mut rng);
        assert!(sealed.is_ok() && key.open(black_box(&mut packet)).is_ok());
    });
    print!(" {:>9.0}", rate(1, ns));
    let mut packets = [[0; PACKET]; SIDE];
    let mut packets = packets.each_mut().map(<[u8; PACKET]>::as_mut_slice);
    let ns = best(|| {
        let sealed = key.seal_batch(black_box(&mut packets), &mut rng);
        assert!(sealed.is_ok());
        key.open_batch(black_box(&mut packets), &mut |_, opened| {
            assert!(opened.is_ok());
        });
    });
    println!(" {:>9.0}", rate(SIDE, ns));
    Ok(())
}

fn session(cipher: SessionCipher) -> Result<(), CryptoError> {
    let key = SessionKey::new(&[0x42; 32])?;
    let mut rng = Weyl(1);
    let mut client = key.connect(cipher, &mut rng)?;
    let mut packet = [0; PACKET];
    client.seal(&mut packet)?;
    let unauthentic = CryptoError::Unauthentic;
    let head = key
        .decrypt_header(Role::Client, &packet)
        .ok_or(unauthentic)?;
    let accepted = key.accept(head, &mut packet, &mut rng);
    let (mut server, _) = accepted.map_err(|_| unauthentic)?;
    let ns = best(|| {
        let sealed = client.seal(black_box(&mut packet));
        let head = key.decrypt_header(Role::Client, black_box(&packet));
        let opened = head.map(|head| server.open(head, &mut packet));
        assert!(sealed.is_ok() && matches!(opened, Some(Ok(_))));
    });
    println!(
        "{:<32} {:>9.0}",
        format!("session, {cipher:?}"),
        rate(1, ns)
    );
    Ok(())
}

fn crc() {
    let data = [7; 1024];
    let ns = best(|| {
        black_box(crc32fast::hash(black_box(&data)));
    });
    println!("crc32 of 1 KiB: {ns:.1} ns");
}

/// Returns the MB/s of packets that were sealed and opened in `ns`.
fn rate(packets: usize, ns: f64) -> f64 {
    (2 * PACKET * packets) as f64 / ns * 1e3
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
