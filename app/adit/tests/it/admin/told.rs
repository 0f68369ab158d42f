//! What is told: metrics, and subscriptions.

use adit_interop::origin::Origin;
use adit_interop::socks::{self, Dest};
use adit_interop::traffic;

use super::world::{ANNA, BERT, CLEO, KEY, METHOD, World, anna, number, server_url, session};
use crate::setup::start;

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
