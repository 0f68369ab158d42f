//! Access to the dashboard: other pages, other programs, and too much of everything.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::hostile_clients::open_idle_connections;
use adit_interop::{ChildProcess, TEST_TIMEOUT, TempFolder};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::browser::{Browser, Look};
use super::world::{TOKEN, World, echoes};
use crate::admin::world::{Reply, ask};
use crate::setup::{ALLOW, bin, ended};

/// Sends a request to a port.
fn send(at: SocketAddr, line: &str, headers: &[&str], body: &str) -> Reply {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let host = format!("Host: {at}");
    let mut all = headers.to_vec();
    if !headers.iter().any(|header| header.starts_with("Host:")) {
        all.push(&host);
    }
    ask(stream, line, &all, body)
}

/// Logs in with a token, and returns the headers of further requests.
fn log_in(at: SocketAddr, token: &str) -> (String, String) {
    let body = format!("{{\"token\": \"{token}\"}}");
    let json = "Content-Type: application/json";
    let reply = send(at, "POST /dashboard/login", &[json], &body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let cookie = reply.head.split_once("set-cookie: ").unwrap().1;
    let (cookie, attributes) = cookie.split_once(';').unwrap();
    let attributes = attributes.lines().next().unwrap();
    assert_eq!(attributes.trim(), "httponly; samesite=strict; path=/");
    let key = reply.body.split('"').nth(3).unwrap();
    (format!("Cookie: {cookie}"), format!("Adit-Key: {key}"))
}

#[test]
fn only_the_page_itself_uses_its_cookie() {
    let world = World::start_proxy();
    let api = world.api;
    let json = "Content-Type: application/json";
    for (body, status) in [
        (r#"{"token": "0123456789abcdef0123456789abcdee"}"#, 401),
        (r#"{"token": 1}"#, 400),
        ("", 415),
    ] {
        let headers: &[&str] = if body.is_empty() { &[] } else { &[json] };
        assert_eq!(
            send(api, "POST /dashboard/login", headers, body).status,
            status
        );
    }
    let (cookie, key) = log_in(api, TOKEN);
    let session = world.session();
    let list = world.wait_for("/sessions", |found| found["total"] == 1);
    let end = format!("DELETE /sessions/{}", list["sessions"][0]["id"]);
    let own = format!("Origin: http://{api}");
    let other_port = format!("Origin: http://127.0.0.1:{}", api.port() ^ 1);
    for (headers, status) in [
        (Vec::<&str>::new(), 401),
        // Programs at other ports receive the cookie, without the key.
        (vec![cookie.as_str(), &own], 401),
        (vec![&key, &own], 401),
        (vec![&cookie, &key], 403),
        (vec![&cookie, &key, "Origin: http://evil.example"], 403),
        (vec![&cookie, &key, &other_port], 403),
        (vec![&cookie, &key, "Sec-Fetch-Site: cross-site"], 403),
        (vec![&cookie, &key, "Sec-Fetch-Site: same-site"], 403),
        (vec![&cookie, &key, &own, "Host: evil.example"], 403),
        (vec![&cookie, "Adit-Key: 00", &own], 401),
    ] {
        let reply = send(api, &end, &headers, "");
        assert_eq!(reply.status, status, "{headers:?}: {}", reply.body);
    }
    assert_eq!(world.json("/sessions")["total"], 1);
    assert_eq!(send(api, "GET /overview", &[&cookie, &key], "").status, 200);
    let cross = [cookie.as_str(), &key, "Sec-Fetch-Site: cross-site"];
    assert_eq!(send(api, "GET /overview", &cross, "").status, 403);
    assert_eq!(send(api, &end, &[&cookie, &key, &own], "").status, 204);
    let out = [cookie.as_str(), &key, &own, json];
    assert_eq!(send(api, "POST /dashboard/logout", &out, "{}").status, 204);
    assert_eq!(send(api, "GET /overview", &[&cookie, &key], "").status, 401);
    drop(session);

    let page = send(api, "GET /dashboard", &[], "");
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(
            page.head.contains(header),
            "{header} is not in {}",
            page.head
        );
    }
    let root = send(api, "GET /", &["Accept: text/html,*/*;q=0.8"], "");
    assert!(
        root.status == 307 && root.head.contains("location: /dashboard"),
        "{}",
        root.head
    );
    world.adit.stop().unwrap();
}

/// A body of a gigabyte, ten thousand connections, and heads without an end: the proxy serves on.
#[test]
fn too_much_of_everything_does_not_disturb_the_proxy() {
    let world = World::start_proxy();
    let mut session = world.session();
    session.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    session.write_all(b"ECHO\n").unwrap();
    let mut large = TcpStream::connect(world.api).unwrap();
    large.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let head = format!(
        "POST /dashboard/login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        world.api,
        1 << 30
    );
    large.write_all(head.as_bytes()).unwrap();
    let block = vec![b' '; 1 << 20];
    let mut sent = 0;
    while sent < 1 << 10 && large.write_all(&block).is_ok() {
        sent += 1;
    }
    assert!(sent < 100, "{sent} MiB were read");
    let idle = open_idle_connections(world.api, 500);
    assert!(idle.len() > 400, "{} connections", idle.len());
    assert!(echoes(&mut session));
    let flood = open_ten_thousand(&world, || assert!(echoes(&mut session)));
    assert!(flood.len() > 9000, "{} connections", flood.len());
    assert!(echoes(&mut session));
    // Those who have a token have no more streams than others.
    let streams = flood
        .iter()
        .filter(|stream| has_answer(stream, "HTTP/1.1 200") && is_open(stream));
    let streams = streams.count();
    assert!((1..=64).contains(&streams), "{streams} event streams");
    // The newest connections are served.
    let start = Instant::now();
    let (cookie, key) = log_in(world.api, TOKEN);
    assert_eq!(
        send(world.api, "GET /overview", &[&cookie, &key], "").status,
        200
    );
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    for _ in 0..100 {
        log_in(world.api, TOKEN);
    }
    assert_eq!(world.json("/overview")["sessionsOpen"], 1);
    assert!(echoes(&mut session));
    drop((idle, flood));
    world.adit.stop().unwrap();
}

/// Opens ten thousand connections, each of which asks for the event stream, and returns those that were opened. It calls
/// `check` after each thousand.
fn open_ten_thousand(world: &World, mut check: impl FnMut()) -> Vec<TcpStream> {
    const COUNT: usize = 10_000;
    let mut limits = getrlimit(Resource::Nofile);
    limits.current = limits.maximum;
    setrlimit(Resource::Nofile, limits).unwrap();
    let request = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n",
        world.api
    );
    let begun = Instant::now();
    let mut streams = Vec::with_capacity(COUNT);
    for n in 1..=COUNT {
        if n % 1000 == 0 {
            check();
        }
        let opened = TcpStream::connect_timeout(&world.api, TEST_TIMEOUT);
        if let Ok(mut stream) = opened {
            // The API may have closed it already.
            let _ = stream.write_all(request.as_bytes());
            streams.push(stream);
        }
    }
    eprintln!("{} connections in {:?}", streams.len(), begun.elapsed());
    streams
}

/// Returns true if these are the first bytes that have arrived. It waits for nothing.
/// Returns true if the other side has not closed the connection. What has arrived is read.
fn is_open(mut stream: &TcpStream) -> bool {
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(why) => return why.kind() == ErrorKind::WouldBlock,
        }
    }
}

fn has_answer(stream: &TcpStream, expected: &str) -> bool {
    let mut head = [0; 64];
    stream.set_nonblocking(true).unwrap();
    let n = stream.peek(&mut head).unwrap_or(0);
    head[..n].starts_with(expected.as_bytes())
}

#[test]
fn a_socket_is_shown_through_a_port_with_a_token() {
    let folder = TempFolder::new("dashboard").unwrap();
    let socket = folder.path().join("api.sock");
    let socket = socket.to_str().unwrap();
    let missing = ended(&["dashboard", "--admin", socket]);
    assert_eq!(missing.code, Some(4), "{}", missing.output);
    assert!(
        missing.output.contains("cannot reach the management API"),
        "{}",
        missing.output
    );
    assert_eq!(ended(&["dashboard"]).code, Some(2));

    let mut adit = ChildProcess::spawn({
        let mut command = Command::new(bin());
        command.args([
            "run",
            &format!("mixed://127.0.0.1:0?{ALLOW}"),
            "--admin",
            socket,
        ]);
        command
    })
    .unwrap();
    adit.wait_lines("api at ", 1, TEST_TIMEOUT).unwrap();
    let mut forwarder = ChildProcess::spawn({
        let mut command = Command::new(bin());
        command.args(["dashboard", "--admin", socket]);
        command
    })
    .unwrap();
    let lines = forwarder
        .wait_lines("http://127.0.0.1:", 1, TEST_TIMEOUT)
        .unwrap();
    let url = lines[0].trim().to_owned();
    let (place, token) = url.split_once("/dashboard#token=").unwrap();
    let port: SocketAddr = place.strip_prefix("http://").unwrap().parse().unwrap();
    assert_eq!(send(port, "GET /overview", &[], "").status, 401);
    assert_eq!(
        send(port, "GET /overview", &["Host: evil.example"], "").status,
        403
    );
    let bearer = format!("Authorization: Bearer {token}");
    assert_eq!(send(port, "GET /overview", &[&bearer], "").status, 200);
    assert_eq!(send(port, "GET /nothing", &[&bearer], "").status, 404);
    let (cookie, key) = log_in(port, token);
    assert_eq!(
        send(port, "GET /sessions", &[&cookie, &key], "").status,
        200
    );
    assert_eq!(
        send(port, "DELETE /sessions/1", &[&cookie, &key], "").status,
        403
    );
    // The stream is passed on as it comes.
    let mut events = TcpStream::connect(port).unwrap();
    events.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let request = format!("GET /events HTTP/1.1\r\nHost: {port}\r\n{bearer}\r\n\r\n");
    events.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while text.matches("event: overview").count() < 3 {
        let n = events.read(&mut buffer).unwrap();
        assert!(n > 0, "{text}");
        text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
    }
    drop(events);

    let mut browser = Browser::start();
    browser.look(Look::WIDE);
    browser.open(&url);
    browser.wait_until("document.querySelector('#live.on')");
    let pid = browser.text("#process div:nth-child(2) dd");
    assert_eq!(pid, adit.id().to_string());
    assert!(forwarder.terminate().unwrap().success());
    browser.wait_until("!document.querySelector('#live.on')");
    assert!(adit.terminate().unwrap().success());
    assert!(fs::metadata(socket).is_err());
}
