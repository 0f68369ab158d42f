//! Whole sessions over loopback connections.

use std::time::Duration;

use adit_interop::BytePattern;
use adit_smux_proto::{Config, Role, Version};
use adit_stream::lane::RelayLane;
use adit_stream::{BoxStream, Stream, Tcp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::*;
use adit_kcp::{KcpListener, KcpStream};

const PATIENCE: Duration = Duration::from_secs(15);

async fn connection() -> (BoxStream, BoxStream) {
    let (near, far) = sockets().await;
    (Box::new(Tcp::new(near)), Box::new(Tcp::new(far)))
}

async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (near, far) = tokio::join!(TcpStream::connect(addr), listener.accept());
    (near.unwrap(), far.unwrap().0)
}

fn settings(version: Version, role: Role, compress: bool) -> Settings {
    Settings {
        config: Config::new(version, role),
        compress,
        pads: None,
    }
}

fn pair(below: (BoxStream, BoxStream), version: Version, compress: bool) -> (Mux, Mux) {
    let near = settings(version, Role::Client, compress);
    let far = settings(version, Role::Server, compress);
    (
        Mux::new(below.0, near).unwrap(),
        Mux::new(below.1, far).unwrap(),
    )
}

/// Answers every stream with its own bytes.
fn echo(mux: Mux) {
    tokio::spawn(async move {
        while let Ok(stream) = mux.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.into_split();
                tokio::io::copy(&mut reader, &mut writer).await.unwrap();
                writer.shutdown().await.unwrap();
            });
        }
    });
}

async fn there_and_back(stream: SmuxStream, len: usize, seed: u64) {
    let bytes = BytePattern::new(seed).next_bytes(len);
    let sent = bytes.clone();
    let (mut reader, mut writer) = stream.into_split();
    let send = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut got = Vec::new();
    let read = timeout(PATIENCE, reader.read_to_end(&mut got)).await;
    read.expect("the bytes must return in time").unwrap();
    assert!(got == bytes, "the bytes are the same");
    send.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_at_a_time_in_every_mode() {
    for version in [Version::V1, Version::V2] {
        for compress in [false, true] {
            let (near, far) = pair(connection().await, version, compress);
            echo(far);
            let streams: Vec<_> = (0..40)
                .map(|n| {
                    let stream = near.open().unwrap();
                    tokio::spawn(there_and_back(stream, 50_000 + n * 1000, n as u64))
                })
                .collect();
            for stream in streams {
                stream.await.unwrap();
            }
            let left = async {
                while near.stream_count() > 0 {
                    sleep(Duration::from_millis(5)).await;
                }
            };
            timeout(PATIENCE, left).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_every_buffer_goes_over_kcp() {
    let plain = || adit_kcp::Settings::new(adit_kcp_proto::Config::fast3());
    let mut listener = KcpListener::bind("127.0.0.1:0".parse().unwrap(), plain()).unwrap();
    let near = KcpStream::connect(listener.local_addr().unwrap(), plain())
        .await
        .unwrap();
    assert!(matches!(near.lane(), RelayLane::Home));
    // The greeting alone makes the listener aware of the session.
    let near = Mux::new(Box::new(near), settings(Version::V2, Role::Client, true)).unwrap();
    let (far, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let far = Mux::new(Box::new(far), settings(Version::V2, Role::Server, true)).unwrap();
    echo(far);
    let stream = near.open().unwrap();
    assert!(matches!(stream.lane(), RelayLane::Home));
    there_and_back(stream, 8 << 20, 1).await;
}

/// One packet of kcptun's client, through all layers.
#[tokio::test]
async fn a_golden_packet_of_kcptun_opens_a_stream() {
    use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
    let text = include_str!("../vectors/kcptun.json");
    let all: serde_json::Value = serde_json::from_str(text).unwrap();
    let packet = all["kcptun_stack"]["wire_packet"].as_str().unwrap();
    let packet: Vec<u8> = (0..packet.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&packet[at..at + 2], 16).unwrap())
        .collect();
    let key = PacketKey::new(PacketKind::Aes, PacketCheck::Crc32, b"it's a secrect").unwrap();
    let mut kcp = adit_kcp::Settings::new(adit_kcp_proto::Config::fast());
    kcp.key = Some(std::sync::Arc::new(key));
    let mut listener = KcpListener::bind("127.0.0.1:0".parse().unwrap(), kcp).unwrap();
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client
        .send_to(&packet, listener.local_addr().unwrap())
        .unwrap();
    let (session, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    assert_eq!(session.conv(), 0xdead_beef);
    let mux = Mux::new(Box::new(session), settings(Version::V2, Role::Server, true)).unwrap();
    let mut stream = timeout(PATIENCE, mux.accept()).await.unwrap().unwrap();
    let mut word = [0; 5];
    stream.read_exact(&mut word).await.unwrap();
    assert_eq!((&word, stream.id()), (b"hello", 3));
}

#[tokio::test]
async fn a_reader_that_stops_holds_up_the_sender_and_not_the_others() {
    let (near, far) = pair(connection().await, Version::V2, false);
    let mut stopped = near.open().unwrap();
    let sent = tokio::spawn(async move {
        stopped.write_all(&vec![1; 3 << 20]).await.unwrap();
        stopped
    });
    let mut held = far.accept().await.unwrap();
    sleep(Duration::from_millis(100)).await;
    assert!(!sent.is_finished(), "the window is closed");
    let quick = near.open().unwrap();
    echo(far.clone());
    there_and_back(quick, 500_000, 2).await;
    let mut all = vec![0; 3 << 20];
    let read = timeout(PATIENCE, held.read_exact(&mut all)).await;
    read.unwrap().unwrap();
    sent.await.unwrap();
}

#[tokio::test]
async fn version_1_holds_everything_up_and_goes_on() {
    let (near, far) = pair(connection().await, Version::V1, false);
    let mut stopped = near.open().unwrap();
    let sent = tokio::spawn(async move { stopped.write_all(&vec![1; 16 << 20]).await });
    let mut held = far.accept().await.unwrap();
    sleep(Duration::from_millis(200)).await;
    assert!(!sent.is_finished(), "the session's buffer is full");
    let mut all = vec![0; 16 << 20];
    let read = timeout(PATIENCE, held.read_exact(&mut all)).await;
    read.expect("it goes on").unwrap();
    sent.await.unwrap().unwrap();
}

#[tokio::test]
async fn ends_that_differ_find_out_and_say_how() {
    use Version::{V1, V2};
    type Ends = ((Version, bool), (Version, bool));
    let cases: [(Ends, &str, &str); 4] = [
        (
            ((V2, false), (V1, false)),
            "the peer uses smux version 1, this end version 2",
            "the peer uses smux version 2, this end version 1",
        ),
        (
            ((V1, true), (V2, true)),
            "the peer uses smux version 2, this end version 1",
            "the peer uses smux version 1, this end version 2",
        ),
        (
            ((V2, true), (V2, false)),
            "the peer does not compress, this end does",
            "the peer compresses, this end does not",
        ),
        (
            ((V1, false), (V2, true)),
            "the peer compresses, this end does not",
            "the peer does not compress, this end does",
        ),
    ];
    for (((v, c), (w, d)), told, theirs) in cases {
        let (near, far) = connection().await;
        let near = Mux::new(near, settings(v, Role::Client, c)).unwrap();
        let far = Mux::new(far, settings(w, Role::Server, d)).unwrap();
        let ends = async { tokio::join!(near.wait_end(), far.wait_end()) };
        let (near_end, far_end) = timeout(PATIENCE, ends)
            .await
            .expect("found without traffic");
        assert_eq!(near_end.to_string(), told);
        assert_eq!(far_end.to_string(), theirs);
        assert!(near.open().is_err() && far.accept().await.is_err());
    }
}

#[tokio::test]
async fn a_session_that_breaks_fails_its_streams_but_not_what_was_read() {
    let (near, mut far) = sockets().await;
    let near = Box::new(Tcp::new(near));
    let near = Mux::new(near, settings(Version::V2, Role::Client, false)).unwrap();
    let mut stream = near.open().unwrap();
    stream.write_all(b"x").await.unwrap();
    far.write_all(&[2, 2, 3, 0, 3, 0, 0, 0, b'y', b'e', b's'])
        .await
        .unwrap();
    far.write_all(&[2, 9, 0, 0, 0, 0, 0, 0]).await.unwrap();
    let end = timeout(PATIENCE, near.wait_end()).await.unwrap();
    assert!(matches!(end, EndReason::Protocol(_)), "{end}");
    let mut word = [0; 3];
    stream.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"yes");
    assert!(stream.read(&mut word).await.is_err());
    assert!(stream.write_all(b"more").await.is_err());
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_found() {
    let (near, far) = connection().await;
    let mut hasty = settings(Version::V1, Role::Client, false);
    hasty.config.keepalive = Some(Duration::from_millis(50));
    hasty.config.timeout = Duration::from_millis(200);
    let near = Mux::new(near, hasty.clone()).unwrap();
    let end = timeout(PATIENCE, near.wait_end()).await.unwrap();
    assert!(matches!(end, EndReason::Silent(_)), "{end}");
    drop(far);
    // A peer that is alive sends keep-alives.
    let (near, far) = connection().await;
    let near = Mux::new(near, hasty.clone()).unwrap();
    hasty.config.role = Role::Server;
    hasty.config.backlog = 1;
    let far = Mux::new(far, hasty).unwrap();
    sleep(Duration::from_millis(600)).await;
    assert!(near.end_reason().is_none() && far.end_reason().is_none());
}

#[tokio::test]
async fn a_session_without_handles_lives_as_long_as_its_streams() {
    let (near, far) = pair(connection().await, Version::V2, false);
    let stream = near.open().unwrap();
    echo(far.clone());
    drop(near);
    there_and_back(stream, 300_000, 3).await;
    let end = timeout(PATIENCE, far.wait_end())
        .await
        .expect("then it ends");
    assert!(matches!(end, EndReason::Ended), "{end}");

    let (near, far) = pair(connection().await, Version::V2, false);
    let mut stream = near.open().unwrap();
    stream.write_all(b"x").await.unwrap();
    near.close();
    assert!(matches!(near.wait_end().await, EndReason::Closed));
    assert!(stream.read(&mut [0]).await.is_err());
    assert!(matches!(
        far.wait_end().await,
        EndReason::Ended | EndReason::Below(_)
    ));
}

#[tokio::test]
async fn an_aborted_stream_drops_what_waits() {
    let (near, far) = pair(connection().await, Version::V2, false);
    let mut stream = near.open().unwrap();
    let sent = async {
        let _ = timeout(
            Duration::from_millis(200),
            stream.write_all(&vec![0; 4 << 20]),
        )
        .await;
        stream.abort();
        drop(stream);
    };
    let ((), held) = tokio::join!(sent, far.accept());
    let mut got = Vec::new();
    let read = timeout(PATIENCE, held.unwrap().read_to_end(&mut got)).await;
    read.unwrap().unwrap();
    assert!(got.len() < 1 << 20, "{}", got.len());
}
