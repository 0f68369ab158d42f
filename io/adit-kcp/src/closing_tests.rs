//! Tests of the end of sessions: closed, interrupted, lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::packet::session::SessionKey;
use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_fec::CodeMatrix;
use adit_interop::BytePattern;
use adit_interop::lossy_relay::{FaultRates, LossyRelay};
use adit_kcp_proto::Config;
use adit_stream::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::*;

const PATIENCE: Duration = Duration::from_secs(15);

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn plain() -> Settings {
    Settings::new(Config::fast3())
}

/// All kinds of datagrams: plain, with FEC, encrypted, with session keys.
fn modes() -> [Settings; 4] {
    let fec = Some(Fec {
        data: 3,
        parity: 1,
        matrix: CodeMatrix::Vandermonde,
    });
    let key = |kind| Arc::new(PacketKey::new(kind, PacketCheck::Crc32, b"key").unwrap());
    [
        plain(),
        Settings { fec, ..plain() },
        Settings {
            key: Some(key(PacketKind::Aes128Gcm)),
            fec,
            ..plain()
        },
        Settings {
            session: Some(SessionKey::new(&[1; 32]).unwrap()),
            ..plain()
        },
    ]
}

async fn read_all(stream: &mut KcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut all)).await;
    read.expect("the end must arrive").unwrap();
    all
}

#[tokio::test]
async fn what_was_written_is_read_to_its_end() {
    let text = BytePattern::new(1).next_bytes(100_000);
    for settings in modes() {
        let mut listener = KcpListener::bind(any(), settings.clone()).unwrap();
        let addr = listener.local_addr().unwrap();
        let faults = FaultRates {
            lost: 50,
            doubled: 10,
            late: 30,
        };
        let path = LossyRelay::start(addr, faults, 1).unwrap();
        let mut client = KcpStream::connect(path.addr(), settings).await.unwrap();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let got = read_all(&mut stream).await;
            stream.write_all(&got).await.unwrap();
            stream.flush().await.unwrap();
            got
        };
        let ask = async {
            client.write_all(&text).await.unwrap();
            client.shutdown().await.unwrap();
            read_all(&mut client).await
        };
        let (got, back) = tokio::join!(serve, ask);
        assert!(got == text && back == text, "nothing is missing");
    }
}

#[tokio::test]
async fn sessions_of_clients_that_are_gone_go_too() {
    const CLIENTS: u64 = 200;
    for settings in modes() {
        let mut listener = KcpListener::bind(any(), settings.clone()).unwrap();
        let addr = listener.local_addr().unwrap();
        let counters = Arc::clone(&settings.counters);
        let mut served = JoinSet::new();
        for _ in 0..CLIENTS {
            let of_client = Settings {
                counters: Arc::default(),
                ..settings.clone()
            };
            let mut client = KcpStream::connect(addr, of_client).await.unwrap();
            client.write_all(b"x").await.unwrap();
            let (mut stream, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
            served.spawn(async move { read_all(&mut stream).await });
            drop(client);
        }
        while let Some(read) = served.join_next().await {
            assert_eq!(read.unwrap(), b"x");
        }
        let none = async {
            while counters.counts().curr_estab > 0 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let left = timeout(PATIENCE, none).await;
        assert!(
            left.is_ok(),
            "{} sessions remain",
            counters.counts().curr_estab
        );
    }
}

#[tokio::test]
async fn an_aborted_session_is_no_whole_one() {
    let mut listener = KcpListener::bind(any(), plain()).unwrap();
    let mut client = KcpStream::connect(listener.local_addr().unwrap(), plain())
        .await
        .unwrap();
    client.write_all(b"x").await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.write_all(b"y").await.unwrap();
    client.read_exact(&mut [0]).await.unwrap();
    client.abort();
    let mut all = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut all)).await;
    let why = read.expect("the abort must be reported").unwrap_err();
    assert_eq!(why.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_silent_peer_is_given_up_and_a_quiet_one_is_not() {
    let idle = Duration::from_millis(600);
    let short = Settings { idle, ..plain() };
    let mut listener = KcpListener::bind(any(), short).unwrap();
    let relay =
        LossyRelay::start(listener.local_addr().unwrap(), FaultRates::default(), 1).unwrap();
    // Its own limit is far away: it only answers.
    let mut client = KcpStream::connect(relay.addr(), plain()).await.unwrap();
    client.write_all(b"x").await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.read_exact(&mut [0]).await.unwrap();
    let mut byte = [0];
    let quiet = timeout(idle * 4, stream.read(&mut byte)).await;
    assert!(quiet.is_err(), "the client must not time out: {quiet:?}");
    relay.cut_off();
    let read = timeout(PATIENCE, stream.read(&mut byte)).await;
    let why = read.expect("the silence must be detected").unwrap_err();
    assert_eq!(why.kind(), std::io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn one_source_has_so_many_sessions_and_no_more() {
    let few = Settings {
        per_source: 3,
        ..plain()
    };
    let mut listener = KcpListener::bind(any(), few).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = KcpStream::connect(addr, plain()).await.unwrap();
        client.write_all(b"x").await.unwrap();
        let (stream, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
        held.push((client, stream));
    }
    let mut client = KcpStream::connect(addr, plain()).await.unwrap();
    client.write_all(b"x").await.unwrap();
    let more = timeout(Duration::from_millis(400), listener.accept()).await;
    assert!(more.is_err(), "a fourth session of one source");
    held.pop();
    // Its first data is sent again and again.
    let (_, from) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    assert_eq!(from.port(), client.local_addr().unwrap().port());
}
