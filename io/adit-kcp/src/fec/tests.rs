//! Lanes over a simulated network that loses, duplicates, delays, and moves clients.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use adit_crypto::packet::{PacketCheck, PacketKind};
use adit_fec::CodeMatrix;
use tokio::time::{sleep, timeout};

use super::*;

fn settings(session: bool) -> FecSettings {
    FecSettings {
        fec: Fec {
            data: 3,
            parity: 1,
            matrix: CodeMatrix::Vandermonde,
        },
        mtu: 1400,
        parity_wait: Duration::from_millis(10),
        key: None,
        session: session.then(|| SessionKey::new(&[5; 32]).unwrap()),
        max_channels: 8,
    }
}

async fn recv(lane: &FecChannel, want: usize, patience: Duration) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    let _ = timeout(patience, async {
        while got.len() < want {
            poll_fn(|cx| lane.poll_recv(cx, &mut |bytes| got.push(bytes.to_vec())))
                .await
                .unwrap();
        }
    })
    .await;
    got
}

fn send(lane: &FecChannel, text: &[u8]) {
    lane.send(text).unwrap();
    lane.flush().unwrap();
}

const SOON: Duration = Duration::from_secs(5);

/// Forwards packets between a client and a server, except those that `lose` selects by number and
/// direction.
async fn network(
    server: SocketAddr,
    lose: impl Fn(usize, bool) -> bool + Send + 'static,
) -> SocketAddr {
    let near = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let far = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = near.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut up, mut down) = ([0; 2000], [0; 2000]);
        let (mut ups, mut downs, mut client) = (0, 0, None);
        loop {
            tokio::select! {
                Ok((n, from)) = near.recv_from(&mut up) => {
                    client = Some(from);
                    ups += 1;
                    if !lose(ups, true) {
                        let _ = far.send_to(&up[..n], server).await;
                    }
                }
                Ok((n, _)) = far.recv_from(&mut down) => {
                    downs += 1;
                    if let (false, Some(client)) = (lose(downs, false), client) {
                        let _ = near.send_to(&down[..n], client).await;
                    }
                }
            }
        }
    });
    at
}

#[tokio::test]
async fn datagrams_pass_both_ways_under_every_seal() {
    let packets = |kind, check| FecSettings {
        key: Some(Arc::new(PacketKey::new(kind, check, b"secret").unwrap())),
        ..settings(false)
    };
    for settings in [
        settings(true),
        settings(false),
        packets(PacketKind::Aes, PacketCheck::Crc32),
        packets(PacketKind::Salsa20, PacketCheck::HighwayHash),
        packets(PacketKind::Aes128Gcm, PacketCheck::Crc32),
    ] {
        let mut listener =
            FecListener::bind("127.0.0.1:0".parse().unwrap(), settings.clone()).unwrap();
        let client = FecChannel::connect(listener.local_addr().unwrap(), settings).unwrap();
        let longest = vec![9; client.max_datagram()];
        send(&client, b"one");
        let (lane, ()) = tokio::join!(async { listener.accept().await.unwrap() }, async {
            recv(&client, 1, Duration::from_millis(50)).await;
        });
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        for text in [&b""[..], &longest, b"three"] {
            send(&client, text);
        }
        let got = recv(&lane, 4, SOON).await;
        assert_eq!(got, [&b"one"[..], b"", &longest, b"three"]);
        assert_eq!(
            client.send(&vec![0; longest.len() + 1]).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        send(&lane, b"back");
        assert_eq!(recv(&client, 1, SOON).await, [b"back"]);
    }
}

#[tokio::test]
async fn what_is_lost_is_restored_and_nothing_comes_twice() {
    for session in [true, false] {
        let mut listener =
            FecListener::bind("127.0.0.1:0".parse().unwrap(), settings(session)).unwrap();
        // Every fourth packet to the server is lost, from the fifth on.
        let at = network(listener.local_addr().unwrap(), |n, up| {
            up && n > 4 && n % 4 == 0
        })
        .await;
        let client = FecChannel::connect(at, settings(session)).unwrap();
        send(&client, &0u32.to_le_bytes());
        let (lane, _) = tokio::join!(
            async { listener.accept().await.unwrap() },
            recv(&client, 1, Duration::from_millis(100))
        );
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        let sender = async {
            // A full stream of groups, then the sparse traffic of a game.
            for n in 1u32..=100 {
                send(&client, &n.to_le_bytes());
                let pause = if n <= 60 { 1 } else { 30 };
                recv(&client, 1, Duration::from_millis(pause)).await;
            }
            recv(&client, 1, Duration::from_millis(300)).await;
        };
        let (mut got, ()) = tokio::join!(recv(&lane, 102, Duration::from_secs(3)), sender);
        got.sort();
        let mut all: Vec<Vec<u8>> = (0u32..=100).map(|n| n.to_le_bytes().to_vec()).collect();
        all.sort();
        assert!(
            got == all,
            "session {session}: {} of {}",
            got.len(),
            all.len()
        );
    }
}

#[tokio::test]
async fn a_client_that_moves_is_followed_and_a_recording_is_not() {
    let mut listener = FecListener::bind("127.0.0.1:0".parse().unwrap(), settings(true)).unwrap();
    let server = listener.local_addr().unwrap();
    let client = FecChannel::connect(server, settings(true)).unwrap();
    send(&client, b"here");
    let (lane, _) = tokio::join!(
        async { listener.accept().await.unwrap() },
        recv(&client, 1, Duration::from_millis(100))
    );
    let spawned = tokio::spawn(async move { listener.accept().await });
    assert_eq!(recv(&lane, 1, SOON).await, [b"here"]);
    let before = lane.peer_addr();
    // A packet of the client is sent from another address.
    let mut packet = vec![0; 16 + HEADER + NUMBER_LEN + 5 + 16];
    let len = packet.len();
    packet[16..len - 16][..HEADER].copy_from_slice(&[9, 0, 0, 0, 0xf1, 0, 15, 0]);
    packet[16 + HEADER + NUMBER_LEN..len - 16].copy_from_slice(b"there");
    packet[16 + HEADER..][..NUMBER_LEN].copy_from_slice(&u64::MAX.to_le_bytes());
    client.seal_for_test(&mut packet);
    let elsewhere = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    elsewhere.send_to(&packet, server).await.unwrap();
    assert_eq!(recv(&lane, 1, SOON).await, [b"there"]);
    assert_eq!(lane.peer_addr(), elsewhere.local_addr().unwrap());
    assert_ne!(lane.peer_addr(), before);
    // The same from a third party is a recording: it moves nothing and is not delivered.
    let stranger = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    stranger.send_to(&packet, server).await.unwrap();
    assert!(recv(&lane, 1, Duration::from_millis(100)).await.is_empty());
    assert_eq!(lane.peer_addr(), elsewhere.local_addr().unwrap());
    assert!(!spawned.is_finished(), "no second lane");
}

#[tokio::test]
async fn a_server_that_begins_anew_is_found_again() {
    let mut listener = FecListener::bind("127.0.0.1:0".parse().unwrap(), settings(true)).unwrap();
    let server = listener.local_addr().unwrap();
    let client = FecChannel::connect(server, settings(true)).unwrap();
    send(&client, b"first");
    let (lane, _) = tokio::join!(
        async { listener.accept().await.unwrap() },
        recv(&client, 1, Duration::from_millis(100))
    );
    drop((lane, listener));
    let mut listener = FecListener::bind(server, settings(true)).unwrap();
    let asking = async {
        loop {
            // The port may reject packets for a moment.
            let _ = client.send(b"again");
            let _ = client.flush();
            recv(&client, 1, Duration::from_millis(200)).await;
        }
    };
    let found = async {
        let lane = listener.accept().await.unwrap();
        recv(&lane, 1, SOON).await
    };
    let got = tokio::select! {
        got = timeout(Duration::from_secs(8), found) => got.unwrap(),
        () = asking => unreachable!(),
    };
    assert_eq!(got[0], b"again");
}

#[tokio::test]
async fn strangers_and_too_many_begin_nothing() {
    let settings = settings(false);
    let mut listener = FecListener::bind("127.0.0.1:0".parse().unwrap(), settings.clone()).unwrap();
    let server = listener.local_addr().unwrap();
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for rubbish in [&b""[..], b"x", &[0; 100], &[0xff; 1400]] {
        socket.send_to(rubbish, server).await.unwrap();
    }
    let clients: Vec<FecChannel> = (0..12)
        .map(|_| FecChannel::connect(server, settings.clone()).unwrap())
        .collect();
    clients.iter().for_each(|client| send(client, b"hello"));
    let mut lanes = Vec::new();
    while let Ok(lane) = timeout(Duration::from_millis(300), listener.accept()).await {
        lanes.push(lane.unwrap());
    }
    assert_eq!(lanes.len(), settings.max_channels);
    // Removed lanes free their slots.
    drop(lanes);
    sleep(Duration::from_millis(10)).await;
    send(&clients[0], b"hello");
    assert!(timeout(SOON, listener.accept()).await.is_ok());
}
