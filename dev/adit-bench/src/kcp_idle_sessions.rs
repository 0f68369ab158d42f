//! Many idle sessions with few descriptors: several conversations per socket, started one after the
//! other by the cores alone, since a client with timers and tasks for each session would be
//! measured together with the server on the same machine. The suite `kcp` starts this as a separate
//! process.

use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_fec::{CodeMatrix, Encoder, ErasureCode, HEADER, Packet};
use adit_kcp_proto::{Config, KcpSession};
use adit_net::system::{self, ThreadRng};
use anyhow::{Context, Result, bail};

use crate::kcp_session::{FEC_SHARDS, MTU, PASSWORD, PROCESS_LIFETIME};

/// The cipher of these sessions. It authenticates, since a server with other ciphers starts only a
/// few hundred new sessions per second.
pub(crate) const CIPHER: PacketKind = PacketKind::Aes128Gcm;

/// Sessions per socket: a server's limit for one address.
const SESSIONS_PER_SOCKET: u32 = 4;

/// Time to wait for an answer before everything due is sent again, and the time-out.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// Starts `count` sessions with the server: each sends one byte, receives it back, and falls
/// silent. Then prints `ready` and holds the sockets.
pub(crate) fn hold_sessions(server: SocketAddr, count: u32) -> Result<()> {
    let key = PacketKey::new(CIPHER, PacketCheck::Crc32, PASSWORD)?;
    let (data, parity) = FEC_SHARDS;
    let code = ErasureCode::new(CodeMatrix::Vandermonde, data, parity)?;
    let mut sockets = Vec::new();
    for first in (0..count).step_by(usize::try_from(SESSIONS_PER_SOCKET)?) {
        let socket = UdpSocket::bind("127.0.0.1:0").context("cannot open a socket")?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(PATIENCE.0))?;
        for conv in first..count.min(first + SESSIONS_PER_SOCKET) {
            start_session(&socket, conv, &key, &code)?;
        }
        sockets.push(socket);
    }
    println!("ready {server}");
    sleep(PROCESS_LIFETIME);
    Ok(())
}

/// Runs one session up to the acknowledgement of the answer.
fn start_session(socket: &UdpSocket, conv: u32, key: &PacketKey, code: &ErasureCode) -> Result<()> {
    let config = Config {
        mtu: MTU - HEADER - key.overhead_len(),
        ..Config::fast3()
    };
    let mut now = system::monotonic_now();
    let mut kcp = KcpSession::new(conv, config, now);
    let mut encoder = Encoder::new(code.clone(), config.mtu)?;
    kcp.send(b"x")?;
    let mut buf = [0; 2048];
    let began = Instant::now();
    loop {
        let head = key.overhead_layout().head;
        while let Some(len) = kcp.poll_output(now, buf.get_mut(head + HEADER..).context("room")?) {
            let shard = buf.get_mut(head..head + HEADER + len).context("room")?;
            encoder.seal(now, shard)?;
            let packet = buf.get_mut(..HEADER + len + key.overhead_len());
            let packet = packet.context("room")?;
            key.seal(packet, &mut ThreadRng)?;
            socket.send(packet)?;
        }
        if kcp.front_bytes().is_some() && kcp.is_drained() {
            return Ok(());
        }
        if began.elapsed() > PATIENCE.1 {
            bail!("session {conv} received no answer");
        }
        match socket.recv(&mut buf) {
            Ok(len) => {
                now = system::monotonic_now();
                let packet = buf.get_mut(..len).context("room")?;
                let payload = key.open(packet)?;
                let payload = packet.get(payload).context("the packet has no payload")?;
                // Late packets: of another session on this socket, or parity.
                if let Some(Packet::Data { datagram, .. }) = Packet::parse(payload)
                    && datagram.starts_with(&conv.to_le_bytes())
                {
                    kcp.handle_input(now, datagram, false)?;
                }
                // Acknowledged immediately: no timer would do it later.
                kcp.flush_now(now);
            }
            Err(why) if is_timeout(&why) => now = system::monotonic_now(),
            Err(why) => return Err(why.into()),
        }
    }
}

fn is_timeout(why: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(why.kind(), TimedOut | WouldBlock)
}
