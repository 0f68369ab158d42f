//! A keyed listener reveals nothing to unauthenticated peers (SEC-P1, SEC-R1, SEC-E2).

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adit_interop::{free_port, loopback_addr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::world::{KEY, METHOD, echo, server, socks, start, talk, url};

/// The reaction that an unauthenticated peer observes.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Seen {
    Silence,
    Fin,
    Reset,
    Bytes,
}

async fn probe(at: SocketAddr, bytes: &[u8], wait: Duration) -> Seen {
    let mut socket = TcpStream::connect(at).await.unwrap();
    // The server may reset the connection during the write.
    let _ = socket.write_all(bytes).await;
    let mut buf = [0; 64];
    match timeout(wait, socket.read(&mut buf)).await {
        Err(_) => Seen::Silence,
        Ok(Ok(0)) => Seen::Fin,
        Ok(Ok(_)) => Seen::Bytes,
        Ok(Err(_)) => Seen::Reset,
    }
}

/// Records the first flight of a real client.
async fn recording(server: SocketAddr) -> Vec<u8> {
    let tap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (_client, proxy) = start(&["socks5://127.0.0.1:0", &url(tap.local_addr().unwrap())]).await;
    let target = echo().await;
    let tapped = tokio::spawn(async move {
        let (mut from, _) = tap.accept().await.unwrap();
        let mut to = TcpStream::connect(server).await.unwrap();
        let mut buf = vec![0; 4096];
        let n = from.read(&mut buf).await.unwrap();
        to.write_all(&buf[..n]).await.unwrap();
        buf.truncate(n);
        let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
        buf
    });
    let mut socket = socks(proxy, target).await.unwrap();
    assert_eq!(
        talk(&mut socket, b"hello").await.unwrap(),
        b"hello",
        "the recording is authentic"
    );
    drop(socket);
    tapped.await.unwrap()
}

/// All causes of a rejection, as the bytes that lead to it.
async fn causes(at: SocketAddr) -> Vec<(String, Vec<u8>)> {
    let good = recording(at).await;
    let mut causes = vec![("exact replay".to_owned(), good.clone())];
    for byte in [0, 7, 16, 20, 43, 60] {
        let mut bad = good.clone();
        bad[byte] ^= 1;
        causes.push((format!("replay with byte {byte} changed"), bad));
    }
    for n in [1, 10, 42, 43, 44, 59, 60, 75, 76, 200, 221, 3000] {
        let garbage = (0..n).map(|i: usize| (i * 37 % 256) as u8).collect();
        causes.push((format!("{n} bytes of garbage"), garbage));
    }
    for n in [10, 30, 42, 43, 50] {
        causes.push((
            format!("the first {n} bytes of a replay"),
            good[..n].to_vec(),
        ));
    }
    causes
}

async fn same_for_all(more: &str, expected: Seen) {
    let (_server, at) = server(more).await;
    for (cause, bytes) in causes(at).await {
        assert_eq!(
            probe(at, &bytes, Duration::from_millis(400)).await,
            expected,
            "{cause}"
        );
    }
}

#[tokio::test]
async fn drain_is_silence_for_every_cause() {
    same_for_all("", Seen::Silence).await;
}

#[tokio::test]
async fn drain_reads_on_and_holds_no_memory() {
    let (_server, at) = server("").await;
    let mut socket = TcpStream::connect(at).await.unwrap();
    // Half a megabyte is discarded without a reaction.
    socket.write_all(&vec![7; 512 << 10]).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    assert!(
        socket
            .try_read(&mut [0; 8])
            .is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
    );
    // When the peer closes, so does the server.
    socket.shutdown().await.unwrap();
    assert_eq!(
        timeout(Duration::from_secs(2), socket.read(&mut [0; 8]))
            .await
            .unwrap()
            .unwrap(),
        0
    );
}

#[tokio::test]
async fn slow_and_silent_strangers_meet_the_same_silence() {
    let (_server, at) = server("&handshake=300ms").await;
    let mut socket = TcpStream::connect(at).await.unwrap();
    for _ in 0..8 {
        socket.write_all(b"x").await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    assert!(
        socket
            .try_read(&mut [0; 8])
            .is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
    );
    assert_eq!(
        probe(at, b"", Duration::from_millis(600)).await,
        Seen::Silence
    );
}

#[tokio::test]
async fn reset_and_close_wait_for_a_whole_header_whatever_it_is() {
    for (policy, expected) in [("reset", Seen::Reset), ("close", Seen::Fin)] {
        let (_server, at) = server(&format!("&reject={policy}&handshake=1s")).await;
        for (cause, bytes) in causes(at).await {
            let early = probe(at, &bytes, Duration::from_millis(300)).await;
            // 16 bytes of salt and 27 of sealed header: shorter input waits for the deadline.
            let wanted = if bytes.len() < 43 {
                Seen::Silence
            } else {
                expected
            };
            assert_eq!(early, wanted, "{policy}: {cause}");
        }
        assert_eq!(
            probe(at, b"short", Duration::from_secs(3)).await,
            expected,
            "{policy}"
        );
    }
}

#[tokio::test]
async fn forward_gives_the_decoy_every_byte_as_it_came() {
    let decoy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let more = format!("&reject=forward:{}", decoy.local_addr().unwrap());
    let (_server, at) = server(&more).await;
    let sent: Vec<u8> = (0..500).map(|i: usize| (i * 7 % 256) as u8).collect();
    let mut socket = TcpStream::connect(at).await.unwrap();
    socket.write_all(&sent).await.unwrap();
    let (mut seen, _) = timeout(Duration::from_secs(3), decoy.accept())
        .await
        .unwrap()
        .unwrap();
    let mut got = vec![0; sent.len()];
    seen.read_exact(&mut got).await.unwrap();
    assert_eq!(got, sent);
    seen.write_all(b"HTTP/1.1 400").await.unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400");
}

#[tokio::test]
async fn private_targets_are_refused_unless_named() {
    let target = echo().await;
    let listen = format!("ss://{METHOD}:{KEY}@127.0.0.1:0?restart=lenient");
    for (more, reachable) in [
        ("", false),
        ("&allow_private=10.0.0.0/8", false),
        ("&allow_private=127.0.0.0/8", true),
    ] {
        let (_server, at) = start(&[&(listen.clone() + more)]).await;
        let (_client, proxy) = start(&["socks5://127.0.0.1:0", &url(at)]).await;
        let mut socket = socks(proxy, target).await.unwrap();
        assert_eq!(talk(&mut socket, b"x").await.is_ok(), reachable, "{more}");
    }
}

#[tokio::test]
async fn a_wrong_key_never_gets_an_answer() {
    let (_server, at) = server("").await;
    let wrong = url(at).replace("AAEC", "AAED");
    let (_client, proxy) = start(&["socks5://127.0.0.1:0", &wrong]).await;
    let mut socket = socks(proxy, echo().await).await.unwrap();
    socket.write_all(b"x").await.unwrap();
    assert!(
        timeout(Duration::from_millis(500), socket.read(&mut [0; 8]))
            .await
            .is_err()
    );
}

/// Requests from the second of the start are refused silently: no client can make one before it is over.
#[tokio::test]
async fn nobody_is_let_in_before_requests_are_served() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let at = loopback_addr(free_port());
    // Started early in a second, so that most of it remains.
    let late = u64::from(now().subsec_millis());
    sleep(Duration::from_millis(1001 - late)).await;
    let began = now().as_secs();
    let url = format!("ss://{METHOD}:{KEY}@{at}?allow_private=all");
    let words = [url.as_str()];
    let connected = async {
        while TcpStream::connect(at).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
        now().as_secs()
    };
    let connected = timeout(Duration::from_secs(20), connected);
    let (_running, at) = tokio::join!(start(&words), connected);
    assert!(at.unwrap() > began, "in the second of the start");
}
