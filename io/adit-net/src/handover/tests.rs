//! Messages and sockets over a channel within one process.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

use super::*;

fn channels() -> (HandoverChannel, HandoverChannel) {
    let (old, end) = HandoverChannel::pair().unwrap();
    (old, HandoverChannel::from_fd(end).unwrap())
}

/// A channel whose peer is a plain blocking socket.
fn raw() -> (HandoverChannel, UnixStream) {
    let (channel, end) = HandoverChannel::pair().unwrap();
    (channel, UnixStream::from(end))
}

#[tokio::test]
async fn messages_and_descriptors_arrive_in_order() {
    let (mut old, mut new) = channels();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let large: Vec<u8> = (0..3 << 20)
        .map(|i| u8::try_from(i % 251).unwrap())
        .collect();
    let sending = async {
        old.send(1, b"sockets", &[listener.as_fd(), udp.as_fd()])
            .await
            .unwrap();
        old.send(2, &large, &[]).await.unwrap();
        // Descriptors of consecutive messages without a body do not mix.
        old.send(3, b"", &[udp.as_fd()]).await.unwrap();
        old.send(4, b"", &[listener.as_fd()]).await.unwrap();
        drop(old);
    };
    let receiving = async {
        let mut messages = Vec::new();
        while let Some(message) = new.receive().await.unwrap() {
            messages.push(message);
        }
        messages
    };
    let ((), messages) = tokio::join!(sending, receiving);
    let summary: Vec<_> = messages
        .iter()
        .map(|m| (m.kind, m.body.len(), m.fds.len()))
        .collect();
    assert_eq!(
        summary,
        [(1, 7, 2), (2, large.len(), 0), (3, 0, 1), (4, 0, 1)]
    );
    assert!(messages[1].body == large);
    let mut fds = messages.into_iter().flat_map(|m| m.fds);
    let first = continue_tcp_listener(fds.next().unwrap()).unwrap();
    assert_eq!(first.local_addr().unwrap(), listener.local_addr().unwrap());
    for _ in 0..2 {
        let same = continue_udp_socket(fds.next().unwrap()).unwrap();
        assert_eq!(same.local_addr().unwrap(), udp.local_addr().unwrap());
        let flags = rustix::io::fcntl_getfd(&same).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
    continue_tcp_listener(fds.next().unwrap()).unwrap();
}

#[tokio::test]
async fn a_connection_that_waits_is_accepted_by_the_new_process() {
    let (mut old, mut new) = channels();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(b"early").unwrap();
    old.send(1, b"", &[listener.as_fd()]).await.unwrap();
    drop((old, listener));
    let fd = new.receive().await.unwrap().unwrap().fds.remove(0);
    let continued = continue_tcp_listener(fd).unwrap();
    let (mut accepted, _) = continued.accept().unwrap();
    accepted.set_nonblocking(false).unwrap();
    let mut text = [0; 5];
    accepted.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"early");
    // It has become non-blocking.
    assert_eq!(
        continued.accept().unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
}

#[tokio::test]
async fn the_limits_leave_the_channel_usable() {
    let (mut old, mut new) = channels();
    let file = File::open("/dev/null").unwrap();
    let large = vec![0; MAX_BODY_BYTES + 1];
    let why = old.send(1, &large, &[]).await.unwrap_err();
    assert!(
        matches!(why, HandoverError::BodyTooLarge { kind: 1, .. }),
        "{why}"
    );
    let many = [file.as_fd(); MAX_DESCRIPTORS + 1];
    let why = old.send(2, b"", &many).await.unwrap_err();
    assert!(
        matches!(why, HandoverError::TooManyDescriptors { kind: 2 }),
        "{why}"
    );
    old.send(3, b"x", &many[1..]).await.unwrap();
    let message = new.receive().await.unwrap().unwrap();
    assert_eq!((message.kind, message.fds.len()), (3, MAX_DESCRIPTORS));
}

#[tokio::test]
async fn a_truncated_message_is_an_error() {
    let header = MessageHeader::new(1, 5, 0).unwrap().to_bytes();
    let whole = [&header[..], b"body!"].concat();
    for len in 0..=whole.len() {
        let (mut channel, mut peer) = raw();
        peer.write_all(&whole[..len]).unwrap();
        drop(peer);
        match channel.receive().await {
            Ok(None) => assert_eq!(len, 0),
            Ok(Some(message)) => assert_eq!((len, &*message.body), (whole.len(), &b"body!"[..])),
            Err(why) => {
                assert!(matches!(why, HandoverError::Truncated), "{why}");
                assert!((1..whole.len()).contains(&len), "{len}");
            }
        }
    }
}

#[tokio::test]
async fn malformed_messages_are_refused() {
    let (mut channel, mut peer) = raw();
    peer.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let why = channel.receive().await.unwrap_err();
    assert!(matches!(why, HandoverError::NotAHeader), "{why}");

    let (mut channel, mut peer) = raw();
    peer.write_all(&MessageHeader::new(7, 0, 2).unwrap().to_bytes())
        .unwrap();
    let why = channel.receive().await.unwrap_err();
    let missing = HandoverError::MissingDescriptors {
        kind: 7,
        announced: 2,
        received: 0,
    };
    assert_eq!(why.to_string(), missing.to_string());
}

#[tokio::test]
async fn a_cancelled_receive_continues() {
    let (mut channel, mut peer) = raw();
    let header = MessageHeader::new(9, 4, 0).unwrap().to_bytes();
    for chunk in [&header[..3], &header[3..], b"bo"] {
        peer.write_all(chunk).unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(20), channel.receive());
        assert!(waiting.await.is_err());
    }
    peer.write_all(b"dy").unwrap();
    let message = channel.receive().await.unwrap().unwrap();
    assert_eq!((message.kind, &*message.body), (9, &b"body"[..]));
}

#[tokio::test]
async fn a_cancelled_send_makes_the_channel_unusable() {
    let (mut channel, _peer) = raw();
    let large = vec![0; 8 << 20];
    let sending = tokio::time::timeout(Duration::from_millis(20), channel.send(1, &large, &[]));
    assert!(sending.await.is_err());
    let why = channel.send(2, b"", &[]).await.unwrap_err();
    assert!(matches!(why, HandoverError::Unusable), "{why}");
}

#[tokio::test]
async fn other_descriptors_are_refused() {
    let file = || OwnedFd::from(File::open("/dev/null").unwrap());
    let udp = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let connected = udp();
    connected.connect(listener.local_addr().unwrap()).unwrap();
    let unbound = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    let dgram = || OwnedFd::from(UnixDatagram::unbound().unwrap());
    let path = std::env::temp_dir().join(format!("adit-handover-{}", std::process::id()));
    let unix_listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for fd in [
        file(),
        udp().into(),
        client.try_clone().unwrap().into(),
        dgram(),
    ] {
        assert_eq!(
            continue_tcp_listener(fd).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }
    for fd in [
        file(),
        client.into(),
        connected.into(),
        unbound.into(),
        dgram(),
    ] {
        assert_eq!(
            continue_udp_socket(fd).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }
    for fd in [
        file(),
        udp().into(),
        listener.into(),
        dgram(),
        unix_listener.into(),
    ] {
        assert_eq!(
            HandoverChannel::from_fd(fd).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }
}
