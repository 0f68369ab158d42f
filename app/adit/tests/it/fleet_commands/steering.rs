//! Nodes: their table, drains, upgrades, and a store server that has lost data.

use adit_fleet::{NodeOp, NodeState};

use super::world::World;
use crate::setup::says;

/// The table, and what changes in it.
#[test]
fn nodes_are_shown_and_steered() {
    let world = World::start();
    world.init();
    world.prints(&["fleet", "node", "remove", "node-1"]);
    let (paris, _osaka) = (world.node("paris"), world.node("osaka"));
    let table = world.prints(&["fleet", "status"]);
    says(
        &table,
        &["NODE", "MBIT/S", "paris", "osaka", "10.0", "active"],
    );
    let nodes = table.lines().skip(1);
    assert!(
        nodes.clone().count() == 3 && nodes.clone().all(|line| line.len() <= 80),
        "{table}"
    );
    let status = world.json(&["fleet", "status"]);
    assert_eq!(status["isWell"], true, "{status}");
    assert_eq!(status["nodes"][0]["name"], "paris", "{status}");
    assert_eq!(status["nodes"][0]["sessions"], 3, "{status}");

    let shown = world.prints(&["fleet", "node", "show", "paris"]);
    says(
        &shown,
        &[
            "weight        100",
            "main: ss 2022-blake3-aes-128-gcm at paris.example:8388",
        ],
    );
    world.prints(&["fleet", "node", "weight", "paris", "50"]);
    assert_eq!(
        world.json(&["fleet", "node", "show", "paris"])["weight"],
        50
    );
    world.prints(&["fleet", "node", "rename", "paris", "cdg"]);
    says(
        &world.fails(&["fleet", "node", "rename", "cdg", "osaka"], 1),
        &["the name is taken"],
    );
    says(
        &world.fails(&["fleet", "node", "show", "osaca"], 1),
        &["no node `osaca`", "did you mean `osaka`?"],
    );

    // A drain reaches the running node, and the one that starts later.
    let text = world.prints(&["fleet", "drain", "cdg"]);
    says(&text, &["cdg  drains, 3 sessions open"]);
    world.wait("the node drains", || paris.has(&NodeOp::Drain));
    says(&world.prints(&["fleet", "status"]), &["draining"]);
    says(
        &world.fails(&["fleet", "drain", "cdg", "--wait", "--timeout", "1s"], 1),
        &["cdg still has 3 sessions after 1 s"],
    );
    // Its users are sent elsewhere.
    let added = world.json(&["user", "add", "anna"]);
    assert_eq!(added["credentials"].as_array().unwrap().len(), 3, "{added}");
    paris.report(|status| (status.state, status.sessions) = (NodeState::Drained, 0));
    let drained = world.json(&["fleet", "drain", "cdg", "--wait", "--timeout", "20s"]);
    assert_eq!(drained["state"], "drained", "{drained}");
    says(
        &world.prints(&["fleet", "drain", "cdg", "--undo"]),
        &["cdg  is in service"],
    );
    world.wait("the node serves", || paris.has(&NodeOp::Undrain));

    // The stop hook of the node itself.
    let file = world.path("paris.json");
    paris.report(|status| status.sessions = 2);
    let hook = [
        "fleet",
        "drain",
        "--wait",
        "--timeout",
        "1s",
        "--membership",
        &file,
    ];
    says(&world.prints(&hook), &["cdg  drains, 2 sessions open"]);

    // A fault is below the table.
    paris.report(|status| {
        (status.clock_offset_ms, status.state) = (7_000, NodeState::Active);
    });
    world.wait("the fault shows", || {
        let done = world.run(&["fleet", "status"]);
        done.code == Some(1) && done.output.contains("cdg: the clock is off by +7s")
    });
}

/// The first node is watched before the others follow.
#[test]
fn upgrades_stop_at_a_fault() {
    let world = World::start();
    world.init();
    world.prints(&["fleet", "node", "remove", "node-1"]);
    let nodes = ["a", "b", "c"].map(|name| world.node(name));
    let text = world.prints(&[
        "fleet",
        "upgrade",
        "--canary",
        "1s",
        "--max-unavailable",
        "2",
    ]);
    says(
        &text,
        &[
            "a  upgraded from 0.1.0 to 0.2.0",
            "a  is watched for 1 s",
            "c  upgraded from 0.1.0 to 0.2.0",
            "3 nodes upgraded",
        ],
    );

    // A program that does not start.
    let failed = world.fails(
        &["fleet", "upgrade", "--canary", "1s", "--program", "missing"],
        1,
    );
    says(
        &failed,
        &["a was not upgraded, and continues: no such file"],
    );
    let touched = NodeOp::Upgrade {
        program: Some("missing".to_owned()),
    };
    assert!(nodes[0].has(&touched) && !nodes[1].has(&touched) && !nodes[2].has(&touched));

    // A program that is worse.
    nodes[0].report(|status| status.errors_per_10000 = 400);
    let worse = [
        "fleet",
        "upgrade",
        "--canary",
        "30s",
        "--program",
        "0.3.0",
        "--previous",
        "0.2.0",
    ];
    let stopped = world.fails(&worse, 1);
    says(
        &stopped,
        &[
            "the upgrade has stopped after a: 4.00 % of sessions fail",
            "a starts 0.2.0 again",
        ],
    );
    let back = NodeOp::Upgrade {
        program: Some("0.2.0".to_owned()),
    };
    world.wait("the first node has its old program", || nodes[0].has(&back));
    let new = NodeOp::Upgrade {
        program: Some("0.3.0".to_owned()),
    };
    assert!(nodes[0].has(&new) && !nodes[1].has(&new));
}

/// A flushed store server gets its users back from a node.
#[test]
fn a_flushed_store_is_restored() {
    let world = World::start();
    world.init();
    let paris = world.node("paris");
    for name in ["anna", "bert"] {
        world.prints(&["user", "add", name]);
    }
    world.wait("the node knows both", || {
        paris.status.lock().unwrap().users == 2
    });
    says(&world.prints(&["fleet", "resync"]), &["nothing to accept"]);
    world.store().run(&["FLUSHALL"]).unwrap();
    says(
        &world.fails(&["user", "list"], 3),
        &["the store does not have this realm", "adit fleet restore"],
    );
    world.wait("the node reports to the empty store", || {
        world
            .prints(&["fleet", "resync"])
            .contains("the store has lost everything")
    });
    let refused = world.fails(&["fleet", "resync", "--accept"], 1);
    says(&refused, &["is empty: all users would be dropped"]);
    let text = world.prints(&["fleet", "restore", "--from-node", "paris"]);
    says(&text, &["restored      2 users of paris"]);
    let list = world.prints(&["user", "list"]);
    says(&list, &["anna", "bert"]);
    world.wait("the node is well", || {
        paris.status.lock().unwrap().degraded.is_none()
    });
    // And it follows changes.
    world.prints(&["user", "add", "cleo"]);
    world.wait("the node knows all", || {
        paris.status.lock().unwrap().users == 3
    });
}

/// A store server from an old backup whose loss an operator accepts.
#[test]
fn a_loss_can_be_accepted() {
    let mut world = World::start();
    world.init();
    let paris = world.node("paris");
    world.prints(&["user", "add", "anna"]);
    let dump = world.path("backup.rdb");
    world.store().run(&["--rdb", &dump]).unwrap();
    world.prints(&["user", "add", "bert"]);
    world.wait("the node knows both", || {
        paris.status.lock().unwrap().users == 2
    });
    world.restore_backup(&dump);
    world.wait("the node notices", || {
        paris.status.lock().unwrap().degraded.is_some()
    });
    let shown = world.prints(&["fleet", "resync"]);
    says(
        &shown,
        &[
            "1 users",
            "2 users",
            "--accept",
            "adit fleet restore --from-node paris",
        ],
    );
    assert_eq!(paris.status.lock().unwrap().users, 2);
    says(
        &world.prints(&["fleet", "resync", "--accept"]),
        &["accepted      as change"],
    );
    world.wait("the node takes over", || {
        let status = paris.status.lock().unwrap();
        status.users == 1 && status.degraded.is_none()
    });
    let list = world.prints(&["user", "list"]);
    assert!(list.contains("anna") && !list.contains("bert"), "{list}");
}
