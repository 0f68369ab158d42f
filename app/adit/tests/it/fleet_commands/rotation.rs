//! Another key for a realm, which those who had the old one do not learn.

use std::fs;

use adit_fleet::{Membership, RecordError, StoreErrorKind, StoreLogin, open_store};
use serde_json::Value;

use super::world::World;
use crate::setup::says;

/// Joins again with the token of a node.
fn join_again(world: &World, rotated: &Value, name: &str) {
    let nodes = rotated["nodes"].as_array().unwrap();
    let node = nodes.iter().find(|node| node["node"] == name).unwrap();
    let token = node["token"].as_str().unwrap();
    let file = world.path(&format!("{name}.json"));
    says(
        &world.fails(&["fleet", "join", token, "--membership", &file], 1),
        &["is a membership of realm main already", "--replace"],
    );
    world.json(&["fleet", "join", token, "--replace", "--membership", &file]);
}

#[test]
fn the_old_key_and_the_old_logins_end() {
    let world = World::start();
    world.init();
    world.prints(&["fleet", "node", "remove", "node-1"]);
    let paris = world.node("paris");
    world.json(&["fleet", "token", "--node", "late"]);
    world.json(&["user", "add", "anna", "--quota", "50GB"]);
    let before = world.json(&["user", "show", "anna", "--reveal"]);
    let file = world.home(".config/adit/fleet.json");
    let old_file = world.path("old.json");
    fs::copy(&file, &old_file).unwrap();
    let old = Membership::read(old_file.as_ref()).unwrap();
    let head = world.block_on(paris.store.head()).unwrap();

    let rotated = world.json(&["fleet", "rotate-key"]);
    assert_eq!(rotated["users"], 1, "{rotated}");
    assert_eq!(rotated["login"], "adit-main-operator-2", "{rotated}");
    assert_eq!(rotated["nodes"].as_array().unwrap().len(), 2, "{rotated}");
    assert!(rotated["change"].as_u64().unwrap() > head.0, "{rotated}");
    assert_eq!(world.mode_of(&file), 0o600);
    assert!(!std::path::Path::new(&format!("{file}.new")).exists());
    let new = Membership::read(file.as_ref()).unwrap();
    assert_ne!(new.realm_key, old.realm_key);

    // The login of the old membership has ended, and that of the node, whose connections are closed.
    says(
        &world.fails(&["user", "list", &format!("--fleet={old_file}")], 5),
        &["does not know"],
    );
    world.wait("the login of the node has ended", || {
        let refused = world.block_on(paris.store.head());
        refused.is_err_and(|why| why.kind == StoreErrorKind::WrongPassword)
    });
    // Someone who reads the store all the same finds nothing under the old key.
    let thief = StoreLogin {
        user: None,
        password: None,
        ..StoreLogin::from(&old)
    };
    let thief = {
        let _inside = world.runtime();
        open_store(&thief).unwrap()
    };
    let snapshot = world.block_on(thief.snapshot()).unwrap();
    assert_eq!(snapshot.users.len(), 1);
    for (id, record) in &snapshot.users {
        assert_eq!(old.cipher().open(*id, record), Err(RecordError::Forged));
        new.cipher().open(*id, record).unwrap();
    }
    let keys = world.store().run(&["--scan"]).unwrap();
    for key in keys.lines().filter(|key| key.contains(":join:")) {
        let sealed = world.block_on(thief.take_join(key.rsplit(':').next().unwrap()));
        let sealed = sealed.unwrap().unwrap();
        let secret = new.realm_key.to_base64();
        assert!(!String::from_utf8_lossy(&sealed).contains(secret.as_str()));
        // What was taken is needed below.
        let id = key.rsplit(':').next().unwrap();
        let minute = std::time::Duration::from_secs(60);
        world.block_on(thief.put_join(id, &sealed, minute)).unwrap();
    }

    // The node joins again, and has everything.
    drop(paris);
    join_again(&world, &rotated, "paris");
    let paris = world.node_at("paris");
    world.wait("the node has the user", || {
        paris.status.lock().unwrap().users == 1
    });
    let after = world.json(&["user", "show", "anna", "--reveal"]);
    assert_eq!(after["quota"], before["quota"]);
    let secret = |info: &Value, at: usize| info["credentials"][at]["secret"].clone();
    // The key of the node before the user's own is another one; the user's is not.
    assert_ne!(secret(&after, 0), secret(&before, 0));
    assert_eq!(secret(&after, 1), secret(&before, 1));
    says(
        &world.prints(&["fleet", "audit", "--last", "9"]),
        &["rotate-key", "usersHaveNewKeys false"],
    );

    // A token that expired, and users who get new keys too.
    let again = world.json(&["fleet", "token", "--again", "late"]);
    assert_eq!(again["node"], "late", "{again}");
    let other = again["token"].as_str().unwrap();
    let file = world.path("paris.json");
    says(
        &world.fails(
            &["fleet", "join", other, "--replace", "--membership", &file],
            2,
        ),
        &["this token is for node late", "--again"],
    );
    let text = world.prints(&["fleet", "rotate-key", "--users"]);
    says(
        &text,
        &[
            "rotated       1 users of realm main",
            "login         adit-main-operator",
            "for node paris, valid once",
            "adit fleet join --replace adit-join:",
        ],
    );
    let last = world.json(&["user", "show", "anna", "--reveal"]);
    assert_eq!(last["quota"], before["quota"]);
}

/// Whatever a command that is interrupted has done, the next one continues.
#[test]
fn an_interrupted_rotation_continues() {
    let world = World::start();
    world.init();
    world.prints(&["user", "add", "anna"]);
    let file = world.home(".config/adit/fleet.json");
    let pending = format!("{file}.new");
    let before = fs::read(&file).unwrap();

    // It had changed the store, and not its own file.
    world.json(&["fleet", "rotate-key"]);
    let after = Membership::read(file.as_ref()).unwrap();
    after.write(pending.as_ref()).unwrap();
    let mut stale = Membership::from_json(&before).unwrap();
    (stale.store_user, stale.store_password) =
        (after.store_user.clone(), after.store_password.clone());
    stale.write(file.as_ref()).unwrap();
    says(&world.fails(&["user", "list"], 3), &["has another key"]);
    let done = world.json(&["fleet", "rotate-key"]);
    assert_eq!(done["users"], 1, "{done}");
    let now = Membership::read(file.as_ref()).unwrap();
    assert_eq!(now.realm_key, after.realm_key);
    says(&world.prints(&["user", "list"]), &["anna"]);

    // It had written its file alone.
    stale.write(pending.as_ref()).unwrap();
    world.json(&["fleet", "rotate-key"]);
    let last = Membership::read(file.as_ref()).unwrap();
    assert!(last.realm_key != now.realm_key && last.realm_key != stale.realm_key);
    says(&world.prints(&["user", "list"]), &["anna"]);
}
