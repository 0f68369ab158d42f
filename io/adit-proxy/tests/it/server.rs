//! The server.

use adit_proxy::{AcceptedClient, Command, Error, Protocol, Reply, Users, accept};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use crate::support::closed_port;

/// Accepts a client that sends `bytes`, with a stream to the client.
async fn accepted(
    bytes: &[u8],
    users: &Users,
) -> (Result<AcceptedClient<DuplexStream>, Error>, DuplexStream) {
    let (mut client, server) = duplex(4096);
    client.write_all(bytes).await.unwrap();
    client.shutdown().await.unwrap();
    (accept(server, users).await, client)
}

/// Returns all that a client receives.
async fn received(mut client: DuplexStream) -> Vec<u8> {
    let mut got = Vec::new();
    client.read_to_end(&mut got).await.unwrap();
    got
}

const SOCKS5: &[u8] = b"\x05\x01\x00\x05\x01\x00\x03\x09localhost\x00\x50and on";
const SOCKS4: &[u8] = b"\x04\x01\x00\x50\0\0\0\x01me\0localhost\0and on";
const HTTP: &[u8] = b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\nand on";

#[tokio::test]
async fn every_protocol_is_detected_and_the_first_payload_stays() {
    for (bytes, protocol, answer) in [
        (
            SOCKS5,
            Protocol::Socks5,
            &b"\x05\x00\x05\x00\x00\x01\xc0\x00\x02\x01\x01\x02"[..],
        ),
        (
            SOCKS4,
            Protocol::Socks4,
            b"\x00\x5a\x01\x02\xc0\x00\x02\x01",
        ),
        (
            HTTP,
            Protocol::Http,
            b"HTTP/1.1 200 Connection established\r\n\r\n",
        ),
    ] {
        let (request, client) = accepted(bytes, &Users::anyone()).await;
        let request = request.unwrap();
        assert_eq!(request.protocol(), protocol);
        assert_eq!(request.command(), Command::Connect);
        assert_eq!(request.target().to_string(), "localhost:80");
        assert_eq!(request.user(), None, "USERID proves nothing");
        let bound = "192.0.2.1:258".parse().unwrap();
        let mut stream = request.grant(Some(bound)).await.unwrap();
        let mut payload = String::new();
        stream.read_to_string(&mut payload).await.unwrap();
        assert_eq!(payload, "and on", "{protocol:?}");
        drop(stream);
        assert_eq!(received(client).await, answer, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_in_the_words_of_the_protocol() {
    for (bytes, reply, answer) in [
        (
            SOCKS5,
            Reply::NotAllowed,
            &b"\x05\x00\x05\x02\x00\x01\0\0\0\0\0\0"[..],
        ),
        (SOCKS4, Reply::NotAllowed, b"\x00\x5b\0\0\0\0\0\0"),
        (HTTP, Reply::NotAllowed, b"HTTP/1.1 403 "),
        (HTTP, Reply::TtlExpired, b"HTTP/1.1 504 "),
        (HTTP, Reply::HostUnreachable, b"HTTP/1.1 502 "),
    ] {
        let (request, client) = accepted(bytes, &Users::anyone()).await;
        request.unwrap().refuse(reply).await.unwrap();
        let got = received(client).await;
        assert!(got.starts_with(answer), "{}", got.escape_ascii());
    }
}

#[tokio::test]
async fn wrong_logins_are_answered_and_the_user_is_known_after_a_correct_one() {
    let users = Users::new([("ann", "secret")]);
    let login = |password: &str| {
        let head = format!("\x05\x01\x02\x01\x03ann\x06{password}");
        [head.as_bytes(), b"\x05\x01\x00\x01\x7f\0\0\x01\0\x50"].concat()
    };
    let (request, _) = accepted(&login("secret"), &users).await;
    assert_eq!(request.unwrap().user(), Some(&b"ann"[..]));
    let (request, client) = accepted(&login("Secret"), &users).await;
    assert!(matches!(request, Err(Error::SocksClient(_))));
    assert_eq!(received(client).await, b"\x05\x02\x01\x01");
    let (request, client) = accepted(SOCKS5, &users).await;
    assert!(matches!(request, Err(Error::SocksClient(_))));
    assert_eq!(received(client).await, b"\x05\xff");
    let (request, client) = accepted(SOCKS4, &users).await;
    assert!(matches!(request, Err(Error::SocksClient(_))));
    assert_eq!(received(client).await, b"\x00\x5b\0\0\0\0\0\0");
    let once = b"CONNECT a:1 HTTP/1.0\r\n\r\n";
    let (request, client) = accepted(once, &users).await;
    assert!(matches!(request, Err(Error::HttpClient(_))));
    assert!(received(client).await.starts_with(b"HTTP/1.1 407 "));
    // The second request of a client that was asked for its password.
    let twice = b"CONNECT a:1 HTTP/1.1\r\n\r\nCONNECT a:1 HTTP/1.1\r\n\
        Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n\r\n";
    let (request, _) = accepted(twice, &users).await;
    assert_eq!(request.unwrap().user(), Some(&b"ann"[..]));
}

#[tokio::test]
async fn what_is_not_a_tunnel_is_answered() {
    let anyone = Users::anyone();
    let (request, client) = accepted(b"GET http://a.test/ HTTP/1.1\r\n\r\n", &anyone).await;
    assert!(matches!(request, Err(Error::NotConnect)));
    assert!(received(client).await.starts_with(b"HTTP/1.1 405 "));
    let (request, client) = accepted(b"GET / HTTP/1.1\r\n\r\n", &anyone).await;
    assert!(matches!(request, Err(Error::HttpClient(_))));
    assert!(received(client).await.starts_with(b"HTTP/1.1 400 "));
    let associate = b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\0\0";
    let (request, client) = accepted(associate, &anyone).await;
    let failure = request.unwrap().connect().await.unwrap_err();
    assert!(matches!(failure, Error::Command(Command::UdpAssociate)));
    assert!(received(client).await.starts_with(b"\x05\x00\x05\x07"));
}

#[tokio::test]
async fn a_target_that_refuses_is_reported() {
    let port = closed_port().await.port().to_be_bytes();
    let head = b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01";
    let (request, client) = accepted(&[&head[..], &port].concat(), &Users::anyone()).await;
    let failure = request.unwrap().connect().await.unwrap_err();
    assert!(matches!(failure, Error::Io(_)), "{failure}");
    assert!(received(client).await.starts_with(b"\x05\x00\x05\x05"));
}

#[tokio::test]
async fn clients_that_leave_are_no_requests() {
    for bytes in [SOCKS5, SOCKS4, HTTP] {
        let request = bytes.len() - "and on".len();
        for len in 0..request {
            let cut = &bytes[..len];
            let (outcome, _) = accepted(cut, &Users::anyone()).await;
            assert!(matches!(outcome, Err(Error::Eof)), "{len} bytes");
        }
    }
}
