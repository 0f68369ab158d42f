//! Durations, causes of failures, users, and formats of `/metrics`.

use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr, traffic};

use crate::admin::world::{ANNA, BERT, KEY, METHOD, World, anna, ask, number, server_url, session};
use crate::setup::{ALLOW, bin, start};

/// Returns the labels of a listener.
fn labels(route: &str, adit: &AditProcess) -> String {
    format!("route=\"{route}\",listen=\"{}\"", adit.addr())
}

#[test]
fn stages_are_timed_and_failures_are_counted_by_cause() {
    let world = World::start(&server_url(), &anna());
    let at = labels("main", &world.adit);
    let origin = OriginServer::start().unwrap();
    let client = world.client(METHOD, &format!("{KEY}:{ANNA}"));
    let before = world.get("/metrics").body;
    for name in ["handshake", "dial", "first_byte"] {
        let count = format!("adit_{name}_seconds_count{{{at}}}");
        assert_eq!(number(&before, &count), Some(0), "{before}");
    }
    drop(session(client.addr(), &Destination::Addr(origin.addr())));
    for name in ["handshake", "dial", "first_byte"] {
        world.number("/metrics", &format!("adit_{name}_seconds_count{{{at}}}"), 1);
        // A connection on the same machine takes less than ten seconds, and more than nothing.
        let text = world.get("/metrics").body;
        let bucket = |le: &str| {
            let name = format!("adit_{name}_seconds_bucket{{{at},le=\"{le}\"}}");
            number(&text, &name)
        };
        assert_eq!(
            (bucket("10.0"), bucket("+Inf")),
            (Some(1), Some(1)),
            "{text}"
        );
        let sum = format!("adit_{name}_seconds_sum{{{at}}} 0\n");
        assert!(!text.contains(&sum), "{text}");
    }
    // Nothing listens at this port.
    let nowhere = Destination::Addr(loopback_addr(free_port()));
    let _ = socks_client::connect_through(client.addr(), None, &nowhere);
    let refused = format!("adit_dial_failures_total{{{at},cause=\"connection-refused\"}}");
    world.number("/metrics", &refused, 1);
    // A key of no user.
    let stranger = world.client(METHOD, &format!("{KEY}:{BERT}"));
    let _ = socks_client::connect_through(stranger.addr(), None, &Destination::Addr(origin.addr()))
        .map(|mut stream| std::io::Write::write_all(&mut stream, b"x"));
    let unknown = format!("adit_rejects_total{{{at},cause=\"unauthentic\"}}");
    world.number("/metrics", &unknown, 1);
    let text = world.get("/metrics").body;
    let handshakes = format!("adit_handshake_seconds_count{{{at}}}");
    assert_eq!(number(&text, &handshakes), Some(2), "{text}");
    assert!(!text.contains(&origin.addr().to_string()), "{text}");
    let overview: serde_json::Value = serde_json::from_str(&world.get("/overview").body).unwrap();
    let rejects = serde_json::json!([{ "cause": "unauthentic", "count": 1 }]);
    assert_eq!(overview["rejects"], rejects);
    client.stop().unwrap();
    stranger.stop().unwrap();
    world.adit.stop().unwrap();
}

#[test]
fn openmetrics_is_sent_on_request() {
    let world = World::start(&server_url(), &anna());
    let host = format!("Host: {}", world.api);
    let token = format!("Authorization: Bearer {}", crate::admin::world::TOKEN);
    let get = |accept: &str| {
        let accept = format!("Accept: {accept}");
        world.raw("GET /metrics", &[&host, &token, &accept], "")
    };
    let open = get("application/openmetrics-text; version=1.0.0, text/plain; q=0.5");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(open.head.contains(kind), "{}", open.head);
    assert!(open.body.ends_with("\n# EOF\n"), "{}", open.body);
    for line in [
        "# TYPE adit_bytes counter\n# UNIT adit_bytes bytes\nadit_bytes_total{",
        "# TYPE adit_node info\nadit_node_info{",
        "# TYPE adit_dial_seconds histogram\n# UNIT adit_dial_seconds seconds\nadit_dial_seconds_bucket{",
    ] {
        assert!(open.body.contains(line), "{line}\n{}", open.body);
    }
    let plain = get("*/*");
    let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
    assert!(plain.head.contains(kind), "{}", plain.head);
    assert!(!plain.body.contains("EOF") && !plain.body.contains("UNIT"));
    assert!(plain.body.contains("# TYPE adit_bytes_total counter\n"));
    world.adit.stop().unwrap();
}

/// Starts a server of SOCKS with two users, with this setting of metrics and these options.
fn start_with_logins(folder: &TempFolder, metrics_users: bool, options: &[&str]) -> AditProcess {
    let socket = folder.path().join("admin.sock");
    let file = format!(
        "[admin]\nlisten = {socket:?}\nmetrics_users = {metrics_users}\n\n[route.main]\n\
         listen = \"mixed://127.0.0.1:0?users=@users&{ALLOW}\"\n"
    );
    folder.write_file("users", "ann:one\nbo\"b:two\n").unwrap();
    let file = folder.write_file("adit.toml", file).unwrap();
    let args = [&["run", "-c", file.to_str().unwrap()], options].concat();
    AditProcess::start_with(&bin(), &args, 1).unwrap()
}

fn metrics_of(folder: &TempFolder) -> String {
    let stream = UnixStream::connect(folder.path().join("admin.sock")).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    ask(stream, "GET /metrics", &["Host: localhost"], "").body
}

/// Returns the metrics once this one has a value: a failure is counted after the client has its answer.
fn metrics_with(folder: &TempFolder, name: &str, value: u64) -> String {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let text = metrics_of(folder);
        if number(&text, name) == Some(value) {
            return text;
        }
        assert!(Instant::now() < deadline, "{name}\n{text}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn users_are_in_the_metrics_if_they_are_opted_in() {
    let folder = TempFolder::new("metrics-users").unwrap();
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    for (in_file, options) in [(false, &[][..]), (true, &[]), (false, &["--metrics-users"])] {
        let metrics_users = in_file || !options.is_empty();
        let adit = start_with_logins(&folder, in_file, options);
        let at = labels("main", &adit);
        // Proxies escape the names of users in logs, and so here.
        for login in [("ann", "one"), ("bo\"b", "two")] {
            let stream = socks_client::connect_through(adit.addr(), Some(login), &to).unwrap();
            traffic::download(stream, 20_000).unwrap();
        }
        let wrong = socks_client::connect_through(adit.addr(), Some(("ann", "two")), &to);
        wrong.unwrap_err();
        let refused = format!("adit_rejects_total{{{at},cause=\"login-refused\"}}");
        let text = metrics_with(&folder, &refused, 1);
        for name in ["ann", r#"bo\\\"b"#] {
            let user = format!("{{{at},user=\"{name}\",direction=\"down\"}}");
            let bytes = number(&text, &format!("adit_user_bytes_total{user}"));
            assert_eq!(bytes > Some(19_999), metrics_users, "{name}\n{text}");
            let user = format!("{{{at},user=\"{name}\",kind=\"tcp\"}}");
            let sessions = number(&text, &format!("adit_user_sessions_total{user}"));
            assert_eq!(sessions, metrics_users.then_some(1), "{name}\n{text}");
        }
        assert_eq!(text.contains("user=\""), metrics_users, "{text}");
        adit.stop().unwrap();
    }
}

#[test]
fn refused_users_and_rejected_datagrams_are_counted_by_cause() {
    let folder = TempFolder::new("metrics-causes").unwrap();
    let socket = folder.path().join("admin.sock");
    let file = format!(
        "[admin]\nlisten = {socket:?}\n\n[route.main]\nlisten = \"mixed://ann:one@127.0.0.1:0?{ALLOW}\"\n\n\
         [route.keyed]\nlisten = \"ss://{METHOD}:{KEY}@127.0.0.1:0\"\n"
    );
    let file = folder.write_file("adit.toml", file).unwrap();
    let adit = AditProcess::start_with(&bin(), &["run", "-c", file.to_str().unwrap()], 2).unwrap();
    let [proxy, keyed] = *adit.addrs() else {
        panic!("two listeners");
    };
    let headers = ["Host: localhost", "Content-Type: application/json"];
    let stream = UnixStream::connect(&socket).unwrap();
    let limits = ask(
        stream,
        "PUT /accounts/ann/limits",
        &headers,
        "{\"sessions\": 1}",
    );
    assert_eq!(limits.status, 200, "{}", limits.body);
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let login = Some(("ann", "one"));
    let _open = socks_client::connect_through(proxy, login, &to).unwrap();
    socks_client::connect_through(proxy, login, &to).unwrap_err();
    let at = |route: &str, listen, cause: &str| {
        format!("{{route=\"{route}\",listen=\"{listen}\",cause=\"{cause}\"}}")
    };
    let refused = at("main", proxy, "too-many-sessions");
    let text = metrics_with(&folder, &format!("adit_rejects_total{refused}"), 1);
    assert!(
        text.contains("# HELP adit_datagram_rejects_total "),
        "{text}"
    );
    let noise = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for packet in [&[7; 100][..], &[7; 100], &[7; 3]] {
        noise.send_to(packet, keyed).unwrap();
    }
    for (cause, count) in [("unauthentic", 2), ("malformed", 1)] {
        let rejected = at("keyed", keyed, cause);
        metrics_with(
            &folder,
            &format!("adit_datagram_rejects_total{rejected}"),
            count,
        );
    }
    adit.stop().unwrap();
}

#[test]
fn counts_of_a_listener_survive_a_reload() {
    let folder = TempFolder::new("metrics-reload").unwrap();
    let socket = folder.path().join("admin.sock");
    let write = |idle: &str| {
        let text = format!(
            "[admin]\nlisten = {socket:?}\n\n[route.main]\nlisten = \"mixed://127.0.0.1:0?{ALLOW}&{idle}\"\n"
        );
        folder.write_file("adit.toml", text).unwrap()
    };
    let file = write("idle=5m");
    let adit = AditProcess::start_with(&bin(), &["run", "-c", file.to_str().unwrap()], 1).unwrap();
    let origin = OriginServer::start().unwrap();
    drop(session(adit.addr(), &Destination::Addr(origin.addr())));
    let count = format!("adit_handshake_seconds_count{{{}}}", labels("main", &adit));
    assert_eq!(number(&metrics_of(&folder), &count), Some(1));
    write("idle=6m");
    let stream = UnixStream::connect(&socket).unwrap();
    let headers = [
        "Host: localhost",
        "Content-Type: application/json",
        "Content-Length: 0",
    ];
    assert_eq!(ask(stream, "POST /v1/reload", &headers, "").status, 200);
    drop(session(adit.addr(), &Destination::Addr(origin.addr())));
    assert_eq!(number(&metrics_of(&folder), &count), Some(2));
    adit.stop().unwrap();
}

#[test]
fn full_listeners_count_refused_connections() {
    let token = TempFolder::new("metrics-full").unwrap();
    let file = token
        .write_file("token", crate::admin::world::TOKEN)
        .unwrap();
    let token = format!("@{}", file.display());
    let url = format!("mixed://127.0.0.1:0?{ALLOW}&max_connections=1");
    let mut adit = start(&[
        "run",
        &url,
        "--admin",
        "127.0.0.1:0",
        "--admin-token",
        &token,
    ]);
    let line = adit
        .process()
        .wait_lines("api at ", 1, TEST_TIMEOUT)
        .unwrap();
    let api: std::net::SocketAddr = line[0].rsplit(' ').next().unwrap().parse().unwrap();
    let quiet = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = Destination::Addr(quiet.local_addr().unwrap());
    let _open = socks_client::connect_through(adit.addr(), None, &to).unwrap();
    socks_client::connect_through(adit.addr(), None, &to).unwrap_err();
    let bearer = format!("Authorization: Bearer {}", crate::admin::world::TOKEN);
    let stream = std::net::TcpStream::connect(api).unwrap();
    let text = ask(
        stream,
        "GET /metrics",
        &[&format!("Host: {api}"), &bearer],
        "",
    )
    .body;
    let listen = adit.addr();
    let line = text.lines().find(|line| {
        line.starts_with("adit_rejects_total{")
            && line.contains(&format!("listen=\"{listen}\""))
            && line.contains("cause=\"exhausted\"")
    });
    assert!(line.is_some_and(|line| line.ends_with(" 1")), "{text}");
    adit.stop().unwrap();
}
