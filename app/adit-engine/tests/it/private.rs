//! Access to private networks through a listener with hops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::world::{KEY, METHOD, echo, start, talk, udp_echo, url};

/// A SOCKS5 hop that reaches everything, as one without an access rule does.
const HOP: &str = "mixed://127.0.0.1:0";

/// A keyed listener with a hop.
async fn entry(hop: SocketAddr, more: &str) -> (adit_engine::Engine, SocketAddr) {
    let listen = format!("ss://{METHOD}:{KEY}@127.0.0.1:0?restart=lenient{more}");
    start(&[&listen, &format!("socks5://{hop}")]).await
}

/// Returns the answer of `target` through the server at `server`.
async fn heard(server: SocketAddr, target: &str) -> std::io::Result<Vec<u8>> {
    let (_client, at) = start(&[&format!("tcp://127.0.0.1:0/{target}"), &url(server)]).await;
    let mut socket = TcpStream::connect(at).await.unwrap();
    talk(&mut socket, b"is anybody there?").await
}

/// Counts connections, and closes them.
async fn door() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, came) = (
        listener.local_addr().unwrap(),
        Arc::new(AtomicUsize::new(0)),
    );
    let counter = came.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    (at, came)
}

#[tokio::test]
async fn what_is_private_is_refused_before_any_hop() {
    let (hop, came) = door().await;
    let (_entry, at) = entry(hop, "").await;
    for target in [
        "127.0.0.1:80",
        "10.0.0.1:80",
        "169.254.169.254:80",
        "[::1]:80",
        "[::ffff:127.0.0.1]:80",
        "[64:ff9b::a9fe:a9fe]:80",
        "[fd00::1]:80",
        "0.0.0.0:80",
        "127.1:80",
        "2130706433:80",
        "0x7f.1:80",
        "0177.0.0.1:80",
        "localhost:80",
        "LOCALHOST.:80",
        "me.localhost:80",
        "ip6-localhost:80",
        "metadata.google.internal:80",
        "router:80",
        "sp.v2.udp-over-tcp.arpa:80",
    ] {
        assert!(heard(at, target).await.is_err(), "{target}");
        assert_eq!(
            came.load(Ordering::SeqCst),
            0,
            "the hop was asked for {target}"
        );
    }
    // The hop may reach everything else.
    for (n, target) in ["9.9.9.9:80", "example.com:80"].into_iter().enumerate() {
        // The server has refused every request so far, so its clients connect once a second.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert!(heard(at, target).await.is_err());
        assert_eq!(came.load(Ordering::SeqCst), n + 1, "{target}");
    }
}

#[tokio::test]
async fn what_is_allowed_passes_the_hops() {
    let target = echo().await;
    let (_hop, hop) = start(&[HOP]).await;
    for (more, passes) in [
        ("", false),
        ("&allow_private=10.0.0.0/8", false),
        ("&allow_private=127.0.0.0/8", true),
        ("&allow_private=all", true),
    ] {
        let (_entry, at) = entry(hop, more).await;
        for name in [target.to_string(), format!("localhost:{}", target.port())] {
            assert_eq!(heard(at, &name).await.is_ok(), passes, "{more}: {name}");
        }
    }
    // A listener of this machine alone reaches the networks behind its server.
    let server = format!("ss://{METHOD}:{KEY}@127.0.0.1:0?allow_private=all&restart=lenient");
    let (_server, server) = start(&[&server]).await;
    let (_own, own) = start(&["mixed://127.0.0.1:0", &url(server)]).await;
    let mut socket = crate::world::socks(own, target).await.unwrap();
    assert!(talk(&mut socket, b"here").await.is_ok());
}

#[tokio::test]
async fn datagrams_to_private_addresses_pass_no_hop() {
    let target = udp_echo().await;
    let (_hop, hop) = start(&[HOP]).await;
    for (more, passes) in [("", false), ("&allow_private=127.0.0.0/8", true)] {
        let (_entry, at) = entry(hop, more).await;
        for way in ["", "?udp=over-tcp"] {
            for to in [target.to_string(), format!("localhost:{}", target.port())] {
                let entry = format!("udp://127.0.0.1:0/{to}");
                let (_client, near) = start(&[&entry, &format!("{}{way}", url(at))]).await;
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                socket.send_to(b"is anybody there?", near).await.unwrap();
                let wait = Duration::from_millis(if passes { 5000 } else { 300 });
                let answer = timeout(wait, socket.recv(&mut [0; 64])).await;
                assert_eq!(answer.is_ok(), passes, "{more} {way} {to}");
            }
        }
    }
}
