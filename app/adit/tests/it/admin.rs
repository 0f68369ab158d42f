//! The management API of `adit run --admin`, and what it does to a server that runs.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::origin::Origin;
use adit_interop::shadowsocks::encode;
use adit_interop::socks::{self, Dest};
use adit_interop::{Adit, Folder, PATIENCE, Process, traffic};

use crate::setup::{bin, ended, start};

const METHOD: &str = "2022-blake3-aes-128-gcm";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
const ANNA: &str = "EBESExQVFhcYGRobHB0eHw==";
const BERT: &str = "ICEiIyQlJicoKSorLC0uLw==";
const CLEO: &str = "MDEyMzQ1Njc4OTo7PD0+Pw==";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// An answer.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

/// Asks over any stream, with these header lines.
fn ask(mut stream: impl Read + Write, line: &str, headers: &[&str], body: &str) -> Reply {
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    for header in headers {
        text.push_str(&format!("{header}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    text.push_str(body);
    // A refusal may come, and the end with it, before all is written.
    let _ = stream.write_all(text.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{line}: {answer:?}"));
    Reply {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

/// A server with users in a file, its API on a port.
struct World {
    adit: Adit,
    api: SocketAddr,
    folder: Folder,
}

impl World {
    fn start(url: &str, users: &str) -> Self {
        let folder = Folder::new("admin").unwrap();
        let file = folder.write("users.json", users).unwrap();
        folder.write("token", format!("{TOKEN}\n")).unwrap();
        Self::again(url, folder, &file)
    }

    fn again(url: &str, folder: Folder, file: &Path) -> Self {
        let url = format!(
            "{url}?allow_private=127.0.0.0/8&users=@{}#main",
            file.display()
        );
        let token = format!("@{}", folder.path().join("token").display());
        let args = [
            "run",
            &url,
            "--admin",
            "127.0.0.1:0",
            "--admin-token",
            &token,
            "--public-host",
            "127.0.0.1",
        ];
        let mut adit = start(&args);
        let line = adit.process().wait_lines("api at ", 1, PATIENCE).unwrap();
        let api = line[0].rsplit(' ').next().unwrap().parse().unwrap();
        Self { adit, api, folder }
    }

    fn raw(&self, line: &str, headers: &[&str], body: &str) -> Reply {
        let stream = TcpStream::connect(self.api).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        ask(stream, line, headers, body)
    }

    fn say(&self, line: &str, body: &str) -> Reply {
        let token = format!("Authorization: Bearer {TOKEN}");
        let host = format!("Host: {}", self.api);
        self.raw(
            line,
            &[&host, &token, "Content-Type: application/json"],
            body,
        )
    }

    fn get(&self, path: &str) -> Reply {
        self.say(&format!("GET {path}"), "")
    }

    fn users_file(&self) -> String {
        fs::read_to_string(self.folder.path().join("users.json")).unwrap()
    }

    /// A client of one of the users.
    fn client(&self, method: &str, key: &str) -> Adit {
        let user = format!("{method}:{}", encode(key));
        let hop = format!("ss://{user}@{}", self.adit.addr());
        start(&["run", "mixed://127.0.0.1:0", &hop])
    }

    /// The number behind a name in the answer to a path, once it is at least this.
    fn number(&self, path: &str, name: &str, least: u64) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let body = self.get(path).body;
            let now = number(&body, name).unwrap_or_else(|| panic!("{name} in {body}"));
            if now >= least || Instant::now() > deadline {
                assert!(
                    now >= least,
                    "{path}: {name} is {now}, not {least}:\n{body}"
                );
                return now;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The first number behind `"name":` or `name `.
fn number(text: &str, name: &str) -> Option<u64> {
    let quoted = format!("\"{name}\":");
    let rest = match text.split_once(&quoted) {
        Some((_, rest)) => rest,
        None => text.split_once(&format!("{name} "))?.1,
    };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn server_url() -> String {
    format!("ss://{METHOD}:{}@127.0.0.1:0", encode(KEY))
}

fn anna() -> String {
    format!(r#"{{"anna": "{ANNA}"}}"#)
}

/// An open session that echoes.
fn session(proxy: SocketAddr, to: &Dest) -> TcpStream {
    let mut stream = socks::connect(proxy, None, to).unwrap();
    stream.write_all(b"ECHO\n").unwrap();
    assert!(lives(&mut stream));
    stream
}

fn lives(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    stream.write_all(b"x").is_ok() && stream.read_exact(&mut byte).is_ok() && byte == *b"x"
}

#[test]
fn the_life_of_a_user() {
    let world = World::start(&server_url(), &anna());
    let origin = Origin::start().unwrap();
    let to = Dest::Addr(origin.addr());
    let info = world.get("/");
    assert_eq!(info.status, 200);
    assert!(
        info.body.contains(r#""apiVersion":"v1""#) && info.body.contains("adit/"),
        "{}",
        info.body
    );
    for base in ["", "/v1", "/servers/main/v1"] {
        let users = world.get(&format!("{base}/users"));
        assert_eq!(users.body, r#"{"users":[{"username":"anna"}]}"#);
        let users = world.get(&format!("{base}/users?reveal=1"));
        assert_eq!(
            users.body,
            format!(r#"{{"users":[{{"username":"anna","uPSK":"{ANNA}"}}]}}"#)
        );
    }
    let servers = world.get("/servers").body;
    assert!(
        servers.contains(r#""name":"main""#) && servers.contains(r#""users":1"#),
        "{servers}"
    );

    // Comes, and is served.
    let bert = format!(r#"{{"username":"bert","uPSK":"{BERT}"}}"#);
    let added = world.say("POST /users", &bert);
    assert_eq!(
        (added.status, added.body.contains(BERT)),
        (201, false),
        "{}",
        added.body
    );
    assert_eq!(world.say("POST /users", &bert).status, 400);
    let client = world.client(METHOD, &format!("{KEY}:{BERT}"));
    let mut open = session(client.addr(), &to);
    traffic::down(socks::connect(client.addr(), None, &to).unwrap(), 70_000).unwrap();
    world.number("/users/bert", "downlinkBytes", 70_000);
    world.number("/stats", "downlinkBytes", 70_000);
    let stats = world.get("/stats").body;
    assert!(
        stats.contains(r#""username":"bert""#) && !stats.contains("anna"),
        "{stats}"
    );
    assert_eq!(number(&stats, "tcpSessions"), Some(2), "{stats}");
    let cleared = world.get("/stats?clear=true").body;
    assert!(number(&cleared, "downlinkBytes").unwrap() >= 70_000);
    assert!(number(&world.get("/stats").body, "downlinkBytes").unwrap() < 70_000);

    // Another key: the session ends, the new key is served.
    assert!(lives(&mut open));
    let patched = world.say("PATCH /users/bert", &format!(r#"{{"uPSK":"{CLEO}"}}"#));
    assert_eq!((patched.status, patched.body.as_str()), (204, ""));
    assert!(!lives(&mut open));
    let other = world.client(METHOD, &format!("{KEY}:{CLEO}"));
    let mut open = session(other.addr(), &to);
    assert_eq!(
        world.users_file(),
        format!("{{\n  \"anna\": \"{ANNA}\",\n  \"bert\": \"{CLEO}\"\n}}")
    );
    let mode = fs::metadata(world.folder.path().join("users.json"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    // Goes.
    assert_eq!(world.say("DELETE /users/bert", "").status, 204);
    assert!(!lives(&mut open));
    assert_eq!(world.say("DELETE /users/bert", "").status, 404);
    assert_eq!(world.get("/users/bert").status, 404);
    assert!(!world.users_file().contains("bert"));
    client.stop().unwrap();
    other.stop().unwrap();

    // A restart knows what was changed.
    assert_eq!(world.say("POST /users", &bert).status, 201);
    let World { adit, folder, .. } = world;
    adit.stop().unwrap();
    let file = folder.path().join("users.json");
    let world = World::again(&server_url(), folder, &file);
    assert!(world.get("/users").body.contains("bert"));
    world.adit.stop().unwrap();
}

#[test]
fn what_is_wrong_changes_nothing() {
    let world = World::start(&server_url(), &anna());
    let before = world.users_file();
    for (line, body, status) in [
        ("POST /users", "{", 400),
        ("POST /users", r#"{"username":"x"}"#, 400),
        ("POST /users", r#"{"username":"x","uPSK":"short"}"#, 400),
        (
            "POST /users",
            r#"{"username":"","uPSK":"QEFCQ0RFRkdISUpLTE1OTw=="}"#,
            400,
        ),
        (
            "POST /users",
            r#"{"username":"a\nb","uPSK":"QEFCQ0RFRkdISUpLTE1OTw=="}"#,
            400,
        ),
        // The key of another user, and the server's own.
        (
            "POST /users",
            r#"{"username":"x","uPSK":"EBESExQVFhcYGRobHB0eHw=="}"#,
            400,
        ),
        (
            "POST /users",
            r#"{"username":"x","uPSK":"AAECAwQFBgcICQoLDA0ODw=="}"#,
            400,
        ),
        (
            "PATCH /users/nobody",
            r#"{"uPSK":"QEFCQ0RFRkdISUpLTE1OTw=="}"#,
            404,
        ),
        ("PATCH /users/anna", "[]", 400),
        ("DELETE /users/anna", "", 409),
        ("DELETE /users", "", 405),
        ("PUT /users", "{}", 405),
        ("POST /stats", "{}", 405),
        ("GET /nothing", "", 404),
        ("GET /servers/other/v1/users", "", 404),
        ("GET /users/%ff", "", 404),
    ] {
        let reply = world.say(line, body);
        assert_eq!(reply.status, status, "{line} {body}: {}", reply.body);
        assert!(
            reply.body.starts_with(r#"{"error":""#),
            "{line}: {}",
            reply.body
        );
        assert!(
            !reply.body.contains("EBES") && !reply.body.contains("AAEC"),
            "{}",
            reply.body
        );
    }
    let long = format!(r#"{{"username":"{}"}}"#, "x".repeat(70_000));
    assert_eq!(world.say("POST /users", &long).status, 413);
    assert_eq!(world.users_file(), before);
    assert_eq!(
        world.get("/users").body,
        r#"{"users":[{"username":"anna"}]}"#
    );
    // A file that somebody is writing is not overwritten.
    world.folder.write("users.json", "{ half").unwrap();
    let bert = format!(r#"{{"username":"bert","uPSK":"{BERT}"}}"#);
    assert_eq!(world.say("POST /users", &bert).status, 409);
    assert_eq!(world.users_file(), "{ half");
    world.adit.stop().unwrap();
}

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
    // Those who say nothing do not keep others away.
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

#[test]
fn a_unix_socket_needs_no_token() {
    let folder = Folder::new("admin").unwrap();
    let path = folder.path().join("api.sock");
    let mut command = Command::new(bin());
    let url = format!("ss://{METHOD}:{}@127.0.0.1:0", encode(KEY));
    command
        .args(["run", &url, "--admin"])
        .arg(format!("unix:{}", path.display()));
    let mut process = Process::spawn(command).unwrap();
    process.wait_lines("api at ", 1, PATIENCE).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let get = |path_asked: &str| {
        let stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        ask(stream, &format!("GET {path_asked}"), &["Host: adit"], "")
    };
    assert_eq!(get("/").status, 200);
    // One key, no users.
    assert_eq!(get("/users").status, 404);
    assert_eq!(get("/stats").status, 200);
    assert!(process.terminate().unwrap().success());
    assert!(!path.exists());
}

#[test]
fn metrics_count_and_tell_nobody() {
    let world = World::start(&server_url(), &anna());
    let origin = Origin::start().unwrap();
    let client = world.client(METHOD, &format!("{KEY}:{ANNA}"));
    let to = Dest::Addr(origin.addr());
    let open = session(client.addr(), &to);
    traffic::down(socks::connect(client.addr(), None, &to).unwrap(), 50_000).unwrap();
    let at = format!("route=\"main\",listen=\"{}\"", world.adit.addr());
    world.number(
        "/metrics",
        &format!("adit_bytes_total{{{at},direction=\"down\"}}"),
        50_000,
    );
    let text = world.get("/metrics").body;
    for (name, value) in [
        (format!("adit_sessions_total{{{at}}}"), 2),
        (format!("adit_users{{{at}}}"), 1),
    ] {
        assert_eq!(number(&text, &name), Some(value), "{name}:\n{text}");
    }
    assert!(
        number(&text, &format!("adit_sessions_open{{{at}}}")).unwrap() >= 1,
        "{text}"
    );
    assert!(
        number(&text, "\nadit_connections_open").unwrap() >= 1,
        "{text}"
    );
    assert!(
        !text.contains(&origin.addr().to_string()) && !text.contains("anna"),
        "{text}"
    );
    // What a panel clears goes on here.
    world.get("/stats?clear=true");
    world.number(
        "/metrics",
        &format!("adit_bytes_total{{{at},direction=\"down\"}}"),
        50_000,
    );
    drop(open);
    client.stop().unwrap();
    world.adit.stop().unwrap();
}

#[test]
fn passwords_of_the_aead_edition_are_kept_too() {
    let world = World::start(
        "ss://aes-256-gcm@127.0.0.1:0",
        r#"{"anna": "a secret: word"}"#,
    );
    let origin = Origin::start().unwrap();
    let bert = r#"{"username":"bert","uPSK":"another \"one\""}"#;
    assert_eq!(world.say("POST /users", bert).status, 201);
    assert_eq!(
        world.users_file(),
        "{\n  \"anna\": \"a secret: word\",\n  \"bert\": \"another \\\"one\\\"\"\n}"
    );
    let client = world.client("aes-256-gcm", "another \"one\"");
    let to = Dest::Addr(origin.addr());
    traffic::one_byte(socks::connect(client.addr(), None, &to).unwrap()).unwrap();
    client.stop().unwrap();
    world.adit.stop().unwrap();
}

#[test]
fn a_user_fetches_what_he_needs_and_nobody_else_does() {
    let users = format!(r#"{{"anna": "{ANNA}", "bert": "{BERT}"}}"#);
    let world = World::start(&server_url(), &users);
    let host = format!("Host: {}", world.api);
    let path_of = |name: &str| {
        let body = world.get(&format!("/users/{name}?reveal=1")).body;
        let (_, rest) = body.split_once(r#""subscription":""#).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let (anna, bert) = (path_of("anna"), path_of("bert"));
    assert!(!world.get("/users/anna").body.contains("sip008"));
    // No token: the path is the secret.
    let document = world.raw(&format!("GET {anna}"), &[&host], "");
    assert_eq!(document.status, 200);
    assert!(
        document
            .head
            .contains("content-type: application/json; charset=utf-8")
    );
    assert!(document.body.contains(&format!("{KEY}:{ANNA}")) && !document.body.contains(BERT));
    for path in [
        anna.replace("anna", "bert"),
        anna.replace("anna", "nobody"),
        format!("{anna}0"),
        anna.trim_end_matches(|c: char| c.is_ascii_hexdigit())
            .to_owned(),
        "/sip008/anna".to_owned(),
    ] {
        let refused = world.raw(&format!("GET {path}"), &[&host], "");
        assert!(
            matches!(refused.status, 401 | 404),
            "{path}: {}",
            refused.status
        );
    }
    // And what is fetched works.
    let origin = Origin::start().unwrap();
    let state = world.folder.path().display().to_string();
    let address = format!("http://{}{bert}", world.api);
    let client = start(&[
        "client",
        "--subscribe",
        &address,
        "-l",
        "mixed://127.0.0.1:0",
        "--state",
        &state,
    ]);
    let to = Dest::Addr(origin.addr());
    traffic::one_byte(socks::connect(client.addr(), None, &to).unwrap()).unwrap();
    client.stop().unwrap();
    // Another key, another path.
    assert_eq!(
        world
            .say("PATCH /users/anna", &format!(r#"{{"uPSK":"{CLEO}"}}"#))
            .status,
        204
    );
    assert_eq!(world.raw(&format!("GET {anna}"), &[&host], "").status, 404);
    world.adit.stop().unwrap();
}

#[test]
fn a_door_that_is_not_safe_stays_shut() {
    let folder = Folder::new("admin").unwrap();
    let weak = format!("@{}", folder.write("weak", "password").unwrap().display());
    let good = format!("@{}", folder.write("good", TOKEN).unwrap().display());
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
            "not of this machine",
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
