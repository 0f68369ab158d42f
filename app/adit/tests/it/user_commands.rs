//! `adit user` as an operator uses it, with a running process, and the documents that its users download.

mod documents;
mod import;
mod mistakes;
mod world;

use std::io::Write;
use std::time::Duration;

use adit_interop::hostile_clients::{self, Reaction};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::traffic;

use crate::admin::world::{lives, session};
use crate::setup::{says, start};

use world::{Served, password_of, url_with};

/// Add, connect with the printed URL, limit, rotate, remove.
#[test]
fn the_life_of_a_user() {
    let served = Served::start();
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let added = served.json(&[
        "add",
        "anna",
        "--quota",
        "50GB/month",
        "--expires",
        "30d",
        "--rate",
        "100MB/s",
        "--sessions",
        "9",
        "--devices",
        "3",
    ]);
    assert_eq!(added["quota"], 50_000_000_000_u64, "{added}");
    assert_eq!(
        (&added["period"], &added["sessions"]),
        (&"month".into(), &9.into())
    );
    let url = url_with(&added, "ss://");
    let client = start(&["run", "mixed://127.0.0.1:0", &url]);
    let mut open = session(client.addr(), &to);
    traffic::download(
        socks_client::connect_through(client.addr(), None, &to).unwrap(),
        100_000,
    )
    .unwrap();
    // The same user at the proxy, with the printed password.
    let socks = url_with(&added, "socks5://");
    let login = Some(("anna", password_of(&socks)));
    traffic::download(
        socks_client::connect_through(served.proxy(), login, &to).unwrap(),
        100_000,
    )
    .unwrap();
    assert!(served.file("users.json").contains("anna"));
    let passwords = served.file("proxy.users");
    assert!(
        passwords.starts_with("# ours\nadmin:") && passwords.contains("\nanna:"),
        "{passwords}"
    );

    // Usage of both listeners is one user's.
    let shown = served.wait_for(&["show", "anna"], |info| {
        info["usedDown"].as_u64() >= Some(200_000)
    });
    assert_eq!(shown["listeners"], serde_json::json!(["main", "proxy"]));
    assert!(shown.get("credentials").is_none(), "{shown}");
    let list = served.prints(&["list"]);
    says(
        &list,
        &[
            "NAME",
            "anna",
            "50.0 GB/month",
            "30 days",
            "admin",
            "active",
        ],
    );
    assert!(
        list.lines().all(|line| line.chars().count() <= 80),
        "{list}"
    );
    let text = served.prints(&["show", "anna"]);
    says(
        &text,
        &[
            "50.0 GB a month",
            "100 MB/s",
            "9 sessions",
            "3 devices",
            "main, proxy",
        ],
    );
    assert!(!text.contains("ss://"), "{text}");
    let revealed = served.prints(&["show", "anna", "--reveal"]);
    says(&revealed, &[&url, &socks, "/sip008/anna/", "█"]);

    // A quota that is used up ends sessions within a moment, and refuses new ones; without it they are accepted.
    served.prints(&["limit", "anna", "--quota", "1kB/month"]);
    hostile_clients::watch_reaction(&mut open, Duration::from_secs(20)).unwrap();
    assert!(!lives(&mut open));
    assert!(socks_client::connect_through(served.proxy(), login, &to).is_err());
    says(&served.prints(&["list"]), &["over-quota"]);
    served.prints(&["limit", "anna", "--quota", "none"]);
    let mut open = session(client.addr(), &to);
    let text = served.prints(&["reset", "anna"]);
    assert_eq!(text, "anna  counts from zero");
    served.wait_for(&["show", "anna"], |info| {
        info["usedDown"].as_u64() < Some(200_000)
    });

    // New keys: old ones are those of an unknown user.
    let rotated = served.json(&["rotate", "anna"]);
    let new = url_with(&rotated, "ss://");
    assert_ne!(new, url);
    assert!(!lives(&mut open));
    assert!(socks_client::connect_through(served.proxy(), login, &to).is_err());
    let other = start(&["run", "mixed://127.0.0.1:0", &new]);
    let mut open = session(other.addr(), &to);
    // The limits stay.
    assert_eq!(served.json(&["show", "anna"])["sessions"], 9);

    assert_eq!(served.prints(&["remove", "anna"]), "anna  removed");
    assert!(!lives(&mut open));
    assert!(!served.file("users.json").contains("anna"));
    assert!(!served.file("proxy.users").contains("anna"));
    says(
        &served.fails(&["show", "anna"], 1),
        &["no such user", "adit user list"],
    );
    assert!(!served.prints(&["list"]).contains("anna"));
    client.stop().unwrap();
    other.stop().unwrap();
    served.stop();
}

/// A user of one listener, and of another one later.
#[test]
fn a_listener_can_be_chosen() {
    let served = Served::start();
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let text = served.prints(&["add", "ö b", "--listener", "proxy", "--no-qr"]);
    says(
        &text,
        &[
            "ö b  added at proxy",
            "socks5://%C3%B6%20b:",
            "limits        none",
        ],
    );
    assert!(!served.file("users.json").contains("ö b"));
    let url = text
        .lines()
        .find_map(|line| line.strip_prefix("url           "))
        .unwrap();
    let login = Some(("ö b", password_of(url)));
    let mut open = socks_client::connect_through(served.proxy(), login, &to).unwrap();
    open.write_all(b"ECHO\nx").unwrap();
    assert_eq!(
        hostile_clients::watch_reaction(&mut open, Duration::from_secs(20)).unwrap(),
        Reaction::Answer(1)
    );
    let text = served.prints(&["add", "ö b", "--listener", "main", "--host", "vps.example"]);
    says(&text, &["@vps.example:", "ss://"]);
    served.prints(&["remove", "ö b", "--listener", "main"]);
    assert!(lives(&mut open));
    assert_eq!(
        served.json(&["show", "ö b"])["listeners"],
        serde_json::json!(["proxy"])
    );
    served.stop();
}

/// Users and limits survive a restart.
#[test]
fn a_restart_keeps_users_and_limits() {
    let served = Served::start();
    let added = served.json(&["add", "anna", "--quota", "1GB/day", "--devices", "2"]);
    assert_eq!(added["limitsLast"], true, "{added}");
    let password = url_with(&added, "socks5://");
    let served = served.restart();
    let shown = served.json(&["show", "anna"]);
    for (limit, value) in [("quota", 1_000_000_000_u64), ("devices", 2)] {
        assert_eq!(shown[limit], value, "{shown}");
    }
    assert_eq!(shown["period"], "day", "{shown}");
    let origin = OriginServer::start().unwrap();
    let login = Some(("anna", password_of(&password)));
    let to = Destination::Addr(origin.addr());
    let stream = socks_client::connect_through(served.proxy(), login, &to).unwrap();
    traffic::download(stream, 50_000).unwrap();
    served.stop();
}

/// The file of a proxy's users is read again when it changes, as that of a server is.
#[test]
fn a_file_of_passwords_is_read_again() {
    let mut served = Served::start();
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let connect = |served: &Served, user: &str, password: &str| {
        socks_client::connect_through(served.proxy(), Some((user, password)), &to)
    };
    let mut admin = connect(&served, "admin", "admins-password").unwrap();
    admin.write_all(b"ECHO\n").unwrap();
    assert!(lives(&mut admin));
    served.write("proxy.users", "admin:admins-password\neve:1\n");
    served.wait_for_log("proxy.users: 2 users");
    let mut eve = connect(&served, "eve", "1").unwrap();
    eve.write_all(b"ECHO\n").unwrap();
    assert!(lives(&mut eve) && lives(&mut admin));
    served.write("proxy.users", "admin:admins-password\neve\n");
    served.wait_for_log("proxy.users was not reloaded, the current users stay in use");
    assert!(lives(&mut eve));
    says(
        &served.fails_at_socket(&["add", "bob", "--listener", "proxy"]),
        &["line 2 of", "is not `user:password`"],
    );
    served.write("proxy.users", "admin:admins-password\neve:2\n");
    served.wait_for_log("proxy.users: 2 users");
    assert!(!lives(&mut eve) && lives(&mut admin));
    assert!(connect(&served, "eve", "1").is_err());
    connect(&served, "eve", "2").unwrap();
    // A reload of the configuration does not end sessions of users that its file got meanwhile.
    let mut eve = connect(&served, "eve", "2").unwrap();
    eve.write_all(b"ECHO\n").unwrap();
    assert!(lives(&mut eve));
    served.reload();
    assert!(lives(&mut eve) && lives(&mut admin));
    served.stop();
}

/// Changes through the API are recorded before they are answered, without secrets.
#[test]
fn changes_are_recorded() {
    let served = Served::start();
    served.prints(&["add", "anna", "--quota", "5GB"]);
    served.prints(&["limit", "anna", "--rate", "1MB/s"]);
    served.prints(&["list"]);
    served.fails(&["remove", "nora"], 1);
    served.prints(&["rotate", "anna"]);
    let lines: Vec<serde_json::Value> = served
        .file("audit.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let seen: Vec<(&str, u64)> = lines
        .iter()
        .map(|line| {
            (
                line["action"].as_str().unwrap(),
                line["status"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("POST /accounts", 201),
            ("PUT /accounts/anna/limits", 200),
            ("DELETE /accounts/nora", 404),
            ("POST /accounts/anna/rotate", 200),
        ]
    );
    assert_eq!(lines[0]["about"]["name"], "anna");
    assert_eq!(lines[1]["about"]["rate"], 1_000_000);
    assert_eq!(lines[2]["error"], "no such user");
    assert!(lines.iter().all(|line| line["by"] == "token 1"));
    let anna = served.json(&["show", "anna", "--reveal"]);
    let text = served.file("audit.jsonl");
    for one in anna["credentials"].as_array().unwrap() {
        assert!(!text.contains(one["secret"].as_str().unwrap()), "{text}");
    }
}
