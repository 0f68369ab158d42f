//! Users at all nodes, and the keys of nodes.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use adit_fleet::{FleetUser, RecordLimits};
use adit_interop::shadowsocks::percent_encode;
use adit_interop::socks_client::{self, Destination};

use super::world::{METHOD, World, until};
use crate::user_limits::world::ByteServer;

/// Returns the keys of a user at a node.
fn keys(world: &World, node: u32, user: &FleetUser) -> String {
    let identity = world.key.identity_psk(node, 16).unwrap();
    let own = user.psk(16).unwrap();
    format!("{}:{}", &*identity, &*own)
}

#[test]
fn a_user_is_known_at_four_nodes_within_a_second_and_gone_as_fast() {
    let world = World::start();
    let server = ByteServer::start();
    let nodes = ["a", "b", "c", "d"].map(|name| world.node(name));
    let ann = world.add("ann", RecordLimits::default());
    let since = Instant::now();
    for node in &nodes {
        node.admits(&ann, server.addr);
    }
    assert!(
        since.elapsed() < Duration::from_secs(1),
        "{:?}",
        since.elapsed()
    );
    let mut sessions: Vec<_> = nodes
        .iter()
        .map(|node| node.session(&ann, server.addr).unwrap())
        .collect();
    let bob = world.add("bob", RecordLimits::default());
    nodes[0].admits(&bob, server.addr);
    let mut other = nodes[0].session(&bob, server.addr).unwrap();
    let since = Instant::now();
    world.run(world.writer.delete(&[ann.id])).unwrap();
    for session in &mut sessions {
        // An end or a reset.
        let _ = session.read(&mut [0; 16]);
    }
    assert!(
        since.elapsed() < Duration::from_secs(1),
        "{:?}",
        since.elapsed()
    );
    other.write_all(b"still here").unwrap();
    until("the other session goes on", || server.received() == 10);
    for node in &nodes {
        assert!(node.session(&ann, server.addr).is_none());
    }
    until("all nodes report", || {
        let entries = world.nodes();
        entries.iter().all(|entry| {
            entry
                .status
                .as_ref()
                .is_some_and(|status| status.users == 1)
        })
    });
    for node in nodes {
        node.adit.stop().unwrap();
    }
}

/// A request that was captured for one node does not authenticate at another.
#[test]
fn a_request_for_one_node_fails_at_another() {
    let world = World::start();
    let server = ByteServer::start();
    let ann = world.add("ann", RecordLimits::default());
    let (a, b) = (world.node("a"), world.node("b"));
    for (node, key_of, expected) in [(&a, &a, true), (&b, &b, true), (&b, &a, false)] {
        let key = percent_encode(&keys(&world, key_of.id, &ann));
        let hop = format!("ss://{METHOD}:{key}@{}", node.keyed());
        let client = crate::setup::start(&["run", "mixed://127.0.0.1:0", &hop]);
        let before = server.received();
        let to = Destination::Addr(server.addr);
        if let Ok(mut stream) = socks_client::connect_through(client.addr(), None, &to) {
            let _ = stream.write_all(b"12345");
            std::thread::sleep(Duration::from_millis(500));
        }
        assert_eq!(
            server.received() == before + 5,
            expected,
            "{} at {}",
            key_of.id,
            node.id
        );
        client.stop().unwrap();
    }
}

#[test]
fn metrics_and_readiness_name_the_fleet() {
    let world = World::start();
    world.add("ann", RecordLimits::default());
    let node = world.node("a");
    until("the node is ready", || {
        world.ask(&node, "/readyz").body == "ready\n"
    });
    // It is ready before its first heartbeat was answered.
    until("the heartbeat is counted", || {
        let metrics = world.ask(&node, "/metrics").body;
        metrics.contains("op=\"heartbeat\",result=\"ok\"} ")
    });
    let metrics = world.ask(&node, "/metrics").body;
    for line in [
        "adit_fleet_up 1",
        "adit_fleet_change_number 1",
        "adit_fleet_regression 0",
        "adit_fleet_users{state=\"active\"} 1",
        "adit_fleet_call_seconds_count ",
        "adit_fleet_calls_total{op=\"heartbeat\",result=\"ok\"} ",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    node.adit.stop().unwrap();
}

/// A reload keeps users and sessions; an upgrade continues with the same file.
#[test]
fn a_reload_and_an_upgrade_keep_users_and_count_once() {
    let world = World::start();
    let server = ByteServer::start();
    let ann = world.add("ann", RecordLimits::default());
    let mut node = world.node("a");
    let mut session = node.session(&ann, server.addr).unwrap();
    session.write_all(&[b'x'; 1000]).unwrap();
    let file = world.node_folder("a").join("adit.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace(
            "[route.keyed]",
            "[route.more]\nlisten = \"socks5://127.0.0.1:0?users=fleet\"\n[route.keyed]",
        ),
    )
    .unwrap();
    node.adit
        .process()
        .send_signal(rustix::process::Signal::HUP)
        .unwrap();
    node.adit
        .process()
        .wait_lines("reloaded", 1, adit_interop::TEST_TIMEOUT)
        .unwrap();
    session.write_all(&[b'x'; 1000]).unwrap();
    until("the session goes on", || server.received() == 2000);
    let api = world.node_folder("a").join("admin.sock");
    let upgrade = ["upgrade", "--admin", api.to_str().unwrap()];
    crate::setup::ended(&upgrade).expect_success().unwrap();
    session.write_all(&[b'x'; 1000]).unwrap();
    let mut second = node.session(&ann, server.addr).unwrap();
    second.write_all(&[b'x'; 1000]).unwrap();
    until("everything arrives", || server.received() == 4000);
    drop((session, second));
    node.adit
        .process()
        .wait(adit_interop::TEST_TIMEOUT)
        .unwrap();
    until("everything is counted once", || world.counted(&ann) == 4000);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(world.counted(&ann), 4000);
    let log = node.adit.process().output();
    let (_, rest) = log.split_once("upgraded: process ").expect(&log);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let successor = rustix::process::Pid::from_raw(digits.parse().unwrap()).unwrap();
    rustix::process::kill_process(successor, rustix::process::Signal::TERM).unwrap();
    until("the successor ends", || {
        rustix::process::test_kill_process(successor).is_err()
    });
}
