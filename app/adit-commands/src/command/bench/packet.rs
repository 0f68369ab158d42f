//! Packets of KCP with every cipher: sealed and opened sixteen at a time, as sessions do, and one at
//! a time.

use std::hint::black_box;
use std::time::Duration;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_crypto::CryptoError;
use adit_crypto::packet::session::{PacketSession, Role, SessionCipher, SessionKey};
use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_net::system::ThreadRng;
use adit_wire::{Entropy, ProtocolError, usize_from};

use super::rows::{RowPrinter, time_operation, time_prepared_operations};

/// Bytes of a datagram, nonce and check included.
const LEN: u32 = 1400;
const SIZE: usize = 1400;

/// Number of packets that a session seals or opens together.
const BATCH: u32 = 16;

/// Number of packets that are timed together if each has to be sealed first.
const TIMED_PACKETS: u32 = 64;

const KEY: [u8; 32] = [0x42; 32];

/// Bytes of kcp-go's nonce.
const NONCE: u32 = 16;

/// Prints the rows: all ciphers of kcptun, those of `kcp9`, adit's sessions, then the checks and
/// nonces of all ciphers.
pub(super) fn print_rows(rows: &RowPrinter) -> CommandResult {
    let failed = |why: CryptoError| Failure::new(FailureCode::Failure, why.to_string());
    let kcp9 = [PacketKind::Aes, PacketKind::Aes128, PacketKind::Salsa20];
    let kcp9 = kcp9.map(|kind| (kind, PacketCheck::HighwayHash, "-kcp9"));
    let plain = PacketKind::ALL.map(|kind| (kind, PacketCheck::Crc32, ""));
    for (kind, check, suffix) in plain.into_iter().chain(kcp9) {
        let key = PacketKey::from_key(kind, check, &KEY).map_err(failed)?;
        for (what, measure) in OF_PACKETS {
            rows.print_row(
                &format!("{what}-{kind}{suffix}"),
                LEN,
                measure(&key, rows.time_per_row()),
            );
        }
    }
    for (cipher, name) in SESSIONS {
        let SessionTimes { seal, open } =
            time_session(cipher, rows.time_per_row()).map_err(failed)?;
        rows.print_row(&format!("seal-{name}"), LEN, seal);
        rows.print_row(&format!("open-{name}"), LEN, open);
    }
    for (check, name) in [
        (PacketCheck::Crc32, "crc32"),
        (PacketCheck::HighwayHash, "highwayhash"),
    ] {
        let key = PacketKey::from_key(PacketKind::None, check, &KEY).map_err(failed)?;
        let (mut packet, mut other) = ([7; SIZE], [7; SIZE]);
        let two = time_operation(rows.time_per_row(), || {
            key.write_checks(black_box([&mut packet, &mut other]));
        });
        rows.print_row(name, LEN, two / 2.0);
        let one = time_operation(rows.time_per_row(), || {
            key.write_check(black_box(&mut packet));
        });
        rows.print_row(&format!("{name}-one"), LEN, one);
    }
    let mut nonce = [0; 16];
    let ns = time_operation(rows.time_per_row(), || {
        ThreadRng.fill(black_box(&mut nonce));
    });
    rows.print_row("nonce", NONCE, ns);
    Ok(())
}

type Measure = fn(&PacketKey, Duration) -> f64;

const OF_PACKETS: [(&str, Measure); 4] = [
    ("seal", time_seal_batch),
    ("seal-one", time_seal),
    ("open", time_open_batch),
    ("open-one", time_open),
];

const SESSIONS: [(SessionCipher, &str); 2] = [
    (SessionCipher::Aes128Gcm, "adit-aes-128-gcm"),
    (SessionCipher::ChaCha20Poly1305, "adit-chacha20-poly1305"),
];

fn time_seal_batch(key: &PacketKey, spend: Duration) -> f64 {
    let mut packets = vec![[7; SIZE]; usize_from(BATCH)];
    let mut packets = slices(&mut packets);
    let all = time_operation(spend, || {
        let sealed = key.seal_batch(black_box(&mut packets), &mut ThreadRng);
        debug_assert_eq!(sealed, Ok(()));
    });
    all / f64::from(BATCH)
}

fn time_seal(key: &PacketKey, spend: Duration) -> f64 {
    let mut packet = [7; SIZE];
    time_operation(spend, || {
        let sealed = key.seal(black_box(&mut packet), &mut ThreadRng);
        debug_assert_eq!(sealed, Ok(()));
    })
}

fn time_open_batch(key: &PacketKey, spend: Duration) -> f64 {
    time_opening(key, spend, |packets| {
        for packets in packets.chunks_mut(usize_from(BATCH)) {
            key.open_batch(black_box(packets), &mut |_, opened| {
                debug_assert!(opened.is_ok(), "{opened:?}");
                black_box(&opened);
            });
        }
    })
}

fn time_open(key: &PacketKey, spend: Duration) -> f64 {
    time_opening(key, spend, |packets| {
        for packet in packets {
            let opened = key.open(black_box(packet));
            debug_assert!(opened.is_ok(), "{opened:?}");
        }
    })
}

/// Returns the packets as a batch.
fn slices(packets: &mut [[u8; SIZE]]) -> Vec<&mut [u8]> {
    packets.iter_mut().map(|packet| &mut packet[..]).collect()
}

fn time_opening(key: &PacketKey, spend: Duration, open: impl FnMut(&mut [&mut [u8]])) -> f64 {
    let mut packets = vec![[7; SIZE]; usize_from(TIMED_PACKETS)];
    let mut packets = slices(&mut packets);
    let seal = |packets: &mut [&mut [u8]]| {
        let sealed = key.seal_batch(packets, &mut ThreadRng);
        debug_assert_eq!(sealed, Ok(()));
    };
    time_prepared_operations(spend, TIMED_PACKETS, &mut packets[..], seal, open)
}

/// Nanoseconds per packet of a session.
struct SessionTimes {
    seal: f64,
    open: f64,
}

/// Times packets from a client to a server after their key exchange.
fn time_session(cipher: SessionCipher, spend: Duration) -> Result<SessionTimes, CryptoError> {
    let key = SessionKey::new(&KEY)?;
    let mut client = key.connect(cipher, &mut ThreadRng)?;
    let mut server = accept_session(&key, &mut client).map_err(|_| CryptoError::Unauthentic)?;
    let mut packet = [7; SIZE];
    let seal = time_operation(spend, || {
        let sealed = client.seal(black_box(&mut packet));
        debug_assert_eq!(sealed, Ok(()));
    });
    let mut packets = vec![[7; SIZE]; usize_from(TIMED_PACKETS)];
    let open = time_prepared_operations(
        spend,
        TIMED_PACKETS,
        &mut packets,
        |packets| {
            for packet in packets {
                let sealed = client.seal(packet);
                debug_assert_eq!(sealed, Ok(()));
            }
        },
        |packets| {
            for packet in packets {
                let head = key.decrypt_header(Role::Client, black_box(packet));
                let opened = head.map(|head| server.open(head, packet));
                debug_assert!(matches!(opened, Some(Ok(_))), "{opened:?}");
            }
        },
    );
    Ok(SessionTimes { seal, open })
}

/// Returns the server's session, after one packet in each direction.
fn accept_session(
    key: &SessionKey,
    client: &mut PacketSession,
) -> Result<PacketSession, ProtocolError> {
    let mut packet = [7; SIZE];
    client.seal(&mut packet)?;
    let head = key
        .decrypt_header(Role::Client, &packet)
        .ok_or(ProtocolError::Unauthentic)?;
    let (mut server, _) = key.accept(head, &mut packet, &mut ThreadRng)?;
    server.seal(&mut packet)?;
    let head = key
        .decrypt_header(Role::Server, &packet)
        .ok_or(ProtocolError::Unauthentic)?;
    client.open(head, &mut packet)?;
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(15);

    /// The benchmarks assert that every packet is opened.
    #[test]
    fn ciphers_cost_more_than_none() {
        let ns = |kind| {
            let key = PacketKey::from_key(kind, PacketCheck::Crc32, &KEY).unwrap();
            [time_seal_batch, time_seal, time_open].map(|measure: Measure| measure(&key, SHORT))
        };
        let none = ns(PacketKind::None);
        let triple = ns(PacketKind::TripleDes);
        for (none, triple) in none.into_iter().zip(triple) {
            assert!(none > 0.0 && triple > 2.0 * none, "{none} {triple}");
        }
    }

    #[test]
    fn sessions_are_timed() {
        for (cipher, name) in SESSIONS {
            let SessionTimes { seal, open } = time_session(cipher, SHORT).unwrap();
            assert!(seal > 0.0 && open > 0.0, "{name}");
        }
    }
}
