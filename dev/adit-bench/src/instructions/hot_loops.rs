//! The loops of records, packets, keys and the relay, in memory, without randomness or a clock.
//! Those of [`tunnel_loops`](super::tunnel_loops) are separate.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::{HeaderCipher, KdfContext, hkdf_sha1_subkey};
use adit_shadowsocks::tcp::{ClientOpen, ClientSeal, ServerHandshake, client_codecs};
use adit_shadowsocks::{Key, Method, RestartPolicy, SaltPool, Users};
use adit_stream::{EndReason, Layered, RelayTimeouts, TrafficMeter, relay};
use adit_wire::{
    Clock, FixedEntropy, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Open,
    Opened, Seal, Target, UnixTime,
};
use anyhow::{Context, Result, bail, ensure};
use tokio::runtime::{Builder, Runtime};

use super::memory_stream::MemoryStream;
use crate::packet_loop::PacketPair;

const NOW: UnixTime = UnixTime(1_700_000_000);
const MIB: usize = 1 << 20;
/// Payload of a record, in bytes.
const RECORD: usize = 16 * 1024 - 1;
/// Payload of a packet, in bytes.
const PACKET: usize = 1400;
/// Packets per turn.
const PACKETS: usize = 64;
/// Keys or headers per turn.
const BATCH: usize = 64;

/// Timeouts that never elapse here.
const LIMITS: RelayTimeouts = RelayTimeouts::NEVER
    .with_idle(Duration::from_secs(3600))
    .with_half_close_idle(Duration::from_secs(3600));

/// A hot loop.
pub(super) struct HotLoop {
    /// The work of one turn.
    pub(super) name: &'static str,
    /// The two numbers of turns whose difference is taken.
    pub(super) turns: (u32, u32),
    /// Runs this number of turns.
    pub(super) work: fn(u32) -> Result<()>,
}

pub(super) const fn hot_loop(
    name: &'static str,
    times: (u32, u32),
    work: fn(u32) -> Result<()>,
) -> HotLoop {
    HotLoop {
        name,
        turns: times,
        work,
    }
}

const TCP: (u32, u32) = (1, 5);
const UDP: (u32, u32) = (1, 17);
const KEYS: (u32, u32) = (1, 65);

/// All loops of this module.
pub(super) const LOOPS: [HotLoop; 15] = [
    hot_loop("2022-blake3-aes-128-gcm: seal 1 MiB", TCP, |n| {
        seal_records(Method::Blake3Aes128Gcm, n)
    }),
    hot_loop("2022-blake3-aes-128-gcm: open 1 MiB", TCP, |n| {
        open_records(Method::Blake3Aes128Gcm, n)
    }),
    hot_loop("2022-blake3-aes-128-gcm: relay and seal 1 MiB", TCP, |n| {
        relay_sealing(Method::Blake3Aes128Gcm, n)
    }),
    hot_loop("2022-blake3-aes-128-gcm: open and relay 1 MiB", TCP, |n| {
        relay_opening(Method::Blake3Aes128Gcm, n)
    }),
    hot_loop("chacha20-ietf-poly1305: seal 1 MiB", TCP, |n| {
        seal_records(Method::ChaCha20IetfPoly1305, n)
    }),
    hot_loop("chacha20-ietf-poly1305: open 1 MiB", TCP, |n| {
        open_records(Method::ChaCha20IetfPoly1305, n)
    }),
    hot_loop("2022-blake3-chacha8-poly1305: seal 1 MiB", TCP, |n| {
        seal_records(Method::Blake3ChaCha8Poly1305, n)
    }),
    hot_loop("2022-blake3-aes-256-gcm: seal 64 packets", UDP, |n| {
        run_packets(Method::Blake3Aes256Gcm, n, PacketWork::Seal)
    }),
    hot_loop(
        "2022-blake3-aes-256-gcm: seal and open 64 packets",
        UDP,
        |n| run_packets(Method::Blake3Aes256Gcm, n, PacketWork::SealAndOpen),
    ),
    hot_loop("aes-256-gcm: seal 64 packets", UDP, |n| {
        run_packets(Method::Aes256Gcm, n, PacketWork::Seal)
    }),
    hot_loop("aes-256-gcm: seal and open 64 packets", UDP, |n| {
        run_packets(Method::Aes256Gcm, n, PacketWork::SealAndOpen)
    }),
    hot_loop(
        "2022-blake3-chacha20-poly1305: seal and open 64 packets",
        UDP,
        |n| run_packets(Method::Blake3ChaCha20Poly1305, n, PacketWork::SealAndOpen),
    ),
    hot_loop("64 HKDF-SHA1 subkeys", KEYS, |n| {
        derive_keys(n, |salt, out| Ok(hkdf_sha1_subkey(&[1; 32], salt, out)?))
    }),
    hot_loop("64 BLAKE3 subkeys", KEYS, |n| {
        let context = KdfContext::new("shadowsocks 2022 session subkey");
        derive_keys(n, |salt, out| {
            context.derive_key(&[&[1; 32], salt], out);
            Ok(())
        })
    }),
    hot_loop(
        "64 AES-256 headers, encrypted and decrypted",
        KEYS,
        run_headers,
    ),
];

fn test_key(method: Method) -> Key {
    Key::generate(method, &mut FixedEntropy::default()).0
}

fn test_target() -> Result<Target> {
    "192.0.2.1:443".parse().context("a target")
}

/// Returns a client's codecs, always with the same salt.
fn test_codecs(key: &Key) -> Result<(ClientSeal, ClientOpen)> {
    let clock: Arc<dyn Clock> = Arc::new(NOW);
    Ok(client_codecs(
        &key.clone().into(),
        &test_target()?,
        clock,
        &mut FixedEntropy::default(),
    )?)
}

/// Seals `payload` bytes as records; the wire bytes are passed to `sent`.
fn seal_all(seal: &mut dyn Seal, payload: usize, mut sent: impl FnMut(&[u8])) -> Result<()> {
    let mut record = vec![0; 2 * RECORD];
    let mut left = payload;
    while left > 0 {
        let room = seal.overhead();
        let payload = room.head..room.head + left.min(RECORD).min(room.max_payload);
        left -= payload.len();
        let record = record.get_mut(..payload.end + room.tail).context("room")?;
        let wire = seal.seal(record, payload)?;
        sent(record.get(wire).unwrap_or_default());
    }
    Ok(())
}

/// Seals a connection with 1 MiB of payload per turn.
fn seal_records(method: Method, times: u32) -> Result<()> {
    let key = test_key(method);
    for _ in 0..times {
        let (mut seal, _) = test_codecs(&key)?;
        seal_all(&mut seal, MIB, |wire| {
            black_box(wire);
        })?;
    }
    Ok(())
}

/// Returns a server's answer of 1 MiB to such a client.
fn sealed_answer(key: &Key) -> Result<Vec<u8>> {
    let (mut seal, _) = test_codecs(key)?;
    let mut request = Vec::new();
    seal_all(&mut seal, 1, |wire| request.extend_from_slice(wire))?;
    let salts = SaltPool::new([0; 16], UnixTime(NOW.0 - 3600), RestartPolicy::Lenient);
    let clock: Arc<dyn Clock> = Arc::new(NOW);
    let mut entropy = FixedEntropy::new([9; 32]);
    let mut handshake = ServerHandshake::new(
        &Users::with_single_key(key.clone()),
        clock,
        Arc::new(salts),
        &mut entropy,
    );
    let mut out = Vec::new();
    let step = handshake.step(
        &mut HandshakeInput::new(&mut request),
        &mut HandshakeOutput::new(&mut out),
    )?;
    let HandshakeProgress::Done(mut accepted) = step else {
        bail!("the request is incomplete");
    };
    let mut wire = Vec::new();
    seal_all(&mut accepted.seal, MIB, |record| {
        wire.extend_from_slice(record);
    })?;
    Ok(wire)
}

/// Opens a connection whose answer has 1 MiB of payload per turn.
fn open_records(method: Method, times: u32) -> Result<()> {
    let key = test_key(method);
    let sealed = sealed_answer(&key)?;
    let mut wire = sealed.clone();
    for _ in 0..times {
        wire.copy_from_slice(&sealed);
        let (_, mut open) = test_codecs(&key)?;
        let (mut at, mut opened) = (0, 0);
        while at < wire.len() {
            match open.open(wire.get_mut(at..).unwrap_or_default())? {
                Opened::Record { consumed, payload } => {
                    at += consumed;
                    opened += payload.len();
                }
                other => bail!("unexpected {other:?} before the end"),
            }
        }
        ensure!(opened == MIB, "only {opened} bytes were opened");
    }
    Ok(())
}

fn new_runtime() -> Result<Runtime> {
    // Its timers are for the relay's deadlines, which are far away.
    Ok(Builder::new_current_thread().enable_time().build()?)
}

/// Relays plain bytes into records, 1 MiB per turn.
fn relay_sealing(method: Method, times: u32) -> Result<()> {
    let (key, runtime) = (test_key(method), new_runtime()?);
    for _ in 0..times {
        let (seal, open) = test_codecs(&key)?;
        let mut near = MemoryStream::new(vec![0; MIB], 0);
        let mut far = Layered::new(MemoryStream::new(Vec::new(), 2 * MIB), seal, open);
        let outcome = runtime.block_on(relay(
            &mut near,
            &mut far,
            &LIMITS,
            &TrafficMeter::default(),
        ));
        let good = matches!(outcome.end, EndReason::Finished) && outcome.up == MIB as u64;
        ensure!(good, "{outcome:?}");
    }
    Ok(())
}

/// Relays records into plain bytes, 1 MiB per turn.
fn relay_opening(method: Method, times: u32) -> Result<()> {
    let (key, runtime) = (test_key(method), new_runtime()?);
    let sealed = sealed_answer(&key)?;
    for _ in 0..times {
        let (seal, open) = test_codecs(&key)?;
        let mut near = MemoryStream::new(Vec::new(), 2 * MIB);
        let mut far = Layered::new(MemoryStream::new(sealed.clone(), RECORD), seal, open);
        let outcome = runtime.block_on(relay(
            &mut near,
            &mut far,
            &LIMITS,
            &TrafficMeter::default(),
        ));
        let good = matches!(outcome.end, EndReason::Finished) && near.written() == MIB;
        ensure!(good, "{outcome:?}");
    }
    Ok(())
}

/// The work on packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketWork {
    Seal,
    SealAndOpen,
}

fn run_packets(method: Method, times: u32, way: PacketWork) -> Result<()> {
    let mut rng = FixedEntropy::default();
    let mut packets = PacketPair::new(method, PACKET, PACKETS, &mut rng)?;
    for _ in 0..times {
        packets.seal_all(&mut rng)?;
        if way == PacketWork::SealAndOpen {
            packets.open_all()?;
        }
    }
    Ok(())
}

fn derive_keys(times: u32, derive: impl Fn(&[u8], &mut [u8]) -> Result<()>) -> Result<()> {
    let mut out = [0; 32];
    for _ in 0..times {
        for _ in 0..BATCH {
            derive(black_box(&[2; 32]), &mut out)?;
            black_box(&out);
        }
    }
    Ok(())
}

fn run_headers(times: u32) -> Result<()> {
    let cipher = HeaderCipher::new(&[1; 32])?;
    let mut block = [0; 16];
    for _ in 0..times {
        for _ in 0..BATCH {
            cipher.encrypt_block(black_box(&mut block));
            cipher.decrypt_block(black_box(&mut block));
        }
    }
    Ok(())
}
