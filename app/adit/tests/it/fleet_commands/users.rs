//! `adit user` on a realm.

use adit_fleet::{PeriodLabel, SubscriptionAddress, UsageBatch, UserUsage};
use adit_wire::{QuotaPeriod, UnixTime};
use serde_json::{Value, json};

use super::world::World;
use crate::setup::{ended, says};

fn urls(info: &Value) -> Vec<String> {
    let credentials = info["credentials"].as_array().unwrap();
    let urls = credentials.iter().map(|one| one["url"].as_str().unwrap());
    urls.map(str::to_owned).collect()
}

/// Add, use, limit, rotate, remove.
#[test]
fn the_life_of_a_user_of_a_realm() {
    let world = World::start();
    world.init();
    world.prints(&["fleet", "node", "remove", "node-1"]);
    let text = world.prints(&["user", "add", "early"]);
    says(
        &text,
        &["no node is in service", "adit user show early --reveal"],
    );
    let (paris, osaka) = (world.node("paris"), world.node("osaka"));

    let added = world.json(&["user", "add", "anna", "--quota", "50GB", "--expires", "30d"]);
    assert_eq!(
        (&added["quota"], &added["period"], &added["state"]),
        (
            &50_000_000_000_u64.into(),
            &"total".into(),
            &"active".into()
        ),
        "{added}"
    );
    let found = urls(&added);
    assert_eq!(found.len(), 6, "{added}");
    for url in &found {
        // Each is one that clients accept.
        ended(&["url", url]).expect_success().unwrap();
    }
    assert!(found[0].contains("@paris.example:8388") && found[3].contains("@osaka.example:8388"));
    // Identity keys are those of nodes, the passwords of the older edition the user's.
    let secret = |at: usize| {
        added["credentials"][at]["secret"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_ne!(secret(0), secret(3));
    assert_eq!(secret(1), secret(4));

    let list = world.prints(&["user", "list"]);
    says(
        &list,
        &["NAME", "anna", "50.0 GB", "30 days", "early", "active"],
    );
    assert!(!list.contains("OPEN"), "{list}");
    assert!(
        list.lines().all(|line| line.chars().count() <= 80),
        "{list}"
    );
    let shown = world.prints(&["user", "show", "anna"]);
    says(&shown, &["anna  active", "limits        50.0 GB, until"]);
    assert!(!shown.contains("ss://"), "{shown}");
    says(
        &world.prints(&["user", "show", "anna", "--reveal"]),
        &[&found[0], "█"],
    );

    // Usage of two nodes is one user's.
    let id = u32::try_from(added["id"].as_u64().unwrap()).unwrap();
    let label = PeriodLabel::new(QuotaPeriod::Total, UnixTime(0));
    for (number, node) in [(1, &paris), (1, &osaka)] {
        let entries = vec![UserUsage {
            user: id,
            period: label.clone(),
            up: 1_000,
            down: 2_000_000,
        }];
        let batch = UsageBatch { number, entries };
        let added = node
            .store
            .add_usage(node.membership.node_id.unwrap(), &batch);
        world.block_on(added).unwrap();
    }
    let shown = world.json(&["user", "show", "anna"]);
    assert_eq!(
        (&shown["usedUp"], &shown["usedDown"]),
        (&2_000.into(), &4_000_000.into()),
        "{shown}"
    );
    let limited = world.json(&["user", "limit", "anna", "--quota", "1MB", "--devices", "2"]);
    assert_eq!(
        (&limited["state"], &limited["devices"], &limited["id"]),
        (&"over-quota".into(), &2.into(), &id.into()),
        "{limited}"
    );
    assert!(limited["expires"].as_u64().is_some(), "{limited}");
    assert_eq!(
        world.prints(&["user", "reset", "anna"]),
        "anna  counts from zero"
    );
    assert_eq!(world.json(&["user", "show", "anna"])["state"], "active");

    let rotated = world.json(&["user", "rotate", "anna"]);
    assert_eq!(rotated["id"], id, "{rotated}");
    assert!(
        urls(&rotated).iter().all(|url| !found.contains(url)),
        "{rotated}"
    );
    // Nodes hear of all of it.
    world.wait("both nodes have both users", || {
        [&paris, &osaka]
            .iter()
            .all(|node| node.status.lock().unwrap().users == 2)
    });
    assert_eq!(world.prints(&["user", "remove", "anna"]), "anna  removed");
    says(
        &world.fails(&["user", "show", "anna"], 1),
        &["no user `anna`", "adit user list"],
    );
    world.wait("it is gone at both nodes", || {
        [&paris, &osaka]
            .iter()
            .all(|node| node.status.lock().unwrap().users == 1)
    });

    // What operators did is on record, and no secret.
    let audit = world.block_on(paris.store.audit_log(100)).unwrap();
    let texts: Vec<&str> = audit.iter().map(|entry| entry.text.as_str()).collect();
    for action in [
        "init",
        "token",
        "join",
        "node remove",
        "user add",
        "user rotate",
        "user remove",
    ] {
        let words = format!("\"action\":\"{action}\"");
        assert!(
            texts.iter().any(|text| text.contains(&words)),
            "{action}: {texts:?}"
        );
    }
    assert!(!texts.concat().contains(&secret(1)));
    let log = world.prints(&["fleet", "audit", "--last", "2"]);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains("  user rotate   user anna"), "{log}");
    assert!(lines[1].contains("  user remove   user anna"), "{log}");

    // Everyone who has a login at the store server can write to it.
    let forged = r#"{"action":"\u001b[2Jx","about":"\u009b","by":"a\nb"}"#;
    world.block_on(paris.store.audit(forged)).unwrap();
    world.block_on(paris.store.audit("\u{1b}[2J")).unwrap();
    let log = world.prints(&["fleet", "audit"]);
    assert!(
        !log.contains(|c: char| c.is_control() && c != '\n'),
        "{log:?}"
    );
    says(&log, &["user add", "node remove"]);
    let log = world.json(&["fleet", "audit", "--last", "4"]);
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 4, "{log}");
    assert_eq!(entries[0]["action"], "user rotate", "{log}");
    assert_eq!(entries[0]["about"]["user"], "anna", "{log}");
    assert!(entries[0]["unixMs"].as_u64() <= entries[3]["unixMs"].as_u64());
    assert_eq!(entries[3]["action"], "\u{1b}[2J", "{log}");
    world.fails(&["fleet", "audit", "--last", "0"], 2);
}

/// The address of a user's documents, as the nodes report it.
#[test]
fn a_subscription_has_the_addresses_of_the_nodes() {
    let world = World::start();
    world.init();
    let (paris, osaka) = (world.node("paris"), world.node("osaka"));
    let added = world.json(&["user", "add", "anna"]);
    assert_eq!(added["subscriptions"], json!([]), "{added}");
    let shown = world.prints(&["user", "show", "anna", "--reveal"]);
    says(&shown, &["subscription  none: no node has the address"]);
    let text = world.prints(&["user", "add", "bert"]);
    assert!(!text.contains("subscription"), "{text}");

    let report = |node: &super::world::Node, id: u32, url: &str| {
        let cipher = node.membership.cipher();
        let address = SubscriptionAddress::new(url, id, &cipher);
        node.report(|status| status.subscriptions = Some(address));
    };
    let ids = [&paris, &osaka].map(|node| node.membership.node_id.unwrap());
    report(&paris, ids[0], "https://a.example");
    // What another node has signed is none of this node's.
    report(&osaka, ids[0], "https://b.example");
    let addresses = || world.json(&["user", "show", "anna", "--reveal"])["subscriptions"].clone();
    world.wait("the address is there", || addresses() != json!([]));
    let found = addresses();
    let address = found[0].as_str().unwrap();
    assert!(
        address.starts_with("https://a.example/sip008/anna/"),
        "{found}"
    );
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    report(&osaka, ids[1], "https://b.example/x");
    world.wait("both addresses are there", || {
        addresses().as_array().unwrap().len() == 2
    });
    let text = world.prints(&["user", "rotate", "anna"]);
    let lines: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("subscription  "))
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        !lines.contains(&address),
        "a new key has a new path: {text}"
    );
    let hidden = world.json(&["user", "show", "anna"]);
    assert!(hidden.get("subscriptions").is_none(), "{hidden}");
}

/// Names, and what is only for a process.
#[test]
fn mistakes_with_users_are_named() {
    let world = World::start();
    world.init();
    world.prints(&["user", "add", "anna"]);
    says(
        &world.fails(&["user", "add", "anna"], 1),
        &["has a user `anna` already", "adit user rotate"],
    );
    for name in ["", "a:b", "#a"] {
        says(
            &world.fails(&["user", "add", name], 2),
            &["is no name for a user"],
        );
    }
    says(
        &world.fails(&["user", "limit", "anna"], 2),
        &["no limit to change"],
    );
    for (args, words) in [
        (
            &["user", "add", "bob", "--listener", "main"][..],
            "--listener is for a running process",
        ),
        (
            &["user", "add", "bob", "--host", "h"],
            "--host is for a running process",
        ),
        (
            &["user", "remove", "anna", "--listener", "main"],
            "--listener is for a running process",
        ),
        (&["user", "rotate", "nora"], "no user `nora`"),
        (
            &["user", "limit", "nora", "--rate", "1MB/s"],
            "no user `nora`",
        ),
        (&["user", "remove", "nora"], "no user `nora`"),
        (&["user", "reset", "nora"], "no user `nora`"),
    ] {
        let done = world.run(args);
        assert!(
            matches!(done.code, Some(1 | 2)),
            "{args:?}: {}",
            done.output
        );
        says(&done.output, &[words]);
    }
    let done = world.run(&["user", "show", "nora", "--json"]);
    let error: Value = serde_json::from_str(done.output.trim()).unwrap();
    assert_eq!(error["error"]["exitCode"], json!(1), "{error}");
    let list = world.json(&["user", "list"]);
    assert_eq!(list["accounts"].as_array().unwrap().len(), 1, "{list}");
}

/// A command acts on the target that its options name, or else on the only one that there is.
#[test]
fn a_process_is_never_taken_for_a_realm() {
    let world = World::start();
    let socket = world.path("no.sock");
    let at_process = world.run_plain(&["user", "list", "--admin", &socket]);
    assert_eq!(at_process.code, Some(4), "{}", at_process.output);
    world.init();
    // The membership is there, and the process is still the one that is named.
    let at_process = world.run_plain(&["user", "list", "--admin", &socket]);
    assert_eq!(at_process.code, Some(4), "{}", at_process.output);
    says(&at_process.output, &["cannot reach the management API"]);
    let both = world.run_plain(&["user", "list", "--admin", &socket, "--fleet"]);
    assert_eq!(both.code, Some(2), "{}", both.output);
    says(&both.output, &["cannot be used with"]);
    let file = world.home(".config/adit/fleet.json");
    let named = world.run_plain(&["user", "list", &format!("--fleet={file}")]);
    assert_eq!(named.expect_success().unwrap(), "no users");
    // Root has its membership elsewhere.
    if !rustix::process::geteuid().is_root() {
        let found = world.run_plain(&["user", "list"]);
        assert_eq!(found.expect_success().unwrap(), "no users");
    }
}

/// Users of a panel keep their keys and limits in a realm; an import can be repeated.
#[test]
fn users_of_a_panel_are_imported_into_a_realm() {
    let world = World::start();
    world.init();
    let client = |name: &str, key: &str, enable: bool| {
        json!({"email": name, "password": key, "totalGB": 50_000_000_000_u64, "limitIp": 2, "enable": enable,
            "expiryTime": 4_102_444_800_000_u64})
    };
    let export = json!({"protocol": "shadowsocks", "remark": "ss", "settings": {
    "method": "2022-blake3-aes-128-gcm", "clients": [
        client("anna", "AQEBAQEBAQEBAQEBAQEBAQ==", true),
        client("bob", "AgICAgICAgICAgICAgICAg==", false),
        client("twin", "AQEBAQEBAQEBAQEBAQEBAQ==", true),
    ]}});
    let file = world.write("export.json", &export.to_string());
    let file = file.to_str().unwrap();
    let import = |words: &[&str]| {
        let done = world.run(&[&["user", "import", file], words].concat());
        assert_eq!(done.code, Some(1), "{}", done.output);
        done.output
    };
    let planned = import(&["--dry-run"]);
    says(
        &planned,
        &[
            "would add",
            "quota 50.0 GB",
            "disabled",
            "another user has this key",
        ],
    );
    let list = world.json(&["user", "list"]);
    assert_eq!(list["accounts"], json!([]));
    says(&import(&[]), &["added 2", "refused 1"]);
    let list = world.json(&["user", "list"]);
    let anna = &list["accounts"][0];
    assert_eq!(
        (
            &anna["name"],
            &anna["quota"],
            &anna["devices"],
            &anna["expires"]
        ),
        (
            &"anna".into(),
            &50_000_000_000_u64.into(),
            &2.into(),
            &4_102_444_800_u64.into()
        )
    );
    assert_eq!(list["accounts"][1]["state"], "disabled");
    let _paris = world.node("paris");
    let shown = world.json(&["user", "show", "anna", "--reveal"]);
    assert!(
        urls(&shown)
            .iter()
            .any(|url| url.contains("AQEBAQEBAQEBAQEBAQEBAQ")),
        "{shown}"
    );
    says(&import(&[]), &["unchanged 2", "refused 1"]);
    // New keys stay, unless the export replaces them.
    world.prints(&["user", "rotate", "anna"]);
    // The key that she had in the export is free then.
    let kept = world.prints(&["user", "import", file, "--dry-run"]);
    says(&kept, &["keeps another key", "would add", "twin"]);
    says(
        &import(&["--replace-keys"]),
        &["changed 1", "the key of the export"],
    );
    let shown = world.json(&["user", "show", "anna", "--reveal"]);
    assert!(
        urls(&shown)
            .iter()
            .any(|url| url.contains("AQEBAQEBAQEBAQEBAQEBAQ")),
        "{shown}"
    );
}
