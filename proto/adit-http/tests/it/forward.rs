//! The requests that an origin receives.

use adit_http::Framing;
use adit_http::server::{Request, RequestHandshake};
use adit_wire::HandshakeProgress;

use crate::server::{Open, User, talk};
use crate::split::every_split;

struct Forwarded {
    target: String,
    head: String,
    body: Framing,
    upgrade: bool,
    head_request: bool,
}

fn forward(input: &str) -> Forwarded {
    match talk(&Open, input.as_bytes()).unwrap().0 {
        HandshakeProgress::Done(Request::Forward {
            target,
            head,
            body,
            upgrade,
            head_request,
            keep: _,
            user: None,
        }) => Forwarded {
            target: target.to_string(),
            head: String::from_utf8(head).unwrap(),
            body,
            upgrade,
            head_request,
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_curl_sends() {
    let input = "GET http://example.test/x?y HTTP/1.1\r\nHost: example.test\r\n\
        Proxy-Authorization: Basic dTpw\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\
        Proxy-Connection: Keep-Alive\r\n\r\n";
    let want = "GET /x?y HTTP/1.1\r\nHost: example.test\r\nUser-Agent: curl/7.88.1\r\n\
        Accept: */*\r\nConnection: close\r\n\r\n";
    let (step, sent, _) = talk(&User, input.as_bytes()).unwrap();
    assert!(sent.is_empty());
    let HandshakeProgress::Done(request) = step else {
        panic!("complete")
    };
    assert_eq!(
        request,
        Request::Forward {
            target: "example.test:80".parse().unwrap(),
            user: Some(b"u".to_vec()),
            head: want.into(),
            body: Framing::None,
            upgrade: false,
            head_request: false,
            keep: true,
        }
    );
    let with_via =
        every_split(|| RequestHandshake::new(&User).with_via(), input.as_bytes()).unwrap();
    let HandshakeProgress::Done(Request::Forward { head, .. }) = with_via.0 else {
        panic!("complete")
    };
    let head = String::from_utf8(head).unwrap();
    assert!(head.contains("\r\nVia: 1.1 adit\r\n"));
}

#[test]
fn targets_become_origin_form() {
    for (line, target, want) in [
        (
            "GET http://h HTTP/1.1",
            "h:80",
            "GET / HTTP/1.1\r\nHost: h\r\n",
        ),
        (
            "GET HTTP://h:/ HTTP/1.1",
            "h:80",
            "GET / HTTP/1.1\r\nHost: h\r\n",
        ),
        (
            "GET http://h?a=/b HTTP/1.1",
            "h:80",
            "GET /?a=/b HTTP/1.1\r\nHost: h\r\n",
        ),
        (
            "GET http://h:80/a HTTP/1.0",
            "h:80",
            "GET /a HTTP/1.0\r\nHost: h:80\r\n",
        ),
        (
            "GET http://[::1]:81/a HTTP/1.1",
            "[::1]:81",
            "GET /a HTTP/1.1\r\nHost: [::1]:81\r\n",
        ),
        (
            "OPTIONS http://h HTTP/1.1",
            "h:80",
            "OPTIONS * HTTP/1.1\r\nHost: h\r\n",
        ),
        (
            "OPTIONS http://h/ HTTP/1.1",
            "h:80",
            "OPTIONS / HTTP/1.1\r\nHost: h\r\n",
        ),
        (
            "GET http://h/http://u@i:9/%00 HTTP/1.1",
            "h:80",
            "GET /http://u@i:9/%00 HTTP/1.1\r\nHost: h\r\n",
        ),
    ] {
        let got = forward(&format!("{line}\r\nHost: liar.test\r\n\r\n"));
        assert_eq!(got.target, target, "{line}");
        assert_eq!(
            got.head,
            format!("{want}Connection: close\r\n\r\n"),
            "{line}"
        );
    }
}

#[test]
fn fields_of_this_hop_are_removed() {
    let got = forward(
        "GET http://h/ HTTP/1.1\r\nConnection: close, X-Mine\r\nconnection: x-more\r\n\
        X-Mine: 1\r\nX-More: 2\r\nX-Kept: 3\r\nKeep-Alive: 5\r\nTE: trailers\r\n\
        Proxy-Connection: x\r\nProxy-Authenticate: x\r\nProxy-Authorization: Basic dTpw\r\n\
        Upgrade: h2c\r\nTrailer: X\r\nExpect: 100-continue\r\nCookie:a=b; c \r\n\r\n",
    );
    assert_eq!(
        got.head,
        "GET / HTTP/1.1\r\nHost: h\r\nX-Kept: 3\r\nExpect: 100-continue\r\nCookie: a=b; c\r\n\
        Connection: close\r\n\r\n"
    );
    assert!(!got.upgrade);
}

#[test]
fn bodies_keep_their_framing() {
    let post = |fields: &str| forward(&format!("POST http://h/ HTTP/1.1\r\n{fields}\r\n"));
    assert_eq!(post("").body, Framing::None);
    assert_eq!(post("Content-Length: 0\r\n").body, Framing::Length(0));
    let most = post("Content-Length: 9223372036854775807\r\n");
    assert_eq!(most.body, Framing::Length(i64::MAX as u64));
    let chunked = post("Transfer-Encoding: gzip\r\nTransfer-Encoding: CHUNKED\r\nTrailer: X\r\n");
    assert_eq!(chunked.body, Framing::Chunked);
    assert!(
        chunked
            .head
            .contains("\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: CHUNKED\r\n")
    );
    assert!(chunked.head.contains("\r\nTrailer: X\r\n"));
    assert!(!chunked.head_request);
    assert!(forward("HEAD http://h/ HTTP/1.1\r\n\r\n").head_request);
}

#[test]
fn websocket_alone_may_upgrade() {
    let get = |fields: &str| forward(&format!("GET http://h/ HTTP/1.1\r\n{fields}\r\n"));
    let got =
        get("Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n");
    assert!(got.upgrade);
    assert_eq!(
        got.head,
        "GET / HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Key: k\r\n\
        Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    for fields in [
        "Connection: Upgrade\r\nUpgrade: h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n",
        "Connection: Upgrade\r\n",
        "Upgrade: websocket\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n",
    ] {
        let got = get(fields);
        assert!(!got.upgrade && !got.head.contains("Upgrade"), "{fields}");
    }
}
