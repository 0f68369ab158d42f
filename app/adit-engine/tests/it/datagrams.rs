//! Datagrams through every dialect, and sessions whose client address changes.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::world::{server, start, udp_echo, url};

async fn ask(socket: &UdpSocket, to: SocketAddr, say: &[u8]) -> Option<Vec<u8>> {
    socket.send_to(say, to).await.unwrap();
    let mut buf = vec![0; 65_535];
    let (n, _) = timeout(Duration::from_secs(3), socket.recv_from(&mut buf))
        .await
        .ok()?
        .unwrap();
    buf.truncate(n);
    Some(buf)
}

#[tokio::test]
async fn any_size_passes_the_tunnel() {
    let (_server, at) = server("").await;
    let target = udp_echo().await;
    let (_client, entry) = start(&[&format!("udp://127.0.0.1:0/{target}"), &url(at)]).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for size in [0, 1, 512, 1390, 9000, 60_000] {
        let say: Vec<u8> = (0..size).map(|i: usize| (i % 251) as u8).collect();
        assert_eq!(
            ask(&socket, entry, &say).await.as_ref(),
            Some(&say),
            "{size}"
        );
    }
}

#[tokio::test]
async fn a_session_follows_its_client_to_another_address() {
    let (_server, at) = server("").await;
    let target = udp_echo().await;
    // A relay that changes its source address, as a NAT does after a while.
    let middle = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (_client, entry) = start(&[
        &format!("udp://127.0.0.1:0/{target}"),
        &url(middle.local_addr().unwrap()),
    ])
    .await;
    let relay = tokio::spawn(async move {
        let mut buf = vec![0; 2048];
        for _ in 0..4 {
            let outside = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let (n, client) = middle.recv_from(&mut buf).await.unwrap();
            outside.send_to(&buf[..n], at).await.unwrap();
            let n = outside.recv(&mut buf).await.unwrap();
            middle.send_to(&buf[..n], client).await.unwrap();
        }
    });
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for i in 0..4u8 {
        assert_eq!(
            ask(&socket, entry, &[i]).await,
            Some(vec![i]),
            "address {i}"
        );
    }
    relay.await.unwrap();
}

#[tokio::test]
async fn a_replayed_packet_and_garbage_get_no_answer() {
    let (_server, at) = server("").await;
    let target = udp_echo().await;
    let tap = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (_client, entry) = start(&[
        &format!("udp://127.0.0.1:0/{target}"),
        &url(tap.local_addr().unwrap()),
    ])
    .await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(b"once", entry).await.unwrap();
    let mut sealed = vec![0; 2048];
    let n = tap.recv(&mut sealed).await.unwrap();
    sealed.truncate(n);
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    assert!(
        ask(&stranger, at, &sealed).await.is_some(),
        "the first time it is the client"
    );
    let quick = |bytes: Vec<u8>| {
        let stranger = &stranger;
        async move {
            stranger.send_to(&bytes, at).await.unwrap();
            timeout(Duration::from_millis(300), stranger.recv(&mut [0; 64]))
                .await
                .is_ok()
        }
    };
    assert!(!quick(sealed.clone()).await, "a replay");
    sealed[20] ^= 1;
    assert!(!quick(sealed).await, "an altered packet");
    for len in [0, 1, 2, 15, 16, 43, 60, 1400] {
        assert!(!quick(vec![9; len]).await, "{len} bytes of garbage");
    }
}

#[tokio::test]
async fn datagrams_pass_two_hops() {
    let ((_inner, inner), (_outer, outer)) = (server("").await, server("").await);
    let target = udp_echo().await;
    let forward = format!("udp://127.0.0.1:0/{target}");
    let (_client, entry) = start(&[&forward, &url(outer), &url(inner)]).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    assert_eq!(
        ask(&socket, entry, b"twice sealed").await.unwrap(),
        b"twice sealed"
    );
}

#[tokio::test]
async fn datagrams_pass_a_socks5_hop_and_names_resolve() {
    let (_proxy, proxy) = start(&["socks5://127.0.0.1:0"]).await;
    let target = udp_echo().await;
    let forward = format!("udp://127.0.0.1:0/localhost:{}", target.port());
    let (_client, entry) = start(&[&forward, &format!("socks5://{proxy}")]).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    assert_eq!(ask(&socket, entry, b"named").await.unwrap(), b"named");
}

#[tokio::test]
async fn private_targets_are_refused_for_datagrams_too() {
    let listen = format!(
        "ss://{}:{}@127.0.0.1:0?restart=lenient",
        crate::world::METHOD,
        crate::world::KEY
    );
    let (_server, at) = start(&[&listen]).await;
    let target = udp_echo().await;
    let (_client, entry) = start(&[&format!("udp://127.0.0.1:0/{target}"), &url(at)]).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(b"x", entry).await.unwrap();
    assert!(
        timeout(Duration::from_millis(400), socket.recv(&mut [0; 8]))
            .await
            .is_err()
    );
}

/// The first datagrams of an association arrive together, as those of QUIC do, before any connection to
/// the server is open.
#[tokio::test]
async fn the_first_burst_arrives_whole_by_every_dialect() {
    let ssr =
        |at: &str| format!("ssr://aes-256-cfb:secret@{at}?protocol=auth_aes128_md5&obfs=plain");
    let aead = |at: &str| format!("ss://aes-128-gcm:secret@{at}");
    let any = "127.0.0.1:0";
    let listen = |url: String| match url.contains('?') {
        true => format!("{url}&allow_private=all"),
        false => format!("{url}?allow_private=all"),
    };
    let mut engines = Vec::new();
    let mut hops: Vec<Vec<String>> = vec![vec![]];
    let (one, at) = server("").await;
    hops.push(vec![url(at)]);
    hops.push(vec![format!("{}?udp=over-tcp", url(at))]);
    let (two, second) = server("").await;
    hops.push(vec![url(at), url(second)]);
    let (three, at) = start(&[&listen(aead(any))]).await;
    hops.push(vec![aead(&at.to_string())]);
    let (four, at) = start(&[&listen(ssr(any))]).await;
    hops.push(vec![ssr(&at.to_string())]);
    hops.push(vec![format!("{}&udp=over-tcp", ssr(&at.to_string()))]);
    let (five, at) = start(&[&listen(format!("socks5://{any}"))]).await;
    hops.push(vec![format!("socks5://{at}")]);
    engines.extend([one, two, three, four, five]);

    let target = udp_echo().await;
    for hops in hops {
        for to in [target.to_string(), format!("localhost:{}", target.port())] {
            let entry = format!("udp://127.0.0.1:0/{to}");
            let words: Vec<&str> = [&entry].into_iter().chain(&hops).map(|w| &**w).collect();
            let (client, entry) = start(&words).await;
            for (count, size) in [(20, 1200), (200, 100)] {
                let come = burst(entry, count, size).await;
                assert_eq!(come, usize::from(count), "of {count} to {to} by {hops:?}");
            }
            assert_eq!(client.total_counts().lost, 0);
        }
    }
}

/// Sends a batch of datagrams in a new association and returns the number of answers.
async fn burst(entry: SocketAddr, count: u8, size: usize) -> usize {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for n in 0..count {
        socket.send_to(&vec![n; size], entry).await.unwrap();
    }
    let mut come = std::collections::HashSet::new();
    let mut buf = [0; 2048];
    while come.len() < count.into() {
        match timeout(Duration::from_millis(1500), socket.recv(&mut buf)).await {
            Ok(Ok(n)) if n == size => come.insert(buf[0]),
            _ => break,
        };
    }
    come.len()
}

/// A hop that never answers: the backlog is bounded, and lost datagrams are counted.
#[tokio::test]
async fn what_does_not_fit_the_wait_is_counted() {
    let dead = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hop = format!("socks5://{}", dead.local_addr().unwrap());
    let (client, entry) = start(&["udp://127.0.0.1:0/192.0.2.1:9", &hop]).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for n in 0..400 {
        socket.send_to(b"x", entry).await.unwrap();
        if n % 50 == 49 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    for _ in 0..200 {
        if client.total_counts().lost >= 144 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.total_counts().lost, 400 - 256);
}
