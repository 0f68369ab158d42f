//! Whole sessions over loopback sockets.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_fec::CodeMatrix;
use adit_interop::BytePattern;
use adit_interop::lossy_relay::{FaultRates, LossyRelay};
use adit_kcp_proto::{Command, Config, SegmentHeader};
use adit_stream::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::*;

mod beside;
mod change;
mod crypt;
#[cfg(target_os = "linux")]
mod handover;
mod memory;
mod transport;
mod vectored;

const PATIENCE: Duration = Duration::from_secs(15);
const FEC: Fec = Fec {
    data: 10,
    parity: 3,
    matrix: CodeMatrix::Vandermonde,
};

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn settings(kind: PacketKind, fec: Option<Fec>) -> Settings {
    let key = PacketKey::new(kind, PacketCheck::Crc32, b"it's a secrect").unwrap();
    Settings {
        key: Some(Arc::new(key)),
        fec,
        ..Settings::new(Config::fast3())
    }
}

fn plain() -> Settings {
    Settings::new(Config::fast3())
}

/// Sends `len` bytes in one direction and back again, and compares.
async fn echo(mut near: KcpStream, mut far: KcpStream, len: usize, seed: u64) {
    let bytes = BytePattern::new(seed).next_bytes(len);
    let back = tokio::spawn(async move {
        let mut left = len;
        let mut buf = vec![0; 20_000];
        while left > 0 {
            let n = far.read(&mut buf).await.unwrap();
            far.write_all(&buf[..n]).await.unwrap();
            left -= n;
        }
        far
    });
    let (mut reader, mut writer) = {
        // One byte first, so that the halves start with an open session.
        near.write_all(&bytes[..1]).await.unwrap();
        near.into_split()
    };
    let sent = bytes.clone();
    let send = tokio::spawn(async move {
        writer.write_all(&sent[1..]).await.unwrap();
        writer
    });
    let mut got = vec![0; len];
    timeout(PATIENCE, reader.read_exact(&mut got))
        .await
        .expect("the bytes must return in time")
        .unwrap();
    assert!(got == bytes, "the bytes are the same");
    send.await.unwrap();
    back.await.unwrap();
}

async fn pair(server: Settings, client: Settings) -> (KcpListener, KcpStream, KcpStream) {
    let mut listener = KcpListener::bind(any(), server).unwrap();
    let addr = listener.local_addr().unwrap();
    let (near, far) = through(&mut listener, addr, client).await;
    (listener, near, far)
}

/// Returns a session whose first byte was received.
async fn through(
    listener: &mut KcpListener,
    addr: SocketAddr,
    client: Settings,
) -> (KcpStream, KcpStream) {
    met(listener, KcpStream::connect(addr, client).await.unwrap()).await
}

#[tokio::test]
async fn a_peer_is_an_address_or_a_name_with_a_port() {
    let mut listener = KcpListener::bind(any(), plain()).unwrap();
    let port = listener.local_addr().unwrap().port();
    let near = KcpStream::connect(("127.0.0.1", port), plain()).await;
    met(&mut listener, near.unwrap()).await;
    let near = KcpStream::connect(format!("127.0.0.1:{port}"), plain()).await;
    assert_eq!(near.unwrap().peer_addr().port(), port);
    let nowhere: &[SocketAddr] = &[];
    let failure = KcpStream::connect(nowhere, plain()).await.unwrap_err();
    assert_eq!(failure.kind(), std::io::ErrorKind::NotFound);
    let failure = KcpStream::connect("no-port", plain()).await.unwrap_err();
    assert_eq!(failure.kind(), std::io::ErrorKind::InvalidInput);
}

/// Returns a session of `near` whose first byte was received.
async fn met(listener: &mut KcpListener, mut near: KcpStream) -> (KcpStream, KcpStream) {
    near.write_all(b"!").await.unwrap();
    let accepted = timeout(PATIENCE, listener.accept()).await;
    let (mut far, _) = accepted.expect("a session must start").unwrap();
    assert_eq!(far.conv(), near.conv());
    let mut first = [0];
    far.read_exact(&mut first).await.unwrap();
    (near, far)
}

#[tokio::test]
async fn every_stage_in_every_combination() {
    let mut seed = 0;
    for kind in PacketKind::ALL {
        for (near, far) in [(None, None), (Some(FEC), Some(FEC)), (Some(FEC), None)] {
            seed += 1;
            let (_listener, near, far) = pair(settings(kind, far), settings(kind, near)).await;
            echo(near, far, 60_000, seed).await;
        }
    }
}

#[tokio::test]
async fn correction_follows_the_peer_where_that_is_wished() {
    let fec = Some(Fec {
        data: 3,
        parity: 1,
        matrix: CodeMatrix::Vandermonde,
    });
    let with = |fec, fec_follows| Settings {
        fec_follows,
        ..settings(PacketKind::Aes, fec)
    };
    for (server, client, corrects) in [
        (with(fec, true), with(None, false), false),
        (with(fec, true), with(fec, true), true),
        (with(fec, false), with(None, false), true),
        (with(None, false), with(fec, true), false),
    ] {
        let at_once = client.fec.is_some();
        let (_listener, near, far) = pair(server, client).await;
        let (near_probe, far_probe) = (near.session_probe(), far.session_probe());
        echo(near, far, 200_000, 5).await;
        assert_eq!(near_probe.peer_uses_fec(), Some(corrects));
        // The client's first data was sent before it had received anything.
        assert_eq!(far_probe.peer_uses_fec(), Some(at_once));
    }
}

#[tokio::test]
async fn the_mode_kcp9_is_another() {
    let nine = || {
        let key = PacketKey::new(PacketKind::Aes, PacketCheck::HighwayHash, b"secret").unwrap();
        let fec = Fec {
            matrix: CodeMatrix::Cauchy,
            ..FEC
        };
        Settings {
            key: Some(Arc::new(key)),
            ..settings(PacketKind::Aes, Some(fec))
        }
    };
    let (_listener, near, far) = pair(nine(), nine()).await;
    let probe = near.session_probe();
    echo(near, far, 200_000, 9).await;
    assert_eq!(probe.peer_contact(), PeerContact::Heard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_comes_through_a_bad_path() {
    let faults = FaultRates {
        lost: 80,
        doubled: 20,
        late: 50,
    };
    for (fec, seed) in [(None, 1), (Some(FEC), 2)] {
        let server = settings(PacketKind::Salsa20, fec);
        let counters = Arc::clone(&server.counters);
        let mut listener = KcpListener::bind(any(), server).unwrap();
        let relay = LossyRelay::start(listener.local_addr().unwrap(), faults, seed).unwrap();
        let client = settings(PacketKind::Salsa20, fec);
        let (near, far) = through(&mut listener, relay.addr(), client).await;
        let probe = far.session_probe();
        echo(near, far, 2_000_000, seed).await;
        let counts = counters.counts();
        assert!(
            counts.retrans_segs > 0 && counts.repeat_segs > 0,
            "{counts:?}"
        );
        assert_eq!(counts.fec_recovered > 0, fec.is_some(), "{counts:?}");
        assert_eq!(counts.fec_shard_min > 0, fec.is_some(), "{counts:?}");
        assert_eq!(probe.peer_shards(), fec.map(|fec| (fec.data, fec.parity)));
        let (_, lost) = relay.packet_counts();
        assert!(lost > 100, "{lost}");
    }
}

#[tokio::test]
async fn messages_keep_their_boundaries() {
    let messages = Settings {
        kcp: Config {
            stream: false,
            ..Config::fast2()
        },
        ..plain()
    };
    let (_listener, mut near, mut far) = pair(messages.clone(), messages).await;
    for len in [1, 1376, 1377, 20_000] {
        let message = BytePattern::new(len as u64).next_bytes(len);
        assert_eq!(near.write(&message).await.unwrap(), len);
        let mut got = vec![0; 30_000];
        let n = far.read(&mut got).await.unwrap();
        assert_eq!(&got[..n], message);
    }
    let why = near.write(&vec![0; 500_000]).await.unwrap_err();
    assert_eq!(why.kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn what_was_written_arrives_though_the_stream_is_dropped() {
    let (_listener, mut near, mut far) = pair(plain(), plain()).await;
    let bytes = BytePattern::new(3).next_bytes(100_000);
    // More than is sent at once, less than the window.
    near.write_all(&bytes).await.unwrap();
    drop(near);
    let mut got = vec![0; bytes.len()];
    timeout(PATIENCE, far.read_exact(&mut got))
        .await
        .unwrap()
        .unwrap();
    assert!(got == bytes);
}

#[tokio::test]
async fn a_socket_is_free_again_when_nobody_needs_it() {
    let server = plain();
    let counters = Arc::clone(&server.counters);
    let (listener, near, mut far) = pair(server.clone(), plain()).await;
    let addr = listener.local_addr().unwrap();
    drop(listener);
    far.write_all(b"goes on").await.unwrap();
    sleep(Duration::from_millis(100)).await;
    drop((near, far));
    let deadline = Instant::now() + PATIENCE;
    while KcpListener::bind(addr, plain()).is_err() {
        assert!(Instant::now() < deadline, "the socket is never closed");
        sleep(Duration::from_millis(20)).await;
    }
    let counts = counters.counts();
    assert_eq!((counts.curr_estab, counts.passive_opens), (0, 1));
}

/// Returns a datagram as any client would send it.
fn push(conv: u32, sn: u32, cmd: Command) -> Vec<u8> {
    let header = SegmentHeader {
        conv,
        cmd,
        frg: 0,
        wnd: 32,
        ts: 0,
        sn,
        una: 0,
        len: 1,
    };
    [&header.encode()[..], b"?"].concat()
}

#[tokio::test]
async fn a_foreign_conversation_never_ends_a_live_one() {
    let mut listener = KcpListener::bind(any(), plain()).unwrap();
    let addr = listener.local_addr().unwrap();
    let client = UdpSocket::bind(any()).unwrap();
    let send = |bytes: &[u8]| assert_eq!(client.send_to(bytes, addr).unwrap(), bytes.len());
    send(&push(7, 0, Command::Push));
    let (mut first, _) = listener.accept().await.unwrap();
    // Not the first data, or no conversation at all: no session starts.
    send(&push(8, 1, Command::Push));
    send(&push(8, 0, Command::Ack));
    send(&[9; 100]);
    // A new one at the same address exists beside the old one; a fifth does not.
    for conv in 8..20 {
        send(&push(conv, 0, Command::Push));
    }
    for conv in 8..11 {
        assert_eq!(listener.accept().await.unwrap().0.conv(), conv);
    }
    send(&push(7, 1, Command::Push));
    let mut both = [0; 2];
    let read = timeout(PATIENCE, first.read_exact(&mut both)).await;
    read.expect("the old session must continue").unwrap();
    let more = timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn an_ended_conversation_is_not_begun_again() {
    let mut listener = KcpListener::bind(any(), plain()).unwrap();
    let addr = listener.local_addr().unwrap();
    let client = UdpSocket::bind(any()).unwrap();
    client.send_to(&push(7, 0, Command::Push), addr).unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    drop(stream);
    sleep(Duration::from_millis(100)).await;
    client.send_to(&push(7, 0, Command::Push), addr).unwrap();
    let more = timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(more.is_err(), "{more:?}");
    client.send_to(&push(6, 0, Command::Push), addr).unwrap();
    assert_eq!(listener.accept().await.unwrap().0.conv(), 6);
}

#[tokio::test]
async fn births_are_bounded_by_the_backlog_and_the_number_of_sessions() {
    let few = Settings {
        backlog: 3,
        sessions: 5,
        ..plain()
    };
    let counters = Arc::clone(&few.counters);
    let mut listener = KcpListener::bind(any(), few).unwrap();
    let addr = listener.local_addr().unwrap();
    let clients: Vec<_> = (0..10).map(|_| UdpSocket::bind(any()).unwrap()).collect();
    let knock = || {
        for client in &clients {
            client.send_to(&push(7, 0, Command::Push), addr).unwrap();
        }
    };
    knock();
    sleep(Duration::from_millis(100)).await;
    assert_eq!(counters.counts().passive_opens, 3);
    let mut kept = Vec::new();
    for _ in 0..3 {
        kept.push(listener.accept().await.unwrap());
    }
    knock();
    sleep(Duration::from_millis(100)).await;
    assert_eq!(counters.counts().passive_opens, 5);
}

#[tokio::test]
async fn strangers_begin_few_sessions_where_nothing_authenticates_them() {
    let born = async |server: Settings, packets: Vec<Vec<u8>>| {
        let server = Settings {
            backlog: 2000,
            ..server
        };
        let counters = Arc::clone(&server.counters);
        let listener = KcpListener::bind(any(), server).unwrap();
        for (n, packet) in packets.iter().enumerate() {
            let client = UdpSocket::bind(any()).unwrap();
            client
                .send_to(packet, listener.local_addr().unwrap())
                .unwrap();
            if n % 50 == 0 {
                tokio::task::yield_now().await;
            }
        }
        sleep(Duration::from_millis(50)).await;
        counters.counts().passive_opens
    };
    let open: Vec<_> = (0..1500).map(|conv| push(conv, 0, Command::Push)).collect();
    let begun = born(plain(), open.clone()).await;
    assert!((512..1300).contains(&begun), "{begun}");
    let gcm = settings(PacketKind::Aes128Gcm, None);
    assert_eq!(born(gcm.clone(), open.clone()).await, 0);
    let key = Arc::clone(gcm.key.as_ref().unwrap());
    let sealed = open.into_iter().map(|datagram| {
        let room = key.overhead_layout();
        let mut packet = vec![0; room.head];
        packet.extend_from_slice(&datagram);
        packet.resize(packet.len() + room.tail, 0);
        let mut rng = adit_net::system::ThreadRng;
        key.seal(&mut packet, &mut rng).unwrap();
        packet
    });
    let begun = born(gcm.clone(), sealed.take(700).collect()).await;
    assert_eq!(begun, 700);
}

#[tokio::test]
async fn a_wrong_key_is_told_from_silence() {
    let (_listener, near, far) = pair(
        settings(PacketKind::Aes, None),
        settings(PacketKind::Aes, None),
    )
    .await;
    assert_eq!(far.session_probe().peer_contact(), PeerContact::Heard);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(near.session_probe().peer_contact(), PeerContact::Heard);
    let silent = UdpSocket::bind(any()).unwrap();
    let addr = silent.local_addr().unwrap();
    let mut lost = KcpStream::connect(addr, settings(PacketKind::Aes, None))
        .await
        .unwrap();
    lost.write_all(b"anyone?").await.unwrap();
    assert_eq!(lost.session_probe().peer_contact(), PeerContact::Silent);
    let mut buf = [0; 2000];
    let (len, from) = silent.recv_from(&mut buf).unwrap();
    // The client's own packets, damaged, are sent back to it.
    buf[len - 1] ^= 1;
    silent.send_to(&buf[..len], from).unwrap();
    sleep(Duration::from_millis(50)).await;
    assert_eq!(lost.session_probe().peer_contact(), PeerContact::Foreign(1));
}

#[tokio::test]
async fn a_peer_that_is_gone_ends_reads_and_writes() {
    let hasty = Settings {
        kcp: Config {
            dead_link: 8,
            silence_ms: 1_000,
            ..Config::fast3()
        },
        ..plain()
    };
    let mut listener = KcpListener::bind(any(), plain()).unwrap();
    let relay =
        LossyRelay::start(listener.local_addr().unwrap(), FaultRates::default(), 1).unwrap();
    let (mut near, _far) = through(&mut listener, relay.addr(), hasty).await;
    let probe = near.session_probe();
    sleep(Duration::from_millis(100)).await;
    assert_eq!(probe.unanswered_for(), None);
    relay.cut_off();
    near.write_all(b"lost").await.unwrap();
    sleep(Duration::from_millis(100)).await;
    let waited = probe.unanswered_for().expect("nothing was received since");
    assert!(waited >= Duration::from_millis(100), "{waited:?}");
    let mut buf = [0; 8];
    let read = timeout(Duration::from_secs(60), near.read(&mut buf)).await;
    let why = read.expect("the end must be detected").unwrap_err();
    assert_eq!(why.kind(), std::io::ErrorKind::TimedOut);
    assert!(near.write(b"more").await.is_err());
}

#[tokio::test]
async fn the_rate_is_kept() {
    let slow = Settings {
        rate: 200_000,
        ..plain()
    };
    let (_listener, near, far) = pair(plain(), slow).await;
    let start = Instant::now();
    // Of these the burst takes 96,000.
    echo(near, far, 200_000, 4).await;
    let took = start.elapsed();
    assert!(took > Duration::from_millis(450), "{took:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[tokio::test]
async fn an_idle_session_gives_its_memory_back_and_wakes_nobody() {
    let (_listener, mut near, mut far) = pair(plain(), plain()).await;
    near.write_all(&[7; 100_000]).await.unwrap();
    far.read_exact(&mut vec![0; 100_000]).await.unwrap();
    for stream in [&near, &far] {
        assert!(stream.session().memory_size() > 20_000);
    }
    sleep(Duration::from_millis(2_500)).await;
    for stream in [&near, &far] {
        let session = stream.session();
        assert!(session.memory_size() < 2048, "{}", session.memory_size());
        assert!(session.is_at_rest());
    }
}

#[tokio::test]
async fn relays_lend_and_reserve() {
    let (_listener, mut near, mut far) = pair(plain(), plain()).await;
    let bytes = BytePattern::new(8).next_bytes(50_000);
    let mut left = &bytes[..];
    while !left.is_empty() {
        let room = std::future::poll_fn(|cx| near.poll_slot(cx, 1))
            .await
            .unwrap();
        let (now, later) = left.split_at(left.len().min(room));
        near.slot()[..now.len()].copy_from_slice(now);
        near.commit(now.len()).unwrap();
        left = later;
    }
    adit_stream::finish_stream(&mut near).await.unwrap();
    // Contiguous, across segment boundaries.
    let n = adit_stream::fill_to(&mut far, 50_000).await.unwrap();
    assert_eq!(n, 50_000);
    assert!(far.filled() == bytes);
    far.consume(50_000);
    near.abort();
}

/// kcp-go's setters, on both ends of a session that was already used.
#[tokio::test]
async fn settings_change_while_a_session_lives() {
    let mut listener = KcpListener::bind(any(), plain()).unwrap();
    let at = listener.local_addr().unwrap();
    let mut near = KcpStream::connect(at, plain()).await.unwrap();
    near.write_all(b"x").await.unwrap();
    let (far, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let slow = Config {
        send_window: 32,
        recv_window: 64,
        ack_nodelay: true,
        ..Config::normal()
    };
    far.set_config(slow).unwrap();
    assert_eq!(far.config().send_window, 32);
    let wrong = Config {
        interval_ms: 0,
        ..slow
    };
    assert!(far.set_config(wrong).is_err());
    assert_eq!(far.config().interval_ms, 40, "it was kept");
    near.set_config(Config {
        send_window: 1024,
        ..near.config()
    })
    .unwrap();
    near.set_dscp(46).unwrap();
    assert!(near.set_dscp(64).is_err());
    // A tenth of a second's rate and the burst, then a second of waiting.
    near.set_rate(200_000);
    let begun = Instant::now();
    let (mut far, bytes) = (far, vec![7; 300_000]);
    let reading = tokio::spawn(async move {
        let mut got = vec![0; 300_001];
        far.read_exact(&mut got).await.unwrap();
        got
    });
    near.write_all(&bytes).await.unwrap();
    let got = timeout(PATIENCE, reading).await.unwrap().unwrap();
    assert!(got[1..] == bytes);
    let took = begun.elapsed();
    assert!(
        took > Duration::from_millis(700),
        "{took:?}: no rate was kept"
    );
    near.set_rate(0);
}
