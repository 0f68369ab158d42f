//! Heads that must be refused, and the law that other parsers read accepted heads in the same way.

use adit_http::Framing;
use adit_http::server::{Refusal, Request, RequestHandshake, failure_response};
use adit_wire::HandshakeProgress;
use adit_wire::codec_laws::run_handshake;
use proptest::prelude::*;

use crate::server::{Open, User, talk};
use crate::split::every_split;

/// Asserts a refusal with 400, the same in every split.
#[test]
fn malformed_heads() {
    let lines = [
        // Not a request line.
        "\r\n",
        "\r\nGET http://h/ HTTP/1.1\r\n\r\n",
        "GET\r\n\r\n",
        "GET http://h/\r\n\r\n",
        "GET  http://h/ HTTP/1.1\r\n\r\n",
        "GET http://h/  HTTP/1.1\r\n\r\n",
        "GET http://h/ HTTP/1.1 \r\n\r\n",
        " GET http://h/ HTTP/1.1\r\n\r\n",
        "GET\thttp://h/\tHTTP/1.1\r\n\r\n",
        "get http://h/ HTTP/1.1\r\n\r\n",
        "G\u{e9}T http://h/ HTTP/1.1\r\n\r\n",
        "G(T http://h/ HTTP/1.1\r\n\r\n",
        // Versions.
        "GET http://h/ HTTP/0.9\r\n\r\n",
        "GET http://h/ HTTP/1.2\r\n\r\n",
        "GET http://h/ HTTP/2.0\r\n\r\n",
        "GET http://h/ HTTP/11\r\n\r\n",
        "GET http://h/ http/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        // Targets.
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET h:80 HTTP/1.1\r\n\r\n",
        "GET //h/ HTTP/1.1\r\n\r\n",
        "GET https://h/ HTTP/1.1\r\n\r\n",
        "GET ftp://h/ HTTP/1.1\r\n\r\n",
        "GET ws://h/ HTTP/1.1\r\n\r\n",
        "GET http:/h/ HTTP/1.1\r\n\r\n",
        "GET http:///x HTTP/1.1\r\n\r\n",
        "GET http://:80/ HTTP/1.1\r\n\r\n",
        "GET http://u@h/ HTTP/1.1\r\n\r\n",
        "GET http://u:p@h/ HTTP/1.1\r\n\r\n",
        "GET http://h\\@evil/ HTTP/1.1\r\n\r\n",
        "GET http://h/#f HTTP/1.1\r\n\r\n",
        "GET http://h#f HTTP/1.1\r\n\r\n",
        "GET http://h/\u{e9} HTTP/1.1\r\n\r\n",
        "GET http://h:0/ HTTP/1.1\r\n\r\n",
        "GET http://h:99999/ HTTP/1.1\r\n\r\n",
        "GET http://h:80:80/ HTTP/1.1\r\n\r\n",
        "GET http://[::1/ HTTP/1.1\r\n\r\n",
        "GET http://%68/ HTTP/1.1\r\n\r\n",
        "CONNECT h HTTP/1.1\r\n\r\n",
        "CONNECT h: HTTP/1.1\r\n\r\n",
        "CONNECT h:443/ HTTP/1.1\r\n\r\n",
        "CONNECT u@h:443 HTTP/1.1\r\n\r\n",
        "CONNECT ::1:443 HTTP/1.1\r\n\r\n",
        "CONNECT http://h:443 HTTP/1.1\r\n\r\n",
        "CONNECT /h:443 HTTP/1.1\r\n\r\n",
        "CONNECT h:0 HTTP/1.1\r\n\r\n",
    ];
    for head in lines {
        let (why, sent) = talk(&Open, head.as_bytes()).unwrap_err();
        assert!(matches!(why, Refusal::Malformed(_)), "{head:?}: {why}");
        assert_eq!(sent, failure_response(400, None), "{head:?}");
    }
}

#[test]
fn malformed_fields() {
    let blocks = [
        // Line ends.
        "A: b\n",
        "A: b\rC: d\r\n",
        "A: b\r\r\n",
        "A: b\n\r\n",
        "A: b\r\n\n",
        "A: b\0\r\n",
        // obs-fold and blanks before the colon.
        "A: b\r\n c\r\n",
        "A: b\r\n\tc\r\n",
        " A: b\r\n",
        "A : b\r\n",
        "A\t: b\r\n",
        "Transfer-Encoding : chunked\r\n",
        // Names and values.
        ": b\r\n",
        "A\r\n",
        "A b: c\r\n",
        "A(b): c\r\n",
        "A\u{e9}: c\r\n",
        "A: \u{1}\r\n",
        "A: \u{7f}\r\n",
        "A: \u{b}b\r\n",
        // Two lengths, equal or not, in one line or two.
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\ncontent-length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 5;\r\n",
        "Content-Length:\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Content-Length: 18446744073709551617\r\n",
        // Both framings, in either order.
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding:\r\nContent-Length: 5\r\n",
        // `chunked` must be last, occur once, and be spelled exactly so.
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunkedx\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: \u{b}chunked\r\n",
        "Transfer-Encoding: foo, chunked\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: ,\r\n",
        // Others that move the boundary or the origin.
        "Connection: Content-Length\r\nContent-Length: 5\r\n",
        "Connection: close, transfer-encoding\r\nTransfer-Encoding: chunked\r\n",
        "Host: a\r\nHost: a\r\n",
        "Host: a\r\nhost: b\r\n",
    ];
    for block in blocks {
        for line in ["POST http://h/ HTTP/1.1", "CONNECT h:1 HTTP/1.1"] {
            let head = format!("{line}\r\n{block}\r\n");
            let got = talk(&Open, head.as_bytes());
            let (why, sent) = got.expect_err(&head);
            assert!(matches!(why, Refusal::Malformed(_)), "{head:?}: {why}");
            assert_eq!(sent, failure_response(400, None), "{head:?}");
        }
    }
    let old = b"POST http://h/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(
        talk(&Open, old).is_err(),
        "HTTP/1.0 has no transfer codings"
    );
    let options = "x,".repeat(65);
    let head = format!("GET http://h/ HTTP/1.1\r\nConnection: {options}\r\n\r\n");
    assert!(talk(&Open, head.as_bytes()).is_err(), "65 options");
}

/// Returns a head with a few bytes replaced, inserted or removed.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let heads = vec![
        "GET http://h.test/x?y HTTP/1.1\r\nHost: h.test\r\nAccept: */*\r\n\r\n",
        "POST http://h:80/ HTTP/1.1\r\nContent-Length: 12\r\nA:b\r\n\r\n",
        "PUT http://[::1]/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "CONNECT h.test:443 HTTP/1.0\r\nX: y\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nConnection: upgrade, x\r\nUpgrade: websocket\r\nX: 1\r\n\r\n",
    ];
    let nasty = b"\r\n \t\0:,/@#[]?*0123456789abAB%\\\x7f\x80\xff;=+-".to_vec();
    let moves = proptest::collection::vec(
        (
            any::<proptest::sample::Index>(),
            0..3,
            proptest::sample::select(nasty),
        ),
        0..4,
    );
    (proptest::sample::select(heads), moves).prop_map(|(head, moves)| {
        let mut head = head.as_bytes().to_vec();
        for (at, kind, byte) in moves {
            let at = at.index(head.len());
            match kind {
                0 => head[at] = byte,
                1 => head.insert(at, byte),
                _ => _ = head.remove(at),
            }
        }
        head
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Another parser reads all accepted heads in the same way; all forwarded heads are clean.
    #[test]
    fn accepts_no_more_than_another_parser(head in mutated()) {
        let Ok((HandshakeProgress::Done(request), _, left)) = run_handshake(&mut RequestHandshake::new(&Open), &head, &[64]) else {
            return Ok(());
        };
        let mut space = [httparse::EMPTY_HEADER; 130];
        let mut other = httparse::Request::new(&mut space);
        let end = other.parse(&head).unwrap();
        prop_assert_eq!(end, httparse::Status::Complete(head.len() - left.len()));
        let values = |name: &str| -> Vec<&[u8]> {
            other.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value).collect()
        };
        match request {
            Request::Connect { target, .. } => {
                prop_assert_eq!(other.method, Some("CONNECT"));
                prop_assert_eq!(target, other.path.unwrap().parse().unwrap());
            }
            Request::Forward { head: forwarded, body, target, upgrade, .. } => {
                let length = values("Content-Length");
                let coded = !values("Transfer-Encoding").is_empty();
                match body {
                    Framing::Length(n) => {
                        prop_assert!(!coded && length.len() == 1);
                        prop_assert_eq!(std::str::from_utf8(length[0]).unwrap().parse(), Ok(n));
                    }
                    Framing::Chunked => prop_assert!(coded && length.is_empty()),
                    _ => prop_assert!(!coded && length.is_empty()),
                }
                let mut space = [httparse::EMPTY_HEADER; 130];
                let mut clean = httparse::Request::new(&mut space);
                let end = clean.parse(&forwarded).unwrap();
                prop_assert_eq!(end, httparse::Status::Complete(forwarded.len()));
                prop_assert_eq!(clean.method, other.method);
                prop_assert!(clean.path.unwrap().starts_with(['/', '*']));
                let count = |name: &str| clean.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name)).count();
                prop_assert_eq!(count("Host"), 1);
                prop_assert_eq!(count("Connection"), 1);
                prop_assert_eq!(count("Upgrade"), usize::from(upgrade));
                prop_assert_eq!(count("Content-Length"), length.len());
                prop_assert_eq!(count("Transfer-Encoding"), values("Transfer-Encoding").len());
                let host = clean.headers[0];
                let host = std::str::from_utf8(host.value).unwrap();
                let with_port = if target.port == 80 && !host.ends_with(":80") { format!("{host}:80") } else { host.to_owned() };
                prop_assert_eq!(with_port.parse(), Ok(target));
            }
        }
    }
}

proptest! {
    /// Random bytes after a plausible start, and mutations: the same result in every split.
    #[test]
    fn any_bytes_are_handled(
        start in proptest::sample::select(vec!["", "GET ", "CONNECT a:1 HTTP/1.1\r\n", "GET http://h/ HTTP/1.1\r\nA:"]),
        noise in proptest::collection::vec(any::<u8>(), 0..60),
        head in mutated(),
    ) {
        for input in [[start.as_bytes(), &noise].concat(), head] {
            drop(every_split(|| RequestHandshake::new(&Open), &input));
            drop(every_split(|| RequestHandshake::new(&User), &input));
        }
    }
}
