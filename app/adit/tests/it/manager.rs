//! `adit manager` with a client of ss-manager that is written from the protocol.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination, UdpAssociation, UdpFlow};
use adit_interop::traffic;
use adit_interop::{AditProcess, ChildProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};

use crate::setup::{bin, ended, start};

const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
const USER_KEY: &str = "EBESExQVFhcYGRobHB0eHw==";
const ALLOW: [&str; 2] = ["--allow-private", "127.0.0.0/8"];

/// A client with either type of socket.
enum Client {
    Udp(UdpSocket),
    Unix(UnixDatagram, PathBuf),
}

impl Client {
    fn udp(at: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(at).unwrap();
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self::Udp(socket)
    }

    fn unix(at: &Path, own: &Path) -> Self {
        let socket = UnixDatagram::bind(own).unwrap();
        socket.connect(at).unwrap();
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self::Unix(socket, own.to_owned())
    }

    fn say(&self, bytes: &[u8]) {
        match self {
            Self::Udp(socket) => socket.send(bytes).unwrap(),
            Self::Unix(socket, _) => socket.send(bytes).unwrap(),
        };
    }

    fn hear(&self) -> String {
        let mut buf = vec![0; 65_536];
        let n = match self {
            Self::Udp(socket) => socket.recv(&mut buf).unwrap(),
            Self::Unix(socket, _) => socket.recv(&mut buf).unwrap(),
        };
        buf.truncate(n);
        String::from_utf8(buf).unwrap()
    }

    fn ask(&self, text: &str) -> String {
        self.say(text.as_bytes());
        self.hear()
    }

    /// Returns the traffic of a port.
    fn carried(&self, port: u16) -> Option<u64> {
        let answer = self.ask("ping");
        let json = answer.strip_prefix("stat: {")?.strip_suffix('}')?;
        let mut pairs = json.split(',').filter_map(|pair| pair.split_once(':'));
        let (_, bytes) = pairs.find(|(name, _)| *name == format!("\"{port}\""))?;
        bytes.parse().ok()
    }

    /// Waits until a port has carried more than `bytes`, which are counted once they have passed.
    fn carried_more(&self, port: u16, bytes: u64) -> u64 {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let now = self.carried(port).unwrap();
            if now > bytes {
                return now;
            }
            assert!(
                Instant::now() < deadline,
                "port {port}: {now}, not more than {bytes}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// Starts a manager on a free UDP port.
fn over_udp(more: &[&str]) -> (AditProcess, Client) {
    let args = [
        "manager",
        "--manager-address",
        "127.0.0.1:0",
        "-s",
        "127.0.0.1",
    ];
    let adit = start(&[&args[..], &ALLOW, more].concat());
    let client = Client::udp(adit.addr());
    (adit, client)
}

fn add(port: u16, method: &str, password: &str, more: &str) -> String {
    format!(
        r#"add: {{"server_port": {port}, "method": "{method}", "password": "{password}"{more}}}"#
    )
}

/// Starts a SOCKS proxy through the server on `port`.
fn proxy(port: u16, method: &str, password: &str) -> AditProcess {
    let user = [method, password]
        .map(adit_interop::shadowsocks::percent_encode)
        .join(":");
    start(&[
        "run",
        "mixed://127.0.0.1:0",
        &format!("ss://{user}@127.0.0.1:{port}"),
    ])
}

/// The life cycle of a server, through either socket.
fn life(client: &Client) {
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let (one, two) = (free_port(), free_port());
    assert_eq!(client.ask("ping"), "stat: {}");
    assert_eq!(client.ask("list"), "[]");
    // A password that breaks any naive construction of a URL.
    let hard = r"p@ss/w:rd?#%41&=@ü $HOME";
    assert_eq!(client.ask(&add(one, "aes-256-gcm", hard, "")), "ok");
    let with_udp = r#", "mode": "tcp_and_udp", "fast_open": true, "no_delay": true"#;
    assert_eq!(
        client.ask(&add(two, "2022-blake3-aes-128-gcm", KEY, with_udp)),
        "ok"
    );
    let list = client.ask("list");
    for part in [
        format!(r#""server_port":"{one}""#),
        format!(r#""password":"{hard}""#),
        r#""method":"2022-blake3-aes-128-gcm""#.to_owned(),
    ] {
        assert!(list.contains(&part), "{part} is not in {list}");
    }

    let front = proxy(one, "aes-256-gcm", hard);
    let mut session = socks_client::connect_through(front.addr(), None, &to).unwrap();
    traffic::download(
        socks_client::connect_through(front.addr(), None, &to).unwrap(),
        100_000,
    )
    .unwrap();
    let first = client.carried_more(one, 99_999);
    traffic::upload(
        socks_client::connect_through(front.addr(), None, &to).unwrap(),
        50_000,
    )
    .unwrap();
    let second = client.carried_more(one, first + 49_999);
    assert_eq!(client.carried(two), Some(0));

    let other = proxy(two, "2022-blake3-aes-128-gcm", KEY);
    let association = UdpAssociation::open(other.addr(), None).unwrap();
    traffic::check_datagrams(&UdpFlow::new(&association, to.clone(), origin.addr())).unwrap();
    client.carried_more(two, 0);

    // The same command changes nothing; with another password it is another server, and the traffic of
    // the port is added to the old one's.
    let io = std::io::Write::write_all(&mut session, b"ECHO\nx");
    io.unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(&mut session, &mut byte).unwrap();
    assert_eq!(client.ask(&add(one, "aes-256-gcm", hard, "")), "ok");
    std::io::Write::write_all(&mut session, b"y").unwrap();
    std::io::Read::read_exact(&mut session, &mut byte).unwrap();
    assert_eq!(&byte, b"y");
    let text = format!(
        r#"add: {{"server_port":"{one}","method":"chacha20-ietf-poly1305","password":"new"}}"#
    );
    assert_eq!(client.ask(&text), "ok");
    assert!(std::io::Read::read(&mut session, &mut byte).map_or(true, |n| n == 0));
    let replaced = proxy(one, "chacha20-ietf-poly1305", "new");
    traffic::check_one_byte(socks_client::connect_through(replaced.addr(), None, &to).unwrap())
        .unwrap();
    client.carried_more(one, second);

    // After removal, open sessions end and nothing listens.
    let mut session = socks_client::connect_through(replaced.addr(), None, &to).unwrap();
    std::io::Write::write_all(&mut session, b"ECHO\nx").unwrap();
    std::io::Read::read_exact(&mut session, &mut byte).unwrap();
    assert_eq!(
        client.ask(&format!(r#"remove: {{"server_port":"{one}"}}"#)),
        "ok"
    );
    assert!(std::io::Read::read(&mut session, &mut byte).map_or(true, |n| n == 0));
    assert!(std::net::TcpStream::connect(loopback_addr(one)).is_err());
    assert_eq!(
        client.ask(&format!(r#"remove: {{"server_port":{one}}}"#)),
        "err"
    );
    assert_eq!(client.carried(one), None);
    assert!(client.carried(two).is_some());
    for adit in [front, other, replaced] {
        adit.stop().unwrap();
    }
}

#[test]
fn a_life_over_udp() {
    let (adit, client) = over_udp(&[]);
    life(&client);
    adit.stop().unwrap();
}

#[test]
fn a_life_over_a_unix_socket() {
    let folder = TempFolder::new("manager").unwrap();
    let path = folder.path().join("manager.sock");
    let mut command = Command::new(bin());
    command.args(["manager", "-s", "127.0.0.1", "--manager-address"]);
    command.arg(&path).args(ALLOW);
    let mut process = ChildProcess::spawn(command).unwrap();
    process
        .wait_lines("manager listening on ", 1, TEST_TIMEOUT)
        .unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let client = Client::unix(&path, &folder.path().join("own.sock"));
    life(&client);
    // A client without a path is served, but gets no answer.
    let nameless = UnixDatagram::unbound().unwrap();
    nameless.send_to(b"ping", &path).unwrap();
    assert!(client.ask("ping").starts_with("stat: {"));
    assert!(process.terminate().unwrap().success());
    assert!(!path.exists());
}

#[test]
fn mistakes_are_answered_and_noise_is_not() {
    let (adit, client) = over_udp(&[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    assert_eq!(
        client.ask(&add(port, "aes-128-gcm", "x", "")),
        "port is not available"
    );
    let port = free_port();
    let secret = "hunter2-never-told";
    for (text, answer) in [
        ("add: {".to_owned(), "err"),
        (
            "add: {\"server_port\": 0, \"password\": \"x\"}".to_owned(),
            "err",
        ),
        ("remove: {\"server_port\": \"x\"}".to_owned(), "err"),
        ("reboot".to_owned(), "err"),
        (add(port, "rot13", secret, ""), "unknown method `rot13`"),
        (
            add(port, "aes-128-gcm", secret, r#","mode":"x""#),
            "unknown mode",
        ),
        (add(port, "2022-blake3-aes-128-gcm", secret, ""), ""),
        (add(port, "aes-128-gcm", "", ""), ""),
        (
            add(
                port,
                "aes-128-gcm",
                secret,
                r#","plugin":"/bin/sh","plugin_opts":"-c;id""#,
            ),
            "the plugin is not allowed",
        ),
        (
            add(
                port,
                "aes-128-gcm",
                secret,
                r#","users":[{"name":"a","password":"b"}]"#,
            ),
            "users need 2022-blake3-aes-128-gcm",
        ),
    ] {
        let heard = client.ask(&text);
        assert!(
            heard.starts_with(answer) && heard != "ok",
            "{text}: {heard}"
        );
        assert!(!heard.contains(secret) && !heard.contains('\n'), "{heard}");
    }
    // Messages that are not requests get no answer: the next answer is that of the last request.
    for noise in [
        &b"\xff\xfe\x00"[..],
        b"",
        b"stat: {\"8001\": 7}",
        &[b'x'; 65_300],
    ] {
        client.say(noise);
    }
    assert_eq!(client.ask("ping"), "stat: {}");
    // A file of this machine is not a password.
    assert_eq!(
        client.ask(&add(port, "aes-128-gcm", "@/etc/passwd", "")),
        "ok"
    );
    assert!(client.ask("list").contains("@/etc/passwd"));
    adit.stop().unwrap();
}

#[test]
fn users_have_keys_of_their_own() {
    let (adit, client) = over_udp(&[]);
    let origin = OriginServer::start().unwrap();
    let port = free_port();
    let method = "2022-blake3-aes-128-gcm";
    let users = format!(r#","users":[{{"name":"anna","password":"{USER_KEY}"}}]"#);
    assert_eq!(client.ask(&add(port, method, KEY, &users)), "ok");
    let front = proxy(port, method, &format!("{KEY}:{USER_KEY}"));
    let to = Destination::Addr(origin.addr());
    traffic::download(
        socks_client::connect_through(front.addr(), None, &to).unwrap(),
        10_000,
    )
    .unwrap();
    client.carried_more(port, 9999);
    front.stop().unwrap();
    adit.stop().unwrap();
}

#[test]
fn long_answers_come_in_pieces_that_are_json_each() {
    let (adit, client) = over_udp(&["--mode", "udp_only"]);
    let password = "x".repeat(300);
    let mut ports = Vec::new();
    while ports.len() < 12 {
        let port = free_port();
        if !ports.contains(&port) {
            assert_eq!(client.ask(&add(port, "aes-128-gcm", &password, "")), "ok");
            ports.push(port);
        }
    }
    client.say(b"list");
    let mut seen = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(10);
    while seen.len() < ports.len() && Instant::now() < deadline {
        let piece = client.hear();
        assert!(piece.len() <= 1400 && piece.starts_with("[{") && piece.ends_with("}]"));
        let items = piece.trim_matches(['[', ']']).split("},{");
        seen.extend(items.map(str::to_owned));
    }
    for port in ports {
        let wanted = format!(r#""server_port":"{port}""#);
        assert_eq!(seen.iter().filter(|item| item.contains(&wanted)).count(), 1);
    }
    adit.stop().unwrap();
}

#[test]
fn a_plugin_that_is_allowed_runs() {
    let (adit, client) = over_udp(&["--allow-plugin", "obfs-server"]);
    let origin = OriginServer::start().unwrap();
    let port = free_port();
    let plugin = r#","plugin":"obfs-server","plugin_opts":"obfs=http""#;
    assert_eq!(client.ask(&add(port, "aes-128-gcm", "x", plugin)), "ok");
    let hop = format!("ss://aes-128-gcm:x@127.0.0.1:{port}/?plugin=obfs-local%3Bobfs%3Dhttp");
    let front = start(&["run", "mixed://127.0.0.1:0", &hop]);
    let to = Destination::Addr(origin.addr());
    traffic::download(
        socks_client::connect_through(front.addr(), None, &to).unwrap(),
        10_000,
    )
    .unwrap();
    assert_eq!(
        client.ask(&format!(r#"remove: {{"server_port":{port}}}"#)),
        "ok"
    );
    assert!(std::net::TcpStream::connect(loopback_addr(port)).is_err());
    front.stop().unwrap();
    adit.stop().unwrap();
}

#[test]
fn an_address_that_others_reach_needs_consent() {
    let port = free_port();
    for at in [format!("0.0.0.0:{port}"), format!("[::]:{port}")] {
        let refused = ended(&["manager", "--manager-address", &at]);
        assert_eq!(refused.code, Some(3), "{}", refused.output);
        assert!(
            refused.output.contains("--manager-insecure"),
            "{}",
            refused.output
        );
    }
    let at = format!("0.0.0.0:{port}");
    let adit = start(&["manager", "--manager-address", &at, "--manager-insecure"]);
    assert_eq!(Client::udp(loopback_addr(port)).ask("ping"), "stat: {}");
    adit.stop().unwrap();
    let wrong = ended(&["manager", "--manager-address", "127.0.0.1"]);
    assert!(wrong.output.contains("HOST:PORT"), "{}", wrong.output);
}

/// `protocol` and `obfs` make it a ShadowsocksR server, with a warning about its security.
#[test]
fn a_server_of_shadowsocksr() {
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let (mut adit, client) = over_udp(&[]);
    let port = free_port();
    let more = r#", "protocol": "auth_aes128_md5", "protocol_param": "64#7:user,8:other",
        "obfs": "http_simple", "obfs_param": "a.example", "mode": "tcp_and_udp""#;
    assert_eq!(client.ask(&add(port, "aes-128-ctr", "p@s#", more)), "ok");
    assert!(client.ask("list").contains(r#""method":"aes-128-ctr""#));
    let log = adit.process().output();
    let warning = format!("the server on port {port}: protocol `auth_aes128_md5` relies on old");
    assert!(log.contains(&warning), "{log}");
    // The same command changes nothing.
    assert_eq!(client.ask(&add(port, "aes-128-ctr", "p@s#", more)), "ok");
    assert_eq!(adit.process().output().matches(&warning).count(), 1);
    let hop = |user: &str| {
        format!(
            "ssr://aes-128-ctr:p%40s%23@127.0.0.1:{port}?protocol=auth_aes128_md5\
             &protocol_param={user}&obfs=http_simple&obfs_param=a.example"
        )
    };
    let front = start(&["run", "mixed://127.0.0.1:0", &hop("8:other")]);
    traffic::download(
        socks_client::connect_through(front.addr(), None, &to).unwrap(),
        100_000,
    )
    .unwrap();
    client.carried_more(port, 99_999);
    let association = UdpAssociation::open(front.addr(), None).unwrap();
    traffic::check_datagrams(&UdpFlow::new(&association, to.clone(), origin.addr())).unwrap();
    front.stop().unwrap();
    // Unsupported settings are refused instead of replaced.
    for (method, more) in [
        ("aes-128-ctr", r#", "protocol": "auth_none""#),
        ("aes-128-gcm", r#", "protocol": "auth_sha1_v4""#),
        ("aes-128-ctr", r#", "obfs": "tls1.3""#),
        (
            "aes-128-ctr",
            r#", "obfs": "http_simple", "users": [{"name": "a", "password": "b"}]"#,
        ),
        (
            "aes-128-ctr",
            r#", "protocol": "auth_chain_a", "protocol_param": "@/etc/passwd""#,
        ),
    ] {
        let port = free_port();
        let answer = client.ask(&add(port, method, "x", more));
        assert_ne!(answer, "ok", "{more}");
        assert!(std::net::TcpStream::connect(loopback_addr(port)).is_err());
    }
    adit.stop().unwrap();
}
