//! Tests of amplification: attackers who send a little and never answer.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_crypto::packet::session::SessionKey;
use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_fec::CodeMatrix;
use adit_kcp_proto::{Command, Config, SegmentHeader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::*;

const PATIENCE: Duration = Duration::from_secs(15);
/// Bytes that a server sends.
const MUCH: usize = 400_000;

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Starts a server that sends much to each session without a request.
fn talker(settings: Settings) -> SocketAddr {
    let mut listener = KcpListener::bind(any(), settings).unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.write_all(&vec![7; MUCH]).await;
                sleep(PATIENCE).await;
            });
        }
    });
    addr
}

/// Returns the number and bytes of the datagrams that a socket receives after it has sent these.
async fn reflected(server: SocketAddr, datagrams: &[Vec<u8>]) -> (usize, usize) {
    let attacker = tokio::net::UdpSocket::bind(any()).await.unwrap();
    for datagram in datagrams {
        attacker.send_to(datagram, server).await.unwrap();
        sleep(Duration::from_millis(2)).await;
    }
    received(&attacker).await
}

async fn received(attacker: &tokio::net::UdpSocket) -> (usize, usize) {
    let (mut packets, mut bytes) = (0, 0);
    let mut buf = [0; 2000];
    let all = async {
        while let Ok((len, _)) = attacker.recv_from(&mut buf).await {
            packets += 1;
            bytes += len;
        }
    };
    let _ = timeout(Duration::from_millis(1_200), all).await;
    (packets, bytes)
}

fn bytes_of(datagrams: &[Vec<u8>]) -> usize {
    datagrams.iter().map(Vec::len).sum()
}

/// A middlebox that records the client's packets, and forwards the first `most` of them.
async fn recorder(
    server: SocketAddr,
    most: Option<usize>,
) -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let near = tokio::net::UdpSocket::bind(any()).await.unwrap();
    let far = tokio::net::UdpSocket::bind(any()).await.unwrap();
    let at = near.local_addr().unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let ours = Arc::clone(&kept);
    tokio::spawn(async move {
        let (mut up, mut down) = ([0; 2000], [0; 2000]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((n, from)) = near.recv_from(&mut up) => {
                    client = Some(from);
                    let passed = {
                        let mut kept = ours.lock().unwrap_or_else(PoisonError::into_inner);
                        kept.push(up[..n].to_vec());
                        most.is_none_or(|most| kept.len() <= most)
                    };
                    if passed {
                        let _ = far.send_to(&up[..n], server).await;
                    }
                }
                Ok((n, _)) = far.recv_from(&mut down) => {
                    let Some(client) = client else { continue };
                    let _ = near.send_to(&down[..n], client).await;
                }
            }
        }
    });
    (at, kept)
}

fn sealed_by_a_cipher() -> Settings {
    let key = PacketKey::new(PacketKind::Aes, PacketCheck::Crc32, b"it's a secrect").unwrap();
    Settings {
        key: Some(Arc::new(key)),
        fec: Some(Fec {
            data: 3,
            parity: 1,
            matrix: CodeMatrix::Vandermonde,
        }),
        ..Settings::new(Config::fast3())
    }
}

fn sealed_by_sessions() -> Settings {
    Settings {
        session: Some(SessionKey::new(&[1; 32]).unwrap()),
        ..Settings::new(Config::fast3())
    }
}

#[tokio::test]
async fn a_forged_datagram_brings_three_times_as_much_at_most() {
    let header = SegmentHeader {
        conv: 77,
        cmd: Command::Push,
        frg: 0,
        wnd: 65_535,
        ts: 0,
        sn: 0,
        una: 0,
        len: 1,
    };
    let datagram = [&header.encode()[..], b"x"].concat();
    let server = talker(Settings::new(Config::fast3()));
    let (packets, bytes) = reflected(server, std::slice::from_ref(&datagram)).await;
    assert!(packets > 0, "an honest peer is answered");
    assert!(
        packets <= 3 && bytes <= 3 * datagram.len(),
        "{packets} datagrams, {bytes} bytes for {}",
        datagram.len()
    );
}

#[tokio::test]
async fn a_recording_brings_three_times_as_much_at_most() {
    let server = talker(sealed_by_a_cipher());
    let (at, kept) = recorder(server, None).await;
    let mut client = KcpStream::connect(at, sealed_by_a_cipher()).await.unwrap();
    client.write_all(b"hello").await.unwrap();
    let mut all = vec![0; MUCH];
    let read = timeout(PATIENCE, client.read_exact(&mut all)).await;
    read.expect("an honest client gets everything").unwrap();
    // On a busy machine a few acknowledgements may cover everything.
    for _ in 0..100 {
        if kept.lock().unwrap().len() >= 8 {
            break;
        }
        client.write_all(b"more").await.unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    let mut recorded = kept.lock().unwrap().clone();
    recorded.truncate(8);
    assert_eq!(recorded.len(), 8, "acknowledgements are among them");
    let (packets, bytes) = reflected(server, &recorded).await;
    assert!(packets > 0);
    assert!(
        packets <= 10 && bytes <= 3 * bytes_of(&recorded),
        "{packets} datagrams, {bytes} bytes for {}",
        bytes_of(&recorded)
    );
}

#[tokio::test]
async fn a_session_that_is_moved_brings_three_times_as_much_at_most() {
    let server = talker(sealed_by_sessions());
    let (at, kept) = recorder(server, Some(4)).await;
    let mut client = KcpStream::connect(at, sealed_by_sessions()).await.unwrap();
    client.write_all(b"hello").await.unwrap();
    let reader = tokio::spawn(async move {
        let mut all = vec![0; MUCH];
        client.read_exact(&mut all).await
    });
    let held = || kept.lock().unwrap().get(4).cloned();
    let held = timeout(PATIENCE, async {
        loop {
            match held() {
                Some(held) => break held,
                None => sleep(Duration::from_millis(5)).await,
            }
        }
    });
    let held = held.await.expect("an honest client continues");
    assert!(!reader.is_finished(), "the server has more to send");
    let (packets, bytes) = reflected(server, std::slice::from_ref(&held)).await;
    assert!(packets > 0, "the session has moved");
    assert!(
        packets <= 3 && bytes <= 3 * held.len(),
        "{packets} datagrams, {bytes} bytes for {}",
        held.len()
    );
}

#[tokio::test]
async fn who_writes_first_begins_although_the_other_has_said_little() {
    for settings in [
        Settings::new(Config::fast3()),
        sealed_by_a_cipher(),
        sealed_by_sessions(),
        Settings::new(Config {
            stream: false,
            ..Config::normal()
        }),
    ] {
        let server = talker_of_messages(settings.clone());
        let mut client = KcpStream::connect(server, settings).await.unwrap();
        client.write_all(b"x").await.unwrap();
        let mut all = vec![0; 40_000];
        let read = timeout(Duration::from_secs(5), client.read_exact(&mut all)).await;
        read.expect("before the client sends more").unwrap();
    }
}

/// Like [`talker`], in messages.
fn talker_of_messages(settings: Settings) -> SocketAddr {
    let mut listener = KcpListener::bind(any(), settings).unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..40 {
            stream.write_all(&[7; 1000]).await.unwrap();
        }
        sleep(PATIENCE).await;
    });
    addr
}
