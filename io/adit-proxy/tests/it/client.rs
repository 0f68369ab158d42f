//! The clients.

use adit_proxy::{Command, Error, Reply, Users, http, socks4, socks5};
use adit_socks::client::ClientError;
use adit_stream::{BoxStream, Stream, Tcp};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpStream;

use crate::support::{assert_echoes, closed_port, echo_server, proxy_server};

#[tokio::test]
async fn a_chain_of_all_protocols_reaches_the_target() {
    let target = echo_server().await;
    let open = proxy_server(Users::anyone()).await;
    let closed = proxy_server(Users::new([("ann", "secret")])).await;
    let login = Some(("ann", "secret"));
    let stream = socks5::connect(closed, open, login).await.unwrap();
    let stream = socks4::connect_over(stream, closed, None).await.unwrap();
    let stream = http::connect_over(stream, ("127.0.0.1", open.port()), login).await;
    let stream = socks5::connect_over(stream.unwrap(), target.to_string(), None).await;
    // Four handshakes over one socket, which is a `TcpStream` again.
    let stream: TcpStream = stream.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), closed);
    assert_echoes(stream).await;
}

#[tokio::test]
async fn each_client_dials_on_its_own() {
    let (target, proxy) = (echo_server().await, proxy_server(Users::anyone()).await);
    assert_echoes(socks5::connect(proxy, target, None).await.unwrap()).await;
    assert_echoes(socks4::connect(proxy, target, Some("me")).await.unwrap()).await;
    assert_echoes(http::connect(proxy, target, None).await.unwrap()).await;
}

#[tokio::test]
async fn a_stream_of_adit_is_as_good_as_a_socket() {
    let (target, proxy) = (echo_server().await, proxy_server(Users::anyone()).await);
    let stream = BoxStream::from(TcpStream::connect(proxy).await.unwrap()).into_tokio();
    let stream = socks5::connect_over(stream, target, None).await.unwrap();
    assert_echoes(stream).await;
    let mut stream = Tcp::from(TcpStream::connect(proxy).await.unwrap()).into_tokio();
    socks5::connect_over(&mut stream, target, None)
        .await
        .unwrap();
    assert_eq!(stream.get_ref().buffered_len(), 0, "nothing was read ahead");
    assert_echoes(stream.into_inner().into_inner().unwrap()).await;
}

#[tokio::test]
async fn failures_name_their_reason() {
    let (target, nowhere) = (echo_server().await, closed_port().await);
    let proxy = proxy_server(Users::new([("ann", "secret")])).await;
    let login = Some(("ann", "secret"));
    let wrong = Some(("ann", "Secret"));
    let failure = socks5::connect(proxy, target, wrong).await.unwrap_err();
    assert!(matches!(
        failure,
        Error::SocksProxy(ClientError::BadCredentials)
    ));
    let failure = socks5::connect(proxy, target, None).await.unwrap_err();
    assert!(matches!(failure, Error::SocksProxy(ClientError::NoMethod)));
    let failure = socks5::connect(proxy, nowhere, login).await.unwrap_err();
    let refused = ClientError::Replied(Reply::ConnectionRefused);
    assert!(matches!(failure, Error::SocksProxy(why) if why == refused));
    let failure = http::connect(proxy, target, wrong).await.unwrap_err();
    assert_eq!(failure.to_string(), "the proxy answered with status 407");
    let failure = http::connect(proxy, nowhere, login).await.unwrap_err();
    assert_eq!(failure.to_string(), "the proxy answered with status 502");
    let failure = socks4::connect(proxy, target, None).await.unwrap_err();
    assert!(matches!(
        failure,
        Error::SocksProxy(ClientError::Replied(_))
    ));
    let failure = socks5::connect(nowhere, target, None).await.unwrap_err();
    let failure = std::io::Error::from(failure);
    assert_eq!(failure.kind(), std::io::ErrorKind::ConnectionRefused);
    for bad in ["no-port", "a:99999", ":80"] {
        let failure = socks5::connect(proxy, bad, None).await.unwrap_err();
        assert!(matches!(failure, Error::Target(_)), "{bad}: {failure}");
    }
}

/// Runs a client against a proxy that sends `answer` and then the first bytes of the target, all of
/// it in one write, and returns what the client reads after the handshake.
async fn read_after(answer: &[u8], client: impl AsyncFnOnce(&mut tokio::io::DuplexStream)) {
    let (mut near, mut far) = duplex(4096);
    far.write_all(&[answer, b"first bytes of the target"].concat())
        .await
        .unwrap();
    client(&mut near).await;
    far.shutdown().await.unwrap();
    let mut got = String::new();
    near.read_to_string(&mut got).await.unwrap();
    assert_eq!(got, "first bytes of the target");
}

#[tokio::test]
async fn bytes_of_the_target_are_never_part_of_the_handshake() {
    let target = "example.test:80";
    let name = b"\x05\x00\x05\x00\x00\x03\x04name\x1f\x90";
    read_after(name, async |io| {
        socks5::connect_over(io, target, None).await.unwrap();
    })
    .await;
    let v6 = [&b"\x05\x02\x01\x00\x05\x00\x00\x04"[..], &[0; 18]].concat();
    read_after(&v6, async |io| {
        let login = Some(("u", "p"));
        let bound = socks5::request(io, Command::UdpAssociate, target, login).await;
        assert_eq!(bound.unwrap().to_string(), "[::]:0");
    })
    .await;
    read_after(&[0, 0x5a, 0, 0, 0, 0, 0, 0], async |io| {
        socks4::connect_over(io, target, None).await.unwrap();
    })
    .await;
    let head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nVia: a\r\n\r\n";
    read_after(head, async |io| {
        http::connect_over(io, target, None).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn bind_has_two_replies() {
    let replies = b"\x05\x00\x05\x00\x00\x01\x7f\0\0\x01\0\x07\x05\x00\x00\x01\x7f\0\0\x02\0\x08";
    read_after(replies, async |io| {
        let bound = socks5::request(io, Command::Bind, "192.0.2.1:9", None).await;
        assert_eq!(bound.unwrap().to_string(), "127.0.0.1:7");
        let peer = socks5::second_reply(io).await;
        assert_eq!(peer.unwrap().to_string(), "127.0.0.2:8");
    })
    .await;
}

#[tokio::test]
async fn a_proxy_that_leaves_is_an_end() {
    for answer in [&b""[..], b"\x05", b"\x05\x00\x05\x00\x00\x01"] {
        let (near, mut far) = duplex(4096);
        far.write_all(answer).await.unwrap();
        far.shutdown().await.unwrap();
        let failure = socks5::connect_over(near, "a:1", None).await.unwrap_err();
        assert!(matches!(failure, Error::Eof), "{answer:?}: {failure}");
    }
}
