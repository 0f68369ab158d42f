//! A store server that stalls, is away, or is empty.

use std::io::Write;
use std::time::{Duration, Instant};

use adit_fleet::{NodeOp, RealmInfo, RecordLimits};
use adit_net::system::unix_now;

use super::world::{World, until};
use crate::user_limits::world::ByteServer;

const MIB: usize = 1 << 20;

#[test]
fn a_stalled_store_server_stops_no_traffic() {
    let world = World::start();
    let server = ByteServer::start();
    let ann = world.add("ann", RecordLimits::default());
    let node = world.node("a");
    let mut session = node.session(&ann, server.addr).unwrap();
    let piece = vec![b'x'; MIB];
    let mut move_bytes = |count: u64| {
        let (since, before) = (Instant::now(), server.received());
        for _ in 0..count {
            session.write_all(&piece).unwrap();
        }
        until("the bytes arrive", || {
            server.received() == before + (count << 20)
        });
        since.elapsed()
    };
    let before = move_bytes(64);
    world.server.stall().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let during = move_bytes(64);
    assert!(
        during < before * 3 + Duration::from_millis(500),
        "{before:?}, {during:?}"
    );
    node.admits(&ann, server.addr);
    until("the fault is reported", || {
        world
            .ask(&node, "/readyz")
            .body
            .starts_with("degraded: the store has not answered")
    });
    world.server.resume().unwrap();
    let since = Instant::now();
    until("the node is ready again", || {
        world.ask(&node, "/readyz").body == "ready\n"
    });
    assert!(
        since.elapsed() < Duration::from_secs(10),
        "{:?}",
        since.elapsed()
    );
    until("everything is counted", || world.counted(&ann) == 128 << 20);
    node.adit.stop().unwrap();
}

#[test]
fn a_node_starts_from_its_copy_and_without_one_accepts_nobody() {
    let mut world = World::start();
    let server = ByteServer::start();
    let ann = world.add("ann", RecordLimits::default());
    let node = world.node("a");
    node.admits(&ann, server.addr);
    let id = node.id;
    node.adit.stop().unwrap();
    world.server.kill().unwrap();
    let again = world.start_node("a", id);
    again.admits(&ann, server.addr);
    let reply = world.ask(&again, "/readyz");
    assert_eq!(reply.status, 200);
    assert!(reply.body.starts_with("degraded: "), "{}", reply.body);
    world.write_node("b", id + 1, "");
    let fresh = world.start_node("b", id + 1);
    assert!(fresh.session(&ann, server.addr).is_none());
    assert_eq!(world.ask(&fresh, "/readyz").status, 503);
    // The store server comes back empty: no user is lost where users were known.
    world.server.restart().unwrap();
    until("the loss is noticed", || {
        world
            .ask(&again, "/metrics")
            .body
            .contains("\nadit_fleet_regression 1")
            || world.ask(&again, "/readyz").body.contains("realm")
    });
    again.admits(&ann, server.addr);
    assert!(fresh.session(&ann, server.addr).is_none());
    again.adit.stop().unwrap();
    fresh.adit.stop().unwrap();
}

#[test]
fn a_flushed_store_loses_nobody_and_a_node_restores_it() {
    let world = World::start();
    let server = ByteServer::start();
    let ann = world.add("ann", RecordLimits::default());
    let (a, b) = (world.node("a"), world.node("b"));
    let mut session = a.session(&ann, server.addr).unwrap();
    assert_eq!(world.server.run(&["FLUSHALL"]).unwrap(), "OK");
    for node in [&a, &b] {
        until("the loss is noticed", || {
            world
                .ask(node, "/metrics")
                .body
                .contains("\nadit_fleet_regression 1")
        });
        node.admits(&ann, server.addr);
    }
    // A flushed store has no realm, and no operation could reach a node.
    let info = RealmInfo::new(world.writer.cipher(), unix_now().0);
    world.run(world.writer.store().create_realm(&info)).unwrap();
    world
        .run(world.writer.send_node_op(a.id, &NodeOp::Restore))
        .unwrap();
    for node in [&a, &b] {
        until("the loss is over", || {
            world
                .ask(node, "/metrics")
                .body
                .contains("\nadit_fleet_regression 0")
        });
    }
    let bob = world.add("bob", RecordLimits::default());
    a.admits(&bob, server.addr);
    b.admits(&bob, server.addr);
    session.write_all(b"x").unwrap();
    until("the session goes on", || server.received() == 1);
}
