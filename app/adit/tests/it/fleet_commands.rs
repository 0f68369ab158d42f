//! `adit fleet`, and `adit user` on a realm, as an operator uses them, with a real store server.

mod mistakes;
mod push;
mod rotation;
mod steering;
mod users;
mod world;

use crate::setup::says;

use world::World;

/// A realm, a token, a node, and its end.
#[test]
fn a_node_joins_and_leaves() {
    let world = World::start();
    let created = world.json(&["fleet", "init", "--engine", &world.url()]);
    assert_eq!(
        (&created["realm"], &created["node"], &created["login"]),
        (
            &"main".into(),
            &"node-1".into(),
            &"adit-main-operator".into()
        ),
        "{created}"
    );
    let membership = world.home(".config/adit/fleet.json");
    assert_eq!(world.mode_of(&membership), 0o600);
    let token = created["token"].as_str().unwrap();

    let file = world.path("node.json");
    let text = world.prints(&["fleet", "join", token, "--membership", &file]);
    says(
        &text,
        &[
            "joined        realm main at unix://",
            "as node-1",
            "[fleet]",
            &file,
            "users=fleet",
        ],
    );
    assert_eq!(world.mode_of(&file), 0o600);
    // The node's own login, with which it may do nothing beside the realm.
    let member: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(member["store_user"], "adit-main-1", "{member}");
    let password = member["store_password"].as_str().unwrap();
    let as_node = |words: &[&str]| {
        let login = [
            "--user",
            "adit-main-1",
            "--pass",
            password,
            "--no-auth-warning",
        ];
        world.store().run(&[&login[..], words].concat()).unwrap()
    };
    for words in [
        &["get", "other"][..],
        &["flushall"],
        &["acl", "list"],
        &["keys", "*"],
    ] {
        assert!(as_node(words).contains("NOPERM"), "{words:?}");
    }
    says(&as_node(&["ping"]), &["PONG"]);

    // Once only.
    let again = world.fails(
        &["fleet", "join", token, "--membership", &world.path("b")],
        1,
    );
    says(
        &again,
        &[
            "this token was used already, or has expired",
            "adit fleet token",
        ],
    );
    let there = world.fails(&["fleet", "join", token, "--membership", &file], 1);
    says(&there, &["is a membership of realm main already"]);

    // It does not run yet.
    let status = world.fails(&["fleet", "status"], 1);
    says(
        &status,
        &["realm main at unix://", "NODE", "node-1", "missing"],
    );

    let left = world.prints(&["fleet", "leave", "--membership", &file]);
    says(&left, &["node-1  has left the realm"]);
    assert!(!std::path::Path::new(&file).exists());
    says(&world.prints(&["fleet", "status"]), &["no nodes"]);
}

/// A membership on a machine of its own, in the form of tokens that people have.
#[test]
fn tokens_have_names_and_forms() {
    let world = World::start();
    world.init();
    let issued = world.json(&["fleet", "token", "--node", "paris"]);
    assert_eq!(
        (&issued["node"], &issued["seconds"]),
        (&"paris".into(), &900.into())
    );
    let taken = world.fails(&["fleet", "token", "--node", "paris"], 1);
    says(
        &taken,
        &["has a node `paris` already", "adit fleet node remove"],
    );
    let text = world.prints(&["fleet", "token"]);
    says(
        &text,
        &[
            "for node node-2, valid once and for 15 minutes",
            "adit fleet join adit-join:",
        ],
    );

    // The whole output of `token`, in a file.
    world.write("token", &text);
    let token = format!("@{}", world.path("token"));
    let file = world.path("b.json");
    let joined = world.json(&["fleet", "join", &token, "--membership", &file]);
    assert_eq!(
        (&joined["node"], &joined["id"]),
        (&"node-2".into(), &3.into()),
        "{joined}"
    );
    // The address of the node's side.
    let far = "unix:///run/far.sock";
    let issued = world.json(&["fleet", "token", "--node-engine", far]);
    assert_eq!(issued["node"], "node-3");

    // A token that has expired: the store server has deleted what it opens.
    let issued = world.json(&["fleet", "token", "--node", "late"]);
    let keys = world
        .store()
        .run(&["--scan", "--pattern", "*:join:*"])
        .unwrap();
    for key in keys.lines() {
        assert_eq!(world.store().run(&["DEL", key]).unwrap(), "1");
    }
    let token = issued["token"].as_str().unwrap();
    let late = world.fails(
        &["fleet", "join", token, "--membership", &world.path("c")],
        1,
    );
    says(&late, &["was used already, or has expired"]);
}

/// A server that lets no one create logins is used with the one that there is.
#[test]
fn members_share_a_login_if_there_is_one_alone() {
    let world = World::start_with_acl("user default on nopass ~* &* +@all -@admin\n");
    let text = world.prints(&["fleet", "init", "--engine", &world.url()]);
    says(
        &text,
        &["the members share one login", "may not call `acl|setuser`"],
    );
    let token = text
        .lines()
        .find_map(|line| line.strip_prefix("adit fleet join "))
        .unwrap();
    let file = world.path("node.json");
    world.prints(&["fleet", "join", token, "--membership", &file]);
    says(
        &world.prints(&["fleet", "node", "remove", "node-1"]),
        &["removed", "note"],
    );
}

/// A server that will forget logins is used all the same, which a note says.
#[test]
fn logins_in_memory_are_a_note() {
    let world = World::start_without_acl_file();
    let text = world.prints(&["fleet", "init", "--engine", &world.url()]);
    says(
        &text,
        &[
            "login         adit-main-operator",
            "in memory only",
            "aclfile",
        ],
    );
}
