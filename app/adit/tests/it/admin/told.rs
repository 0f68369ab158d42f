//! Output of the API: metrics and subscriptions.

use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, traffic};

use super::world::{
    ANNA, BERT, CLEO, KEY, METHOD, TOKEN, World, anna, ask, number, server_url, session,
};
use crate::setup::start;

#[test]
fn metrics_count_and_tell_nobody() {
    let world = World::start(&server_url(), &anna());
    let origin = OriginServer::start().unwrap();
    let client = world.client(METHOD, &format!("{KEY}:{ANNA}"));
    let to = Destination::Addr(origin.addr());
    let open = session(client.addr(), &to);
    traffic::download(
        socks_client::connect_through(client.addr(), None, &to).unwrap(),
        50_000,
    )
    .unwrap();
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
    for direction in ["receive", "send"] {
        let buffer = format!("adit_udp_buffer_bytes{{{at},direction=\"{direction}\"}}");
        // The default size of a socket buffer: 208 KiB on Linux, never less than a page.
        assert!(number(&text, &buffer) > Some(4096), "{text}");
    }
    assert!(
        number(&text, "\nadit_connections_open").unwrap() >= 1,
        "{text}"
    );
    assert!(
        !text.contains(&origin.addr().to_string()) && !text.contains("anna"),
        "{text}"
    );
    // Counters that a panel clears continue here.
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
fn metrics_have_the_counters_of_kcp() {
    let folder = TempFolder::new("metrics").unwrap();
    let token = folder.write_file("token", format!("{TOKEN}\n")).unwrap();
    let token = format!("@{}", token.display());
    let origin = OriginServer::start().unwrap();
    let keys = "key=a%20word&mode=fast3&data=10&parity=3";
    let url = format!("mixed+kcp://127.0.0.1:0?allow_private=127.0.0.0/8&{keys}");
    let admin = ["--admin", "127.0.0.1:0", "--admin-token", &token];
    let mut server = start(&[&["run", &url], &admin[..]].concat());
    let hop = format!("socks5+kcp://{}?{keys}", server.addr());
    let entry = format!("tcp://127.0.0.1:0/{}", origin.addr());
    let mut client = start(&[&["run", &entry, &hop], &admin[..]].concat());
    let get = |of: &mut AditProcess| {
        let line = of.process().wait_lines("api at ", 1, TEST_TIMEOUT).unwrap();
        let api = line[0].rsplit(' ').next().unwrap();
        let stream = TcpStream::connect(api).unwrap();
        let bearer = format!("Authorization: Bearer {TOKEN}");
        ask(
            stream,
            "GET /metrics",
            &[&format!("Host: {api}"), &bearer],
            "",
        )
        .body
    };
    let before = get(&mut server);
    assert_eq!(
        number(&before, "\nadit_kcp_in_pkts_total"),
        Some(0),
        "{before}"
    );
    traffic::download(traffic::connect_directly(client.addr()).unwrap(), 100_000).unwrap();
    // The last acknowledgements may still be in flight.
    sleep(Duration::from_millis(200));
    for (end, opened, least) in [
        (&mut server, "passive", "bytes_sent"),
        (&mut client, "active", "bytes_received"),
    ] {
        let text = get(end);
        let count = |key: &str| number(&text, &format!("\nadit_kcp_{key}"));
        assert_eq!(count("curr_estab"), Some(1), "{text}");
        assert_eq!(count(&format!("{opened}_opens_total")), Some(1), "{text}");
        assert!(count(&format!("{least}_total")) > Some(50_000), "{text}");
        assert!(count("in_pkts_total") > Some(0), "{text}");
        assert!(
            text.contains("# TYPE adit_kcp_curr_estab gauge\n"),
            "{text}"
        );
        assert!(text.contains("# TYPE adit_kcp_fec_recovered_total counter\n"));
        assert!(!text.contains(&origin.addr().to_string()), "{text}");
    }
    client.stop().unwrap();
    server.stop().unwrap();
}

#[test]
fn a_user_fetches_what_he_needs_and_nobody_else_does() {
    let users = format!(r#"{{"anna": "{ANNA}", "bert": "{BERT}"}}"#);
    let world = World::start(&server_url(), &users);
    let host = format!("Host: {}", world.api);
    let path_of = |name: &str| {
        let body = world.reveal(&format!("/users/{name}")).body;
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
        anna.replace("anna", "unknown"),
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
    // The fetched document works.
    let origin = OriginServer::start().unwrap();
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
    let to = Destination::Addr(origin.addr());
    traffic::check_one_byte(socks_client::connect_through(client.addr(), None, &to).unwrap())
        .unwrap();
    client.stop().unwrap();
    // A new key has a new path.
    assert_eq!(
        world
            .say("PATCH /users/anna", &format!(r#"{{"uPSK":"{CLEO}"}}"#))
            .status,
        204
    );
    assert_eq!(world.raw(&format!("GET {anna}"), &[&host], "").status, 404);
    world.adit.stop().unwrap();
}
