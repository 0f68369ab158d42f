//! `adit bench ss`: the keys, headers, packets and ciphers of Shadowsocks, in memory.

use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_crypto::{
    AeadKey, AeadKind, CryptoError, HeaderCipher, KdfContext, NonceCounter, hkdf_sha1_subkey,
};
use adit_net::system::ThreadRng;
use adit_shadowsocks::udp::{ClientSession, HEADROOM, ServerOpener, TAILROOM};
use adit_shadowsocks::{Key, Method, Users};
use adit_wire::{Entropy, Target, UnixTime, usize_from};

use super::rows::{RowPrinter, time_operation, time_prepared_operations};
use crate::args;

const KEY: [u8; 32] = [0x42; 32];

/// Bytes of a datagram's payload.
const PACKET: u32 = 1400;
/// Bytes of a record of a stream.
const RECORD: u32 = 16 * 1024;

/// Number of packets that are timed together, because each has to be sealed before it is opened.
const TIMED_PACKETS: u32 = 64;

/// The time in headers of the 2022 edition, the same at both ends.
const NOW: UnixTime = UnixTime(1_700_000_000);

/// The ciphers of the two current editions.
const CIPHERS: [(AeadKind, &str); 6] = [
    (AeadKind::Aes128Gcm, "aes-128-gcm"),
    (AeadKind::Aes192Gcm, "aes-192-gcm"),
    (AeadKind::Aes256Gcm, "aes-256-gcm"),
    (AeadKind::ChaCha20Poly1305, "chacha20-poly1305"),
    (AeadKind::XChaCha20Poly1305, "xchacha20-poly1305"),
    (AeadKind::ChaCha8Poly1305, "chacha8-poly1305"),
];

pub(super) fn bench_ss(typed: &args::bench::BenchOptions) -> CommandResult {
    let failed = |why: CryptoError| Failure::new(FailureCode::Failure, why.to_string());
    let rows = RowPrinter::new("bench ss", typed);
    for len in [16, 32] {
        bench_keys(&rows, len).map_err(failed)?;
    }
    for method in Method::ALL {
        if !matches!(method, Method::Stream(_) | Method::None) {
            bench_packets(&rows, method)?;
        }
    }
    for (kind, name) in CIPHERS {
        let key = KEY.get(..kind.key_len()).unwrap_or(&KEY);
        let key = AeadKey::new(kind, key).map_err(failed)?;
        for bytes in [PACKET, RECORD] {
            let mut nonces = NonceCounter::new(kind);
            let mut message = vec![7; usize_from(bytes)];
            let ns = time_operation(rows.time_per_row(), || {
                let sealed = nonces.next_nonce().and_then(|nonce| {
                    let message = black_box(&mut message);
                    key.seal_in_place(&nonce, message)
                });
                debug_assert!(sealed.is_ok());
            });
            rows.print_row(&format!("cipher-{name}"), bytes, ns);
        }
    }
    // Of a download, which a client opens.
    let prefix = "packet-open-2022-blake3-";
    let best = rows.fastest(|name| name.starts_with(prefix));
    let advice = best.map(|(name, speed)| {
        let method = name.trim_start_matches("packet-open-");
        format!("Use {method}: {speed:.1} GB/s of packets are opened on one processor")
    });
    rows.finish(advice.as_deref());
    Ok(())
}

/// Prints the rows for the start of a connection or packet: a salt, its subkey, a header block.
fn bench_keys(rows: &RowPrinter, len: u32) -> Result<(), CryptoError> {
    let size = usize_from(len);
    let key = KEY.get(..size).unwrap_or(&KEY);
    let (mut salt, mut out) = (vec![0; size], vec![0; size]);
    let ns = time_operation(rows.time_per_row(), || ThreadRng.fill(black_box(&mut salt)));
    rows.print_row("salt", len, ns);
    let ns = time_operation(rows.time_per_row(), || {
        let derived = hkdf_sha1_subkey(key, black_box(&salt), &mut out);
        debug_assert!(derived.is_ok());
    });
    rows.print_row("subkey-hkdf-sha1", len, ns);
    let context = KdfContext::new("shadowsocks 2022 session subkey");
    let ns = time_operation(rows.time_per_row(), || {
        context.derive_key(&[key, black_box(&salt)], black_box(&mut out));
    });
    rows.print_row("subkey-blake3", len, ns);
    let cipher = HeaderCipher::new(key)?;
    let block = [7; 16];
    let bits = len * 8;
    let ns = time_operation(rows.time_per_row(), || {
        let mut block = *black_box(&block);
        cipher.encrypt_block(&mut block);
        black_box(block);
    });
    rows.print_row(&format!("header-aes-{bits}"), 16, ns);
    Ok(())
}

/// Both ends of a session, and an arena of packets with headroom and tailroom.
struct PacketBench {
    client: ClientSession,
    server: ServerOpener,
    arena: Vec<u8>,
    sealed: Vec<Range<usize>>,
}

const SLOT: usize = HEADROOM + 1400 + TAILROOM;

impl PacketBench {
    fn seal_all(&mut self, target: &Target) {
        for (packet, sealed) in self.arena.chunks_exact_mut(SLOT).zip(&mut self.sealed) {
            let payload = HEADROOM..SLOT - TAILROOM;
            let done = self
                .client
                .seal(packet, payload, target, NOW, &mut ThreadRng);
            debug_assert!(done.is_ok(), "{done:?}");
            *sealed = done.unwrap_or_default();
        }
    }

    fn open_all(&mut self) {
        for (packet, sealed) in self.arena.chunks_exact_mut(SLOT).zip(&self.sealed) {
            let opened = packet.get_mut(sealed.clone());
            let opened = opened.map(|packet| self.server.open_packet(packet, NOW).is_ok());
            debug_assert_eq!(opened, Some(true));
            black_box(opened);
        }
    }
}

fn bench_packets(rows: &RowPrinter, method: Method) -> CommandResult {
    let target: Target = "192.0.2.1:443"
        .parse()
        .map_err(|why| Failure::new(FailureCode::Failure, format!("{why}")))?;
    let (key, _) = Key::generate(method, &mut ThreadRng);
    let count = usize_from(TIMED_PACKETS);
    let mut ends = PacketBench {
        client: ClientSession::new(&key.clone().into(), &mut ThreadRng),
        server: ServerOpener::new(&Users::with_single_key(key)),
        arena: vec![0; SLOT * count],
        sealed: vec![0..0; count],
    };
    let spend: Duration = rows.time_per_row();
    let ns = time_prepared_operations(
        spend,
        TIMED_PACKETS,
        &mut ends,
        |_| (),
        |ends| ends.seal_all(&target),
    );
    rows.print_row(&format!("packet-seal-{method}"), PACKET, ns);
    let ns = time_prepared_operations(
        spend,
        TIMED_PACKETS,
        &mut ends,
        |ends| ends.seal_all(&target),
        PacketBench::open_all,
    );
    rows.print_row(&format!("packet-open-{method}"), PACKET, ns);
    Ok(())
}
