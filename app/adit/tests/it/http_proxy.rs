//! HTTP proxying as browsers use it: long and unusual responses, many requests on one connection,
//! missing logins here and at the next proxy.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::process::Command;
use std::thread;
use std::time::Duration;

use adit_interop::external_tools;
use adit_interop::http_server::HttpServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::shadowsocks::{BLAKE3_AES_128, MethodKey};
use adit_interop::traffic::connect_directly;
use adit_interop::{TEST_TIMEOUT, TempFolder, free_port, loopback_addr};

use crate::setup::{ALLOW, Proxy, Way, start};

/// Starts an origin that answers every request with these bytes, and closes only if the answer says so.
fn origin(answer: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || -> std::io::Result<()> {
                let mut lines = BufReader::new(stream.try_clone()?);
                let mut line = String::new();
                while lines.read_line(&mut line)? > 2 {
                    line.clear();
                }
                stream.write_all(answer.as_bytes())?;
                if !answer.contains("Content-Length") {
                    return stream.shutdown(Shutdown::Write);
                }
                // It keeps its connection open, even if the request does not ask for that.
                lines.read_line(&mut line).map(drop)
            });
        }
    });
    addr
}

/// Returns the head of a response, and its body.
fn answer(reader: &mut impl BufRead) -> (Vec<String>, String) {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = head.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let length = name
            .eq_ignore_ascii_case("content-length")
            .then_some(value)?;
        length.trim().parse::<usize>().ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn curl(proxy: SocketAddr, args: &[&str]) -> external_tools::ToolOutput {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--max-time", "20", "--noproxy", ""]);
    command.args(["-x", &format!("http://{proxy}")]).args(args);
    external_tools::run_to_end(command, Duration::from_secs(30)).unwrap()
}

/// Responses that origins send and browsers accept.
#[test]
fn long_and_odd_responses_pass() {
    let proxy = Proxy::mixed(Way::Alone);
    let fields: String = (0..150).map(|n| format!("X-{n}: {n}\r\n")).collect();
    let long = format!("Set-Cookie: {}\r\n", "c".repeat(3000)).repeat(12);
    for fields in [
        format!("{fields}Content-Length: 5\r\n"),
        format!("{long}Content-Length: 5\r\n"),
        "X-Folded: one\r\n\ttwo\r\n   three\r\nContent-Length: 5\r\n".to_owned(),
        "Content-Length: 5\r\nX: y\r\nContent-Length: 5\r\n".to_owned(),
        "Content-Length: 5, 5\r\n".to_owned(),
    ] {
        let at = origin(format!("HTTP/1.1 200 OK\r\n{fields}\r\nhello"));
        let got = curl(proxy.addr(), &["-i", &format!("http://{at}/")]);
        let got = got.expect_success().unwrap().replace('\r', "");
        assert!(
            got.starts_with("HTTP/1.1 200 OK") && got.ends_with("\n\nhello"),
            "{fields}\n{got}"
        );
        assert_eq!(got.matches("Content-Length: 5\n").count(), 1, "{got}");
        assert_eq!(
            got.contains("one  \ttwo"),
            fields.contains("one\r\n\ttwo"),
            "{got}"
        );
    }
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "A : b\r\nContent-Length: 5\r\n",
    ] {
        let at = origin(format!("HTTP/1.1 200 OK\r\n{fields}\r\nhello"));
        let got = curl(proxy.addr(), &["-i", &format!("http://{at}/")]);
        assert!(got.output.starts_with("HTTP/1.1 502"), "{}", got.output);
    }
    proxy.stop();
}

/// Requests to several origins on one connection, one of which keeps its connection open; the last
/// one is a CONNECT.
#[test]
fn a_connection_carries_one_request_after_the_other() {
    for way in [Way::Alone, Way::Tunnel] {
        let web = HttpServer::start(&[("/page", "text/plain", b"of the web")]).unwrap();
        let other = origin("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned());
        let proxy = Proxy::mixed(way);
        let mut stream = connect_directly(proxy.addr()).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let at = format!("127.0.0.1:{}", web.port());
        for _ in 0..3 {
            write!(
                stream,
                "GET http://{at}/page HTTP/1.1\r\nHost: {at}\r\n\r\n"
            )
            .unwrap();
            let (head, body) = answer(&mut reader);
            assert_eq!((&head[0][..], &body[..]), ("HTTP/1.1 200 OK", "of the web"));
            assert!(
                head.iter().any(|line| line == "Connection: keep-alive"),
                "{head:?}"
            );
            write!(
                stream,
                "GET http://{other}/ HTTP/1.1\r\nHost: {other}\r\n\r\n"
            )
            .unwrap();
            assert_eq!(answer(&mut reader).1, "hello");
        }
        // A body that must be read to its end, immediately followed by the next request.
        let body = "x".repeat(200_000);
        write!(
            stream,
            "PUT http://{at}/up HTTP/1.1\r\nHost: {at}\r\nContent-Length: {}\r\n\r\n{body}\
             GET http://{at}/page HTTP/1.1\r\nHost: {at}\r\n\r\n",
            body.len()
        )
        .unwrap();
        assert!(answer(&mut reader).1.starts_with("200000 "));
        assert_eq!(answer(&mut reader).1, "of the web");
        write!(stream, "CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
        assert!(answer(&mut reader).0[0].contains("200"));
        write!(stream, "GET /page HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
        assert_eq!(answer(&mut reader).1, "of the web");
        drop((stream, reader));
        proxy.stop();
    }
}

/// A response that ends with the close, or a client that closes, ends the connection.
#[test]
fn a_connection_that_cannot_stay_is_closed() {
    let proxy = Proxy::mixed(Way::Alone);
    let at = origin("HTTP/1.1 200 OK\r\n\r\nuntil the end".to_owned());
    let sized = origin("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_owned());
    for request in [
        format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"),
        format!("GET http://{sized}/ HTTP/1.1\r\nHost: {sized}\r\nConnection: close\r\n\r\n"),
        format!("GET http://{sized}/ HTTP/1.0\r\n\r\n"),
    ] {
        let mut stream = connect_directly(proxy.addr()).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).unwrap();
        assert!(got.contains("Connection: close\r\n"), "{request}\n{got}");
    }
    proxy.stop();
}

/// curl requests two pages over one connection, as browsers do for the parts of a page.
#[test]
fn curl_uses_its_connection_again() {
    let web = HttpServer::start(&[("/page", "text/plain", b"hello")]).unwrap();
    let proxy = Proxy::mixed(Way::Tunnel);
    let tap = RecordingRelay::start(proxy.addr()).unwrap();
    let url = format!("http://127.0.0.1:{}/page", web.port());
    let got = curl(tap.addr(), &[&url, &url, &url])
        .expect_success()
        .unwrap();
    assert_eq!(got, "hellohellohello");
    assert_eq!(tap.requests().len(), 1, "connections");
    proxy.stop();
}

/// The client does not know the password of the next proxy: no 403 and no prompt, but the reason.
#[test]
fn a_password_that_the_next_proxy_refuses_is_named() {
    let next = start(&["run", &format!("http://u:right@127.0.0.1:0?{ALLOW}")]);
    let web = HttpServer::start(&[("/page", "text/plain", b"hello")]).unwrap();
    let url = format!("http://127.0.0.1:{}/page", web.port());
    for login in ["", "u:wrong@"] {
        let hop = format!("http://{login}{}", next.addr());
        let front = start(&["run", "mixed://127.0.0.1:0", &hop]);
        let got = curl(front.addr(), &["-i", &url]).output;
        assert!(
            got.starts_with("HTTP/1.1 502") && got.contains("password (HTTP status 407)"),
            "{got}"
        );
        let got = curl(
            front.addr(),
            &["-p", "-o", "/dev/null", "-w", "%{http_connect}", &url],
        );
        assert!(got.output.contains("502"), "{}", got.output);
        front.stop().unwrap();
    }
    assert_eq!(web.requests(), []);
    next.stop().unwrap();
}

/// Returns the status and the body of the answer to a request of curl.
fn status_and_body(proxy: SocketAddr, args: &[&str]) -> (String, String) {
    let args = [args, &["-w", "\n%{http_code}"]].concat();
    let done = curl(proxy, &args).expect_success().unwrap();
    let (body, status) = done.rsplit_once('\n').unwrap();
    (status.to_owned(), body.to_owned())
}

/// A server with a different key closes the connection, or is silent: an error page, not an empty reply.
#[test]
fn a_server_that_does_not_accept_the_key_is_explained() {
    let other = MethodKey {
        key: "AAECAwQFBgcICQoLDA0ODw==",
        ..BLAKE3_AES_128
    };
    let folder = TempFolder::new("explained").unwrap();
    let big = folder.write_file("big", vec![7; 5_000_000]).unwrap();
    let upload = format!("@{}", big.display());
    let url = format!("http://127.0.0.1:{}/page", free_port());
    let requests: [&[&str]; 3] = [&[&url], &["-I", &url], &["--data-binary", &upload, &url]];
    for (reaction, status, words) in [
        ("reset", "502", "closed the connection without an answer"),
        ("close", "502", "closed the connection without an answer"),
        ("drain", "504", "did not answer in time"),
    ] {
        for (at, request) in requests.iter().enumerate() {
            let (more, server) = match at {
                0 => ("?verbose_errors=true", "ss://"),
                _ => ("", "the server behind this proxy"),
            };
            // A new server for each: further requests would fail before a connection.
            let at = loopback_addr(free_port());
            let back = start(&["run", &format!("{}?reject={reaction}", other.url(at))]);
            let listen = format!("mixed://127.0.0.1:0{more}");
            let front = start(&["run", "-vv", &listen, &BLAKE3_AES_128.url(at)]);
            let (code, body) = status_and_body(front.addr(), request);
            assert_eq!(code, status, "{reaction} {request:?}: {body}");
            // A response to HEAD has no body.
            let begin = format!("adit: {server}");
            let is_page = body.starts_with(&begin) && body.contains(words);
            assert!(is_page || request.contains(&"-I"), "{body}");
            front.stop().unwrap();
            back.stop().unwrap();
        }
    }
    let ssr = |password: &str, at: SocketAddr| {
        format!("ssr://aes-256-cfb:{password}@{at}?protocol=auth_aes128_md5")
    };
    let at = loopback_addr(free_port());
    let back = start(&["run", &format!("{}&reject=reset", ssr("right", at))]);
    let front = start(&["run", "mixed://127.0.0.1:0", &ssr("wrong", at)]);
    let (code, body) = status_and_body(front.addr(), &[&url]);
    assert!(
        code == "502" && body.contains("closed the connection"),
        "{code} {body}"
    );
    front.stop().unwrap();
    back.stop().unwrap();
}

/// An origin that closes its connection without an answer, here and behind a server with the right key.
#[test]
fn an_origin_without_an_answer_is_explained() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    for way in [Way::Alone, Way::Tunnel] {
        let proxy = Proxy::mixed(way);
        let url = format!("http://{at}/");
        // curl keeps the connection for its second request.
        let (code, body) = status_and_body(proxy.addr(), &["-w", "\n%{http_code} ", &url, &url]);
        let server = match way {
            Way::Alone => "the destination",
            // A server need not say that it has accepted the client before its origin answers.
            Way::Tunnel => "the server behind this proxy",
        };
        let page = format!("adit: {server} closed the connection without an answer.");
        assert_eq!(body.matches(&page).count(), 2, "{way:?}: {code} {body}");
        // Part of an answer is passed on.
        let part = origin("HTTP/1.1 200 OK\r\nX: y".to_owned());
        let got = curl(proxy.addr(), &["-i", &format!("http://{part}/")]);
        assert!(!got.output.contains("adit:"), "{}", got.output);
        proxy.stop();
    }
}
