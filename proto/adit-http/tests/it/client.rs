//! The client of an upstream proxy.

use adit_http::MAX_HEAD;
use adit_http::client::{ClientError, HttpConnect};
use adit_http::server::{ESTABLISHED, Request, RequestHandshake, failure_response};
use adit_wire::codec_laws::run_handshake;
use adit_wire::{HandshakeProgress, Host, ProtocolError, Target};
use proptest::prelude::*;

use crate::server::User;
use crate::split::{Outcome, every_split};

fn plain() -> HttpConnect {
    HttpConnect::new("example.test:443".parse().unwrap(), None)
}

fn with_auth(target: &str) -> HttpConnect {
    let auth = Some(("u".into(), "p".into()));
    HttpConnect::new(target.parse().unwrap(), auth)
}

fn answer(bytes: &[u8]) -> Outcome<(), ClientError> {
    every_split(plain, bytes)
}

#[test]
fn asks_for_a_tunnel() {
    let (step, sent, left) = answer(&[ESTABLISHED, b"SSH-2.0"].concat()).unwrap();
    assert_eq!(
        (step, left),
        (HandshakeProgress::Done(()), b"SSH-2.0".to_vec())
    );
    assert_eq!(
        sent,
        b"CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n"
    );
    let (_, sent, _) = every_split(|| with_auth("[2001:db8::1]:1"), b"").unwrap();
    assert_eq!(
        sent,
        b"CONNECT [2001:db8::1]:1 HTTP/1.1\r\nHost: [2001:db8::1]:1\r\n\
        Proxy-Authorization: Basic dTpw\r\n\r\n"
    );
}

#[test]
fn any_2xx_is_success_and_nothing_else() {
    for ok in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 200\r\nVia: x\r\n\r\n",
        "HTTP/1.1 299 \r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nodd line\r\n\r\n",
    ] {
        let (step, _, left) = answer(format!("{ok}xyz").as_bytes()).unwrap();
        assert_eq!(
            (step, left),
            (HandshakeProgress::Done(()), b"xyz".to_vec()),
            "{ok}"
        );
    }
    for status in [101, 199 + 101, 403, 407, 502, 999] {
        let head = format!("HTTP/1.1 {status} x\r\n\r\n");
        let why = answer(head.as_bytes()).unwrap_err().0;
        assert_eq!(why, ClientError::Status(status));
    }
    let broken = ProtocolError::from(ClientError::Status(407));
    assert!(matches!(broken, ProtocolError::Refused(text) if text.contains("password")));
    for other in [
        "SSH-2.0-x\r\n",
        "HTTP/2",
        "\r\n",
        "\x05\x00",
        "HTTP/1.1 2x0 OK\r\n\r\n",
    ] {
        let why = answer(other.as_bytes()).unwrap_err().0;
        assert!(matches!(why, ClientError::Malformed(_)), "{other:?}");
    }
}

#[test]
fn the_head_has_a_limit() {
    let padded = |total: usize| {
        let mut head = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
        head.resize(total - 4, b'x');
        head.extend_from_slice(b"\r\n\r\n");
        head
    };
    for pieces in [1, 7, 1 << 20] {
        let run = |head: &[u8]| run_handshake(&mut plain(), head, &[pieces]);
        assert!(matches!(
            run(&padded(MAX_HEAD)),
            Ok((HandshakeProgress::Done(()), ..))
        ));
        for head in [padded(MAX_HEAD + 1), padded(9 * MAX_HEAD)] {
            assert_eq!(run(&head).unwrap_err().0, ClientError::TooLarge);
        }
        // Interim answers do not extend the limit.
        let endless = b"HTTP/1.1 103 x\r\n\r\n".repeat(1000);
        assert_eq!(run(&endless).unwrap_err().0, ClientError::TooLarge);
    }
}

#[test]
fn refuses_what_cannot_be_written() {
    for name in ["a/b", "a@b", "ü.test", "a\u{200b}b"] {
        let target = Target::new(Host::parse(name).unwrap(), 1);
        let (why, sent) = every_split(|| HttpConnect::new(target.clone(), None), b"").unwrap_err();
        assert_eq!((why, sent), (ClientError::Target, vec![]), "{name}");
    }
    let colon = || HttpConnect::new("a:1".parse().unwrap(), Some(("a:b".into(), "p".into())));
    assert_eq!(
        every_split(colon, b"").unwrap_err().0,
        ClientError::UserName
    );
}

#[test]
fn our_client_and_our_server_agree() {
    for to in ["example.test:443", "192.0.2.1:1", "[2001:db8::1]:65535"] {
        let (_, request, _) = run_handshake(&mut with_auth(to), b"", &[1]).unwrap();
        let (step, sent, _) =
            run_handshake(&mut RequestHandshake::new(&User), &request, &[1]).unwrap();
        let want = Request::Connect {
            target: to.parse().unwrap(),
            user: Some(b"u".to_vec()),
        };
        assert_eq!((step, sent), (HandshakeProgress::Done(want), vec![]));
    }
    let why = answer(&failure_response(504, None)).unwrap_err().0;
    assert_eq!(why, ClientError::Status(504));
}

#[test]
fn no_password_is_printed() {
    let text = format!(
        "{:?}",
        HttpConnect::new("a:1".parse().unwrap(), Some(("alice".into(), "pw".into())))
    );
    assert!(!text.contains("pw") && !text.contains("alice"), "{text}");
}

proptest! {
    #[test]
    fn any_answer_is_handled(
        start in proptest::sample::select(vec!["", "HTTP/1.", "HTTP/1.1 200 ", "HTTP/1.1 100 \r\n\r\n"]),
        noise in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        drop(answer(&[start.as_bytes(), &noise].concat()));
    }
}
