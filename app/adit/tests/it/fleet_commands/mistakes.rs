//! Mistakes of operators, each with one clear error and its exit code.

use serde_json::Value;

use super::world::World;
use crate::setup::says;

#[test]
fn realms_are_not_replaced() {
    let world = World::start();
    world.init();
    let there = world.fails(&["fleet", "init", "--engine", &world.url()], 1);
    says(
        &there,
        &["is a membership of realm main already", "--membership FILE"],
    );
    let other = world.path("other.json");
    let init = [
        "fleet",
        "init",
        "--engine",
        &world.url(),
        "--membership",
        &other,
    ];
    says(
        &world.fails(&init, 1),
        &["has a realm with this name already", "--realm NAME"],
    );
    assert!(!std::path::Path::new(&other).exists());
    // Another realm on the same server.
    let second = world.json(&[&init[..], &["--realm", "second"]].concat());
    assert_eq!(second["login"], "adit-second-operator");
    world.prints(&["user", "add", "anna"]);
    let list = world.prints(&["user", "list", &format!("--fleet={other}")]);
    assert_eq!(list, "no users");
}

#[test]
fn arguments_are_checked_first() {
    let world = World::start();
    for (args, code, words) in [
        (
            &["fleet", "init", "--engine", "http://h"][..],
            3,
            "unknown scheme",
        ),
        (
            &["fleet", "init", "--engine", "valkey://h.example"],
            3,
            "use `valkeys://` (TLS)",
        ),
        (
            &["fleet", "init", "--engine", "unix:///x", "--realm", "a b"],
            2,
            "the name of a realm",
        ),
        (
            &["fleet", "init", "--engine", "valkey://:secret@127.0.0.1"],
            2,
            "--engine-password @FILE",
        ),
        (
            &[
                "fleet",
                "init",
                "--engine",
                "unix:///x",
                "--engine-password",
                "secret",
            ],
            2,
            "--engine-password is `@FILE`",
        ),
        (
            &[
                "fleet",
                "init",
                "--engine",
                "unix:///x",
                "--ca",
                "/nonexistent/ca.pem",
            ],
            3,
            "/nonexistent/ca.pem",
        ),
        (
            &["fleet", "join", "adit-join:x"],
            2,
            "this is no join token, or a part of one",
        ),
        (&["fleet", "join", "nonsense"], 2, "this is no join token"),
        (
            &["fleet", "status"],
            3,
            "`adit fleet init` creates an operator's membership",
        ),
        (
            &["fleet", "token", "--node", "a b"],
            2,
            "is no name for a node",
        ),
        (&["fleet", "token", "--node", "12"], 2, "not only digits"),
        (&["fleet", "leave"], 3, "No such file"),
    ] {
        let text = world.fails(args, code);
        says(&text, &[words]);
        assert!(
            !text.contains("secret@") && !text.contains("`secret`"),
            "{text}"
        );
    }
}

#[test]
fn a_server_that_does_not_answer_is_a_network_failure() {
    let mut world = World::start();
    world.init();
    world.stop_store();
    for args in [
        &["fleet", "status"][..],
        &["user", "list"],
        &["fleet", "token"],
    ] {
        says(&world.fails(args, 4), &["the store does not answer"]);
    }
    let failed = world.fails(&["fleet", "status", "--json"], 4);
    says(&failed, &["the store does not answer"]);
    // A machine that leaves a realm that no one can reach.
    let init = [
        "fleet",
        "init",
        "--engine",
        &world.url(),
        "--membership",
        &world.path("x"),
    ];
    says(&world.fails(&init, 4), &["the store does not answer"]);
}

#[test]
fn logins_and_their_commands_are_checked() {
    let world = World::start();
    world.init();
    world.prints(&["user", "add", "anna"]);
    let acl = |words: &[&str]| world.store().run(&[&["ACL"], words].concat()).unwrap();
    // A command is missing.
    acl(&["SETUSER", "adit-main-operator", "-evalsha"]);
    let denied = world.fails(&["user", "add", "bert"], 1);
    says(&denied, &["may not call `evalsha`", "ACL SETUSER"]);
    acl(&["SETUSER", "adit-main-operator", "+evalsha"]);
    world.prints(&["user", "add", "bert"]);
    // The login is gone.
    acl(&["DELUSER", "adit-main-operator"]);
    says(
        &world.fails(&["user", "list"], 5),
        &["does not accept the user or the password"],
    );
}

#[test]
fn memberships_of_others_are_refused() {
    let world = World::start();
    let created = world.init();
    let node = world.path("node.json");
    let token = created["token"].as_str().unwrap();
    world.prints(&["fleet", "join", token, "--membership", &node]);
    // A node's, for an operator's command.
    let list = ["user", "list", &format!("--fleet={node}")];
    says(
        &world.fails(&list, 3),
        &["this is the membership of a node"],
    );
    // An operator's, for a node's command.
    let own = world.home(".config/adit/fleet.json");
    says(
        &world.fails(&["fleet", "leave", "--membership", &own], 3),
        &["an operator"],
    );
    // A realm of the same name with another key.
    let text = std::fs::read_to_string(&own).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["realm_key"] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".into();
    let file = world.write("forged.json", &other.to_string());
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let list = ["user", "list", &format!("--fleet={}", file.display())];
    says(&world.fails(&list, 3), &["has another key"]);
    // One that others can read.
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    says(&world.fails(&list, 3), &["others can read it"]);
    // A realm that does not exist.
    world.store().run(&["FLUSHALL"]).unwrap();
    says(
        &world.fails(&["fleet", "status"], 3),
        &["does not have this realm"],
    );
}
