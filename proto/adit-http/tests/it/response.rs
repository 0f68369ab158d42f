//! The response on its way to the client.

use adit_http::Framing;
use adit_http::body::{ResponseSeal, exchange_codecs, keep_alive_codecs};
use adit_http::server::failure_response;
use adit_wire::codec_laws::seal_all;
use adit_wire::{Open, Opened, ProtocolError, Seal};
use proptest::prelude::*;

/// Returns the bytes that the client receives, the same in chunks of every size.
fn pass(new: impl Fn() -> ResponseSeal, input: &[u8]) -> (String, ResponseSeal) {
    let run = |piece| {
        let mut seal = new();
        let wire = seal_all(&mut seal, input, piece).unwrap();
        (String::from_utf8_lossy(&wire).into_owned(), seal)
    };
    let whole = run(input.len());
    for piece in 1..input.len().min(60) {
        let other = run(piece);
        assert_eq!(whole.0, other.0, "pieces of {piece}");
        assert_eq!(whole.1.is_finished(), other.1.is_finished());
        assert_eq!(whole.1.fault(), other.1.fault());
    }
    whole
}

fn get(input: &str) -> (String, ResponseSeal) {
    pass(|| ResponseSeal::new(false), input.as_bytes())
}

#[test]
fn the_head_is_rewritten_and_the_body_passes() {
    let (got, seal) = get(
        "HTTP/1.0 200 OK\r\nServer:x\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
        Keep-Alive: 5\r\nUpgrade: h2c\r\nProxy-Authenticate: Basic\r\nContent-Length: 5\r\n\r\n\
        hello and more",
    );
    assert_eq!(
        got,
        "HTTP/1.1 200 OK\r\nServer:x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    );
    assert!(seal.is_finished() && seal.at_boundary() && seal.fault().is_none());
    assert_eq!(seal.overhead().head, 0);
}

#[test]
fn the_room_suffices_for_a_head_that_comes_byte_by_byte() {
    let fields = format!("X: {}\r\n", "y".repeat(900)).repeat(17);
    let (got, seal) = get(&format!("HTTP/1.1 200 OK\r\n{fields}\r\nbody"));
    let want = format!("HTTP/1.1 200 OK\r\n{fields}Connection: close\r\n\r\nbody");
    assert!(got == want && seal.fault().is_none());
}

#[test]
fn framing_by_the_rules_in_their_order() {
    let chunks = "5\r\nhello\r\n0\r\n\r\n";
    for (status, fields, body, passed, ended) in [
        (
            200,
            "Transfer-Encoding: chunked\r\n",
            "5\r\nhello\r\n0\r\n\r\nmore",
            chunks,
            true,
        ),
        (200, "Content-Length: 0\r\n", "more", "", true),
        (204, "Content-Length: 4\r\n", "more", "", true),
        (304, "Content-Length: 4\r\n", "more", "", true),
        (200, "", "until close", "until close", false),
        (
            200,
            "Transfer-Encoding: gzip\r\n",
            "until close",
            "until close",
            false,
        ),
        (200, "Content-Length: 50\r\n", "cut", "cut", false),
    ] {
        let (got, seal) = get(&format!("HTTP/1.1 {status} x\r\n{fields}\r\n{body}"));
        let want = format!("HTTP/1.1 {status} x\r\n{fields}Connection: close\r\n\r\n{passed}");
        assert_eq!(got, want);
        assert_eq!(seal.is_finished(), ended, "{want}");
        assert_eq!(seal.at_boundary(), body != "cut");
    }
    let head = b"HTTP/1.1 200 x\r\nContent-Length: 4\r\n\r\nmore";
    let (got, seal) = pass(|| ResponseSeal::new(true), head);
    assert!(got.ends_with("\r\n\r\n") && seal.is_finished());
}

/// Responses that browsers accept from an origin, and that a proxy must make unambiguous.
#[test]
fn folded_lines_and_equal_lengths_become_one() {
    let end = "Connection: close\r\n\r\nhello";
    for (fields, passed) in [
        (
            "A: b\r\n c\r\n\td \r\nContent-Length: 5\r\n",
            "A: b   c  \td\r\nContent-Length: 5\r\n",
        ),
        (
            "A:\r\n \r\nContent-Length:\r\n 5\r\n",
            "A: \r\nContent-Length: 5\r\n",
        ),
        (
            "Content-Length: 5\r\nA: b\r\ncontent-length: 5\r\n",
            "Content-Length: 5\r\nA: b\r\n",
        ),
        ("Content-Length: 5, 5,5\r\n", "Content-Length: 5\r\n"),
        (
            "Content-Length: 05\r\nContent-Length: 5\r\n",
            "Content-Length: 05\r\n",
        ),
    ] {
        let (got, seal) = get(&format!("HTTP/1.1 200 OK\r\n{fields}\r\nhello and more"));
        assert_eq!(got, format!("HTTP/1.1 200 OK\r\n{passed}{end}"));
        assert!(seal.is_finished() && seal.fault().is_none());
    }
    let many = "A: b\r\n".repeat(1000);
    let (got, seal) = get(&format!("HTTP/1.1 200 OK\r\n{many}\r\n"));
    assert!(got.matches("A: b").count() == 1000 && seal.fault().is_none());
}

/// The connection stays open if the request ended before the response's head and the response has a
/// known end.
#[test]
fn a_connection_stays_when_both_ends_are_known() {
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let end = Ok(Opened::End);
    for (answer, stays) in [
        (whole, true),
        ("HTTP/1.0 204 \r\n\r\n", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhi", false),
        ("nonsense\r\n\r\n", false),
    ] {
        let (mut open, mut seal, ends) = keep_alive_codecs(Framing::None, false);
        assert!(!ends.request_ended());
        assert_eq!(open.open(&mut []), end);
        assert!(ends.request_ended() && !ends.both_ended());
        let got = seal_all(&mut seal, answer.as_bytes(), 7).unwrap();
        let got = String::from_utf8(got).unwrap();
        assert_eq!(ends.both_ended(), stays, "{answer}");
        assert_eq!(got.contains("Connection: keep-alive\r\n"), stays, "{got}");
        assert_eq!(got.contains("Connection: close\r\n"), !stays, "{got}");
    }
    // The answer does not wait for the body, which the client might never send.
    let (mut open, mut seal, ends) = keep_alive_codecs(Framing::Length(1), false);
    assert!(matches!(open.open(&mut []), Ok(Opened::NeedMore { .. })));
    let got = seal_all(&mut seal, whole.as_bytes(), 99).unwrap();
    assert!(String::from_utf8_lossy(&got).contains("Connection: close\r\n"));
    assert!(open.open(&mut [1]).is_ok());
    assert_eq!(open.open(&mut []), end);
    assert!(ends.request_ended() && !ends.both_ended());
    // Half a response is not an end.
    let (mut open, mut seal, ends) = keep_alive_codecs(Framing::None, false);
    assert_eq!(open.open(&mut []), end);
    seal_all(&mut seal, &whole.as_bytes()[..whole.len() - 1], 99).unwrap();
    assert!(!ends.both_ended());
}

#[test]
fn interim_responses_pass() {
    let (got, seal) = get(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103\r\nLink:x\r\nConnection: y\r\n\r\n\
        HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nhi",
    );
    assert_eq!(
        got,
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nLink:x\r\n\r\n\
        HTTP/1.1 200 \r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    );
    assert!(seal.is_finished());
    // The room suffices when each head grows by the maximum.
    let many = "HTTP/1.1 103\r\nA:b\r\n\r\n".repeat(32) + "HTTP/1.1 200\r\n\r\n";
    let (got, _) = get(&many);
    assert_eq!(got.matches("103 \r\nA:b").count(), 32);
    let (got, seal) = get(&"HTTP/1.1 103\r\n\r\n".repeat(33));
    assert!(got.contains("HTTP/1.1 502 "));
    assert_eq!(
        seal.fault(),
        Some(ProtocolError::Malformed("number of 1xx responses"))
    );
}

#[test]
fn an_origin_that_cannot_be_understood_becomes_a_502() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(64 << 10));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(1001));
    for head in [
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1,\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        &long,
        &many,
    ] {
        let (got, seal) = get(&format!("{head}body"));
        assert_eq!(got.as_bytes(), failure_response(502, None), "{head:?}");
        assert!(seal.is_finished() && seal.fault().is_some());
    }
}

#[test]
fn an_upgrade_makes_the_stream_raw() {
    let new = || exchange_codecs(Framing::None, true, false).1;
    let input = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n\x81\x02hi anything";
    let (got, seal) = pass(new, input);
    assert!(got.starts_with(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\
        Connection: Upgrade\r\n\r\n"
    ));
    assert!(got.ends_with("hi anything") && !seal.is_finished() && seal.at_boundary());
    let (got, seal) = pass(new, b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nnomore");
    assert!(got.ends_with("Connection: close\r\n\r\nno") && seal.is_finished());
}

#[test]
fn a_broken_body_is_an_error_and_small_room_too() {
    let mut seal = ResponseSeal::new(false);
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    seal_all(&mut seal, head, 1000).unwrap();
    assert_eq!(
        seal_all(&mut seal, b"zz", 1000),
        Err(ProtocolError::Malformed("chunked body"))
    );
    let mut seal = ResponseSeal::new(false);
    let mut record = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let all = 0..record.len();
    assert_eq!(
        seal.seal(&mut record, all),
        Err(ProtocolError::NoRoom("the response"))
    );
    assert!(ResponseSeal::new(false).seal(&mut record, 5..99).is_err());
}

proptest! {
    /// Random bytes after a plausible start: no panic, and all chunk sizes agree.
    #[test]
    fn any_bytes_are_handled(
        start in proptest::sample::select(vec![
            "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 \r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
        ]),
        noise in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let input = [start.as_bytes(), &noise].concat();
        pass(|| ResponseSeal::new(false), &input);
        pass(|| exchange_codecs(Framing::None, true, false).1, &input);
    }
}
