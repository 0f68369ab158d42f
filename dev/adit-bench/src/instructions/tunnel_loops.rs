//! The loops of KCP, error correction and SSH, in memory.

use std::hint::black_box;

use adit_crypto::Secret;
use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_fec::{CodeMatrix, Decoder, Encoder, ErasureCode, HEADER};
use adit_kcp_proto::{Config, HEADER_LEN, KcpSession};
use adit_ssh_proto::algorithm::{Cipher, Compression, Mac};
use adit_ssh_proto::packet::{DirectionKeys, Opened, Opener, Sealer};
use adit_umac::{Nonce, UmacSession};
use adit_wire::{FixedEntropy, Time};
use anyhow::{Context, Result, bail, ensure};

use super::hot_loops::{HotLoop, hot_loop};

/// Segments, datagrams or tags per turn.
const BATCH_LEN: usize = 64;
/// Segments in flight: a full window except for one.
const IN_FLIGHT: u32 = 1023;
/// Bytes of a datagram.
const DATAGRAM_LEN: usize = 1400;
/// Bytes of data in an SSH packet, as channels send them.
const SSH_DATA_LEN: usize = 32 * 1024;
/// SSH packets per turn: 1 MiB.
const PACKETS: usize = 32;
/// Time between two turns of KCP, in microseconds.
const STEP_MICROS: u64 = 10_000;

const TURNS: (u32, u32) = (1, 17);
const FEW: (u32, u32) = (1, 5);

/// All loops of this module.
pub(super) const LOOPS: [HotLoop; 10] = [
    hot_loop(
        "KCP: 64 segments there, acknowledged",
        TURNS,
        transfer_segments,
    ),
    hot_loop(
        "KCP: 64 flushes, 1,023 segments in flight",
        TURNS,
        flush_full_window,
    ),
    hot_loop("FEC 10+3: ten datagrams sealed", TURNS, encode_parity),
    hot_loop(
        "FEC 10+3: three datagrams of ten restored",
        TURNS,
        restore_lost,
    ),
    hot_loop("kcptun aes: seal and open 64 datagrams", TURNS, |n| {
        seal_open_datagrams(PacketKind::Aes, n)
    }),
    hot_loop("kcptun salsa20: seal and open 64 datagrams", TURNS, |n| {
        seal_open_datagrams(PacketKind::Salsa20, n)
    }),
    hot_loop("SSH aes128-gcm: seal and open 1 MiB", FEW, |n| {
        seal_open_packets(Cipher::Aes128Gcm, None, n)
    }),
    hot_loop(
        "SSH aes128-ctr, umac-64-etm: seal and open 1 MiB",
        FEW,
        |n| seal_open_packets(Cipher::Aes128Ctr, Some(Mac::Umac64Etm), n),
    ),
    hot_loop("SSH chacha20-poly1305: seal and open 1 MiB", FEW, |n| {
        seal_open_packets(Cipher::ChaCha20Poly1305, None, n)
    }),
    hot_loop("64 tags of UMAC-64 of 1 KiB", TURNS, umac_tags),
];

fn new_session() -> KcpSession {
    let config = Config {
        send_window: 1024,
        recv_window: 1024,
        ..Config::fast3()
    };
    KcpSession::new(7, config, Time(0))
}

/// Passes everything that one end has to send to the other.
fn exchange_datagrams(
    now: Time,
    from: &mut KcpSession,
    to: &mut KcpSession,
    out: &mut [u8],
) -> Result<usize> {
    let mut passed = 0;
    while let Some(len) = from.poll_output(now, out) {
        to.handle_input(now, out.get(..len).context("a datagram")?, false)?;
        passed += 1;
    }
    Ok(passed)
}

/// Returns two ends, the first of which knows the other's window.
fn connected_pair(data: &[u8], out: &mut [u8]) -> Result<(KcpSession, KcpSession)> {
    let (mut near, mut far) = (new_session(), new_session());
    near.send(data)?;
    exchange_datagrams(Time(0), &mut near, &mut far, out)?;
    ensure!(far.consume(data.len()) == data.len(), "no data arrived");
    far.flush_now(Time(0));
    exchange_datagrams(Time(0), &mut far, &mut near, out)?;
    Ok((near, far))
}

/// Returns a full segment, and a buffer for a datagram.
fn full_segment() -> (Vec<u8>, Vec<u8>) {
    let mtu = new_session().config().mtu;
    (vec![7; mtu - HEADER_LEN], vec![0; mtu])
}

/// Transfers full segments from one end to the other, which reads and acknowledges them.
fn transfer_segments(times: u32) -> Result<()> {
    let (data, mut out) = full_segment();
    let (mut near, mut far) = connected_pair(&data, &mut out)?;
    for turn in 1..=u64::from(times) {
        let now = Time(turn * STEP_MICROS);
        for _ in 0..BATCH_LEN {
            ensure!(
                near.send(black_box(&data))? == data.len(),
                "the send window is full"
            );
            exchange_datagrams(now, &mut near, &mut far, &mut out)?;
            ensure!(far.consume(data.len()) == data.len(), "no data arrived");
        }
        far.flush_now(now);
        exchange_datagrams(now, &mut far, &mut near, &mut out)?;
        ensure!(near.is_drained(), "not all segments are acknowledged");
    }
    Ok(())
}

/// Flushes a full window in which no segment is due.
fn flush_full_window(times: u32) -> Result<()> {
    let (data, mut out) = full_segment();
    let (mut near, _) = connected_pair(&data, &mut out)?;
    let mut sent = 0;
    for _ in 0..IN_FLIGHT {
        near.send(&data)?;
        while near.poll_output(Time(0), &mut out).is_some() {
            sent += 1;
        }
    }
    ensure!(sent == IN_FLIGHT, "{sent} segments in flight");
    for _ in 0..times {
        for _ in 0..BATCH_LEN {
            near.flush_now(black_box(Time(0)));
            let due = near.poll_output(black_box(Time(0)), black_box(&mut out));
            ensure!(due.is_none(), "a segment is due");
        }
    }
    Ok(())
}

fn erasure_code() -> Result<ErasureCode> {
    Ok(ErasureCode::new(CodeMatrix::Vandermonde, 10, 3)?)
}

/// Encodes a group's datagrams and its parity.
fn encode_parity(times: u32) -> Result<()> {
    let mut encoder = Encoder::new(erasure_code()?, DATAGRAM_LEN)?;
    let mut packet = vec![7; HEADER + DATAGRAM_LEN];
    let mut out = vec![0; encoder.max_packet()];
    for _ in 0..times {
        let mut made = 0;
        for _ in 0..10 {
            encoder.seal(Time(0), black_box(&mut packet))?;
            while encoder.poll_output(black_box(&mut out)).is_some() {
                made += 1;
            }
        }
        ensure!(made == 3, "{made} parity packets");
    }
    Ok(())
}

/// Seals a group, loses its first three datagrams, and restores them.
fn restore_lost(times: u32) -> Result<()> {
    let mut encoder = Encoder::new(erasure_code()?, DATAGRAM_LEN)?;
    let mut decoder = Decoder::new(erasure_code()?, DATAGRAM_LEN);
    let mut packet = vec![7; HEADER + DATAGRAM_LEN];
    let mut out = vec![0; encoder.max_packet()];
    for _ in 0..times {
        let mut back = 0;
        for place in 0..10 {
            encoder.seal(Time(0), &mut packet)?;
            if place >= 3 {
                decoder.handle_input(black_box(&packet));
            }
            while let Some(len) = encoder.poll_output(&mut out) {
                decoder.handle_input(black_box(out.get(..len).context("parity")?));
            }
            while decoder.poll_recovered().is_some() {
                back += 1;
            }
        }
        ensure!(back == 3, "{back} datagrams were restored");
    }
    Ok(())
}

/// Seals and opens datagrams as kcptun does, sixteen at a time.
fn seal_open_datagrams(kind: PacketKind, times: u32) -> Result<()> {
    let key = PacketKey::from_key(kind, PacketCheck::Crc32, &[0x42; 32])?;
    let mut rng = FixedEntropy::default();
    let mut packets = vec![[7; DATAGRAM_LEN]; BATCH_LEN];
    let mut packets: Vec<&mut [u8]> = packets.iter_mut().map(|packet| &mut packet[..]).collect();
    for _ in 0..times {
        for batch in packets.chunks_mut(16) {
            key.seal_batch(black_box(batch), &mut rng)?;
        }
        for packet in &mut packets {
            key.open(black_box(packet))?;
        }
    }
    Ok(())
}

fn direction_keys(cipher: Cipher, mac: Option<Mac>) -> DirectionKeys {
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

/// Seals packets of a connection into one buffer and opens them there.
fn seal_open_packets(cipher: Cipher, mac: Option<Mac>, times: u32) -> Result<()> {
    let (mut sealer, mut opener) = (Sealer::new(), Opener::new());
    sealer.set_keys(direction_keys(cipher, mac), true)?;
    opener.set_keys(direction_keys(cipher, mac), true)?;
    let data = vec![0x5a; SSH_DATA_LEN];
    let mut buffer = Vec::with_capacity((SSH_DATA_LEN + 256) * PACKETS);
    for _ in 0..times {
        buffer.clear();
        for _ in 0..PACKETS {
            sealer.seal(black_box(&data), &mut buffer)?;
        }
        let (mut wire, mut opened) = (buffer.as_mut_slice(), 0);
        while !wire.is_empty() {
            let Opened::Packet { consumed, payload } = opener.open(wire)? else {
                bail!("a packet is incomplete");
            };
            opened += black_box(opener.payload(wire, &payload)).len();
            wire = wire.get_mut(consumed..).unwrap_or_default();
        }
        ensure!(
            opened == PACKETS * SSH_DATA_LEN,
            "only {opened} bytes were opened"
        );
    }
    Ok(())
}

/// Computes the tags of successive packets of one connection, with consecutive nonces.
fn umac_tags(times: u32) -> Result<()> {
    let mut session = UmacSession::<8>::new(&[0x42; 16]);
    let message = [7; 1024];
    for number in 0..u64::from(times) * BATCH_LEN as u64 {
        black_box(session.compute_tag(Nonce::from(number), black_box(&message)));
    }
    Ok(())
}
