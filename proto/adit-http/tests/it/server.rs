//! CONNECT and passwords.

use adit_http::server::{BasicAuth, Refusal, Request, RequestHandshake, failure_response};
use adit_http::{MAX_FIELDS, MAX_HEAD, MAX_START_LINE};
use adit_wire::codec_laws::run_handshake;
use adit_wire::{HandshakeProgress, ProtocolError};

use crate::split::{Outcome, every_split};

pub(crate) struct Open;
pub(crate) struct User;

impl BasicAuth for Open {
    fn is_required(&self) -> bool {
        false
    }
    fn check_password(&self, _: &[u8], _: &[u8]) -> bool {
        panic!("an open listener checks no password")
    }
}

impl BasicAuth for User {
    fn is_required(&self) -> bool {
        true
    }
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
        (user, password) == (b"u", b"p")
    }
}

pub(crate) fn talk(credentials: &dyn BasicAuth, input: &[u8]) -> Outcome<Request, Refusal> {
    every_split(|| RequestHandshake::new(credentials), input)
}

fn tunnel(to: &str, user: Option<&str>) -> HandshakeProgress<Request> {
    HandshakeProgress::Done(Request::Connect {
        target: to.parse().unwrap(),
        user: user.map(|u| u.as_bytes().to_vec()),
    })
}

const CURL: &[u8] = b"CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\
    Proxy-Authorization: Basic dTpw\r\nUser-Agent: curl/7.88.1\r\n\
    Proxy-Connection: Keep-Alive\r\n\r\n";
const BARE: &[u8] = b"CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n";
const ASK: &[u8] = b"HTTP/1.1 407 Proxy Authentication Required\r\n\
    Proxy-Authenticate: Basic realm=\"proxy\"\r\nContent-Length: 0\r\n\r\n";

#[test]
fn what_curl_sends() {
    let (step, sent, left) = talk(&User, CURL).unwrap();
    assert_eq!(step, tunnel("example.test:443", Some("u")));
    assert!(sent.is_empty() && left.is_empty());
    let (step, ..) = talk(&Open, CURL).unwrap();
    assert_eq!(step, tunnel("example.test:443", None));
    let v6 = b"CONNECT [2001:db8::1]:443 HTTP/1.0\r\n\r\n";
    let (step, ..) = talk(&Open, v6).unwrap();
    assert_eq!(step, tunnel("[2001:db8::1]:443", None));
    // A tunnel has no body, even if its head declares one.
    let body = b"CONNECT a:1 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
    let (step, _, left) = talk(&Open, body).unwrap();
    assert_eq!((step, left), (tunnel("a:1", None), b"hello".to_vec()));
}

#[test]
fn asks_once_for_a_password() {
    let (step, sent, left) = talk(&User, &[BARE, CURL, b"\x16\x03"].concat()).unwrap();
    assert_eq!(step, tunnel("example.test:443", Some("u")));
    assert_eq!((sent, left), (ASK.to_vec(), b"\x16\x03".to_vec()));

    let wrong = b"CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: Basic dTpx\r\n\r\n";
    let (why, sent) = talk(&User, &[BARE, wrong].concat()).unwrap_err();
    assert_eq!(why, Refusal::BadCredentials { user: "u".into() });
    assert_eq!(sent, [ASK, &failure_response(407, None)].concat());
    assert_eq!(ProtocolError::from(why), ProtocolError::Unauthentic);
    let waits = talk(&User, wrong).unwrap();
    assert!(matches!(waits.0, HandshakeProgress::NeedMore { total: 1 }));
    assert_eq!(waits.1, ASK);
}

#[test]
fn closes_at_once_where_the_next_request_is_not_certain() {
    for head in [
        "POST http://h/ HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "CONNECT h:1 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        "CONNECT h:1 HTTP/1.0\r\n\r\n",
        "CONNECT h:1 HTTP/1.1\r\nProxy-Connection: close\r\n\r\n",
        "CONNECT h:1 HTTP/1.1\r\nConnection: x, Close\r\n\r\n",
    ] {
        let (why, sent) = talk(&User, head.as_bytes()).unwrap_err();
        assert!(matches!(why, Refusal::BadCredentials { .. }), "{head}");
        assert_eq!(sent, failure_response(407, None), "{head}");
    }
}

#[test]
fn judges_every_form_of_credentials() {
    let with = |value: &str| {
        let head = format!("CONNECT a:1 HTTP/1.0\r\nProxy-Authorization: {value}\r\n\r\n");
        talk(&User, head.as_bytes())
    };
    for good in ["Basic dTpw", "basic dTpw", "BASIC  dTpw"] {
        assert_eq!(with(good).unwrap().0, tunnel("a:1", Some("u")), "{good}");
    }
    for bad in [
        "",
        "Basic",
        "Basic ",
        "Basic dTpx",
        "Bearer dTpw",
        "Digest dTpw",
        "Basic dTpw dTpw",
        "Basic !!!!",
        "Basic dXA=",
        "dTpw",
        "Basic dTpwcA==",
    ] {
        assert!(
            matches!(with(bad), Err((Refusal::BadCredentials { .. }, _))),
            "{bad}"
        );
    }
    // Two headers are ambiguous.
    let two = b"CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: Basic dTpw\r\n\
        Proxy-Authorization: Basic dTpx\r\n\r\n";
    let why = talk(&User, two).unwrap_err().0;
    assert_eq!(why, Refusal::Malformed("Proxy-Authorization"));
    // `\x1b[2J:` as a name does not reach a terminal.
    let why = with("Basic G1sySjo=").unwrap_err().0;
    assert!(why.to_string().contains("`\\x1b[2J`"), "{why}");
}

#[test]
fn limits_of_the_head() {
    let padded = |total: usize| {
        let mut head = BARE[..BARE.len() - 2].to_vec();
        // One long value, on its own line.
        head.extend_from_slice(b"X: ");
        head.resize(total - 4, b'x');
        head.extend_from_slice(b"\r\n\r\n");
        head
    };
    let run = |head: &[u8]| run_handshake(&mut RequestHandshake::new(&Open), head, &[1000]);
    assert!(matches!(
        run(&padded(MAX_HEAD)),
        Ok((HandshakeProgress::Done(_), ..))
    ));
    for head in [padded(MAX_HEAD + 1), padded(3 * MAX_HEAD)] {
        let (why, sent) = run(&head).unwrap_err();
        assert_eq!(
            (why, sent),
            (Refusal::TooLarge("head"), failure_response(431, None))
        );
    }
    // Never waits for more than the limit.
    let cut = &padded(MAX_HEAD)[..MAX_HEAD - 1];
    assert!(
        matches!(run(cut), Ok((HandshakeProgress::NeedMore { total }, ..)) if total == MAX_HEAD)
    );

    let fields = |n: usize| {
        let lines = "a: b\r\n".repeat(n);
        format!("CONNECT a:1 HTTP/1.1\r\n{lines}\r\n").into_bytes()
    };
    assert!(matches!(
        run(&fields(MAX_FIELDS)),
        Ok((HandshakeProgress::Done(_), ..))
    ));
    assert!(matches!(
        run(&fields(MAX_FIELDS + 1)),
        Err((Refusal::TooLarge("number of header lines"), _))
    ));

    let line = |n: usize| {
        let path = "x".repeat(n - "GET http://h/ HTTP/1.1".len());
        format!("GET http://h/{path} HTTP/1.1\r\n\r\n").into_bytes()
    };
    assert!(matches!(
        run(&line(MAX_START_LINE)),
        Ok((HandshakeProgress::Done(_), ..))
    ));
    for pieces in [1, 100_000] {
        let got = run_handshake(
            &mut RequestHandshake::new(&Open),
            &line(MAX_START_LINE + 1),
            &[pieces],
        );
        assert!(matches!(got, Err((Refusal::TooLarge("start line"), _))));
    }
}

#[test]
fn early_data_is_left_alone() {
    let early: Vec<u8> = (0..16 << 10).map(|i| i as u8).collect();
    let input = [CURL, &early].concat();
    for pieces in [&[input.len()][..], &[1], &[50, 600]] {
        let (step, _, left) =
            run_handshake(&mut RequestHandshake::new(&User), &input, pieces).unwrap();
        assert_eq!(step, tunnel("example.test:443", Some("u")));
        assert!(left == early, "{pieces:?}");
    }
}

#[test]
fn the_password_is_wiped_from_the_buffer() {
    let mut wire = CURL.to_vec();
    let mut core = RequestHandshake::new(&User);
    let mut rx = adit_wire::HandshakeInput::new(&mut wire);
    adit_wire::Handshake::step(
        &mut core,
        &mut rx,
        &mut adit_wire::HandshakeOutput::new(&mut vec![]),
    )
    .unwrap();
    assert!(wire.iter().all(|b| *b == 0));
}
