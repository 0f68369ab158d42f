//! Users who are added, changed and removed while their server runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::traffic;

use super::world::{
    ANNA, BERT, CLEO, KEY, METHOD, World, anna, lives, number, server_url, session,
};

#[test]
fn the_life_of_a_user() {
    let world = World::start(&server_url(), &anna());
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
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
        let users = world.reveal(&format!("{base}/users"));
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

    // The user is added, and is served.
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
    traffic::download(
        socks_client::connect_through(client.addr(), None, &to).unwrap(),
        70_000,
    )
    .unwrap();
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

    // A new key: the session ends, and the new key is served.
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

    // The user is removed.
    assert_eq!(world.say("DELETE /users/bert", "").status, 204);
    assert!(!lives(&mut open));
    assert_eq!(world.say("DELETE /users/bert", "").status, 404);
    assert_eq!(world.get("/users/bert").status, 404);
    assert!(!world.users_file().contains("bert"));
    client.stop().unwrap();
    other.stop().unwrap();

    // Changes survive a restart.
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
        // The key of another user, and the server's key.
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
            "PATCH /users/unknown",
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
    // A file that is being written is not overwritten.
    world.folder.write_file("users.json", "{ half").unwrap();
    let bert = format!(r#"{{"username":"bert","uPSK":"{BERT}"}}"#);
    assert_eq!(world.say("POST /users", &bert).status, 409);
    assert_eq!(world.users_file(), "{ half");
    world.adit.stop().unwrap();
}

#[test]
fn passwords_of_the_aead_edition_are_kept_too() {
    let world = World::start(
        "ss://aes-256-gcm@127.0.0.1:0",
        r#"{"anna": "a secret: word"}"#,
    );
    let origin = OriginServer::start().unwrap();
    let bert = r#"{"username":"bert","uPSK":"another \"one\""}"#;
    assert_eq!(world.say("POST /users", bert).status, 201);
    assert_eq!(
        world.users_file(),
        "{\n  \"anna\": \"a secret: word\",\n  \"bert\": \"another \\\"one\\\"\"\n}"
    );
    let client = world.client("aes-256-gcm", "another \"one\"");
    let to = Destination::Addr(origin.addr());
    traffic::check_one_byte(socks_client::connect_through(client.addr(), None, &to).unwrap())
        .unwrap();
    client.stop().unwrap();
    world.adit.stop().unwrap();
}
