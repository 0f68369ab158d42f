//! Access to the API.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::hostile_clients::open_idle_connections;
use adit_interop::shadowsocks::percent_encode;
use adit_interop::{ChildProcess, TEST_TIMEOUT, TempFolder};

use super::world::{BERT, KEY, METHOD, TOKEN, World, anna, ask, server_url};
use crate::setup::{bin, ended};

#[test]
fn strangers_and_pages_are_kept_out() {
    let world = World::start(&server_url(), &anna());
    let host = format!("Host: {}", world.api);
    let token = format!("Authorization: Bearer {TOKEN}");
    let json = "Content-Type: application/json";
    let bert = format!(r#"{{"username":"bert","uPSK":"{BERT}"}}"#);
    for (headers, body, status) in [
        (vec![host.as_str()], "", 401),
        (
            vec![
                &host,
                "Authorization: Bearer 0123456789abcdef0123456789abcdee",
            ],
            "",
            401,
        ),
        (vec![&token], "", 403),
        (vec!["Host: evil.example", &token], "", 403),
        (vec![&host, &token, "Origin: http://evil.example"], "", 403),
        (vec![&host, &token, "Origin: null"], "", 403),
        (vec![&host, &token], bert.as_str(), 415),
        (
            vec![&host, &token, "Content-Type: text/plain"],
            bert.as_str(),
            415,
        ),
        (vec![&host, json], bert.as_str(), 401),
    ] {
        let line = if body.is_empty() {
            "GET /users"
        } else {
            "POST /users"
        };
        let reply = world.raw(line, &headers, body);
        assert_eq!(reply.status, status, "{headers:?}: {}", reply.body);
    }
    let health = world.raw("GET /healthz", &[&host], "");
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    for header in [
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "default-src 'none'",
    ] {
        assert!(
            health.head.contains(header),
            "{header} is not in {}",
            health.head
        );
    }
    assert!(!health.head.contains("set-cookie") && !health.head.contains("access-control"));
    // Silent clients do not block others.
    let silent: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(world.api).unwrap())
        .collect();
    assert_eq!(world.get("/users").status, 200);
    drop(silent);
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01"[..],
        b"GET",
        b"GET / HTTP/9\r\n\r\n",
        &[b'a'; 40_000],
    ] {
        let mut stream = TcpStream::connect(world.api).unwrap();
        let _ = stream.write_all(garbage);
    }
    assert_eq!(world.get("/users").status, 200);
    world.adit.stop().unwrap();
}

/// A token that manages users cannot read keys, unless it has that scope; nor can clients of a socket
/// without tokens, which may be a web server for others.
#[test]
fn keys_are_for_tokens_that_may_see_them() {
    let world = World::start(&server_url(), &anna());
    for path in ["/users?reveal=1", "/users/anna?reveal=true"] {
        let refused = world.get(path);
        assert_eq!(refused.status, 403, "{}", refused.body);
        assert!(refused.body.contains("--admin-token"), "{}", refused.body);
    }
    for path in ["/users", "/users/anna"] {
        assert_eq!(world.get(path).status, 200);
        let shown = world.reveal(path);
        assert!(
            shown.status == 200 && shown.body.contains("uPSK"),
            "{}",
            shown.body
        );
    }
    world.adit.stop().unwrap();
}

#[test]
fn silent_connections_keep_nobody_away() {
    let world = World::start(&server_url(), &anna());
    let token = format!("Authorization: Bearer {TOKEN}");
    let host = format!("Host: {}", world.api);
    // A connection that has shown its token and sends another request later.
    let mut kept = TcpStream::connect(world.api).unwrap();
    kept.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut again = || {
        let request = format!("GET /stats HTTP/1.1\r\n{host}\r\n{token}\r\n\r\n");
        kept.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 4096];
        let len = kept.read(&mut answer).unwrap();
        assert!(answer[..len].starts_with(b"HTTP/1.1 200"), "{len} bytes");
    };
    again();
    let mut silent = open_idle_connections(world.api, 150);
    // The API ends it a minute after its last request, which these connections may take on a busy machine.
    again();
    silent.extend(open_idle_connections(world.api, 150));
    // A busy machine may have refused one.
    assert!(silent.len() > 250, "{} connections", silent.len());
    let start = Instant::now();
    assert_eq!(world.get("/users").status, 200);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    again();
    drop(silent);
    world.adit.stop().unwrap();
}

#[test]
fn a_unix_socket_needs_no_token() {
    let folder = TempFolder::new("admin").unwrap();
    let path = folder.path().join("api.sock");
    let mut command = Command::new(bin());
    let url = format!("ss://{METHOD}:{}@127.0.0.1:0", percent_encode(KEY));
    command
        .args(["run", &url, "--admin"])
        .arg(format!("unix:{}", path.display()));
    let mut process = ChildProcess::spawn(command).unwrap();
    process.wait_lines("api at ", 1, TEST_TIMEOUT).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let get = |path_asked: &str| {
        let stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        ask(stream, &format!("GET {path_asked}"), &["Host: adit"], "")
    };
    assert_eq!(get("/").status, 200);
    assert_eq!(get("/users?reveal=1").status, 403);
    // A server with one key has no users.
    assert_eq!(get("/users").status, 404);
    assert_eq!(get("/stats").status, 200);
    assert!(process.terminate().unwrap().success());
    assert!(!path.exists());
}

#[test]
fn a_door_that_is_not_safe_stays_shut() {
    let folder = TempFolder::new("admin").unwrap();
    let weak = format!(
        "@{}",
        folder.write_file("weak", "password").unwrap().display()
    );
    let good = format!("@{}", folder.write_file("good", TOKEN).unwrap().display());
    let server = "mixed://127.0.0.1:0";
    for (args, word) in [
        (vec!["--admin", "127.0.0.1:0"], "--admin-token"),
        (
            vec!["--admin", "127.0.0.1:0", "--admin-token", &weak],
            "128 bits",
        ),
        (
            vec!["--admin", "127.0.0.1:0", "--admin-token", TOKEN],
            "@FILE",
        ),
        (
            vec!["--admin", "127.0.0.1:0", "--admin-token", "@/nowhere"],
            "/nowhere",
        ),
        (
            vec!["--admin", "0.0.0.0:0", "--admin-token", &good],
            "is not a loopback address",
        ),
        (
            vec!["--admin", "127.0.0.1", "--admin-token", &good],
            "HOST:PORT",
        ),
    ] {
        let refused = ended(&[&["run", server][..], &args].concat());
        assert!(
            matches!(refused.code, Some(2..=4)),
            "{args:?}: {:?}\n{}",
            refused.code,
            refused.output
        );
        assert!(
            refused.output.contains(word),
            "{args:?}: {}",
            refused.output
        );
        assert!(!refused.output.contains("password"), "{}", refused.output);
    }
}
