//! Quotas over nodes, and counters that survive kills.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use adit_fleet::RecordLimits;

use super::world::{World, until};
use crate::user_limits::world::ByteServer;

const MIB: u64 = 1 << 20;

fn quota(bytes: u64) -> RecordLimits {
    RecordLimits {
        quota: Some(bytes),
        ..RecordLimits::default()
    }
}

/// Returns what the server has received once nothing more arrives.
fn settled(server: &ByteServer) -> u64 {
    let mut last = server.received();
    loop {
        thread::sleep(Duration::from_millis(200));
        let now = server.received();
        if now == last {
            return now;
        }
        last = now;
    }
}

#[test]
fn a_quota_over_three_nodes_cuts_live_sessions() {
    const QUOTA: u64 = 48 * MIB;
    let world = World::start();
    let server = ByteServer::start();
    let ann = world.add("ann", quota(QUOTA));
    let nodes = ["a", "b", "c"].map(|name| world.node(name));
    until("all nodes know each other", || {
        world
            .nodes()
            .iter()
            .filter(|entry| entry.status.is_some())
            .count()
            == 3
    });
    let mut slow = nodes[2].session(&ann, server.addr).unwrap();
    let loads: Vec<_> = nodes[..2]
        .iter()
        .map(|node| {
            let mut stream = node.session(&ann, server.addr).unwrap();
            thread::spawn(move || while stream.write_all(&[b'x'; 64 << 10]).is_ok() {})
        })
        .collect();
    loads.into_iter().for_each(|load| load.join().unwrap());
    // A session that moves little ends too, once its node knows.
    let since = Instant::now();
    while slow.write_all(b"x").is_ok() {
        assert!(
            since.elapsed() < Duration::from_millis(2400),
            "the slow session goes on"
        );
        thread::sleep(Duration::from_millis(20));
    }
    let received = settled(&server);
    // Three leases of at least 1 MiB, and buffers of sessions that were cut.
    assert!(received <= QUOTA + 5 * MIB, "{received}");
    until("everything is counted", || {
        world.counted(&ann) >= QUOTA.min(received)
    });
    assert!(world.counted(&ann) <= QUOTA + 5 * MIB);
    for node in &nodes {
        assert!(node.session(&ann, server.addr).is_none());
    }
}

/// Killed nodes lose at most what was counted since the last flush, and never count twice.
#[test]
fn counters_survive_kills_within_one_flush() {
    const RATE: u64 = 4_000_000;
    let world = World::start();
    let server = ByteServer::start();
    let limits = RecordLimits {
        rate: Some(RATE),
        ..quota(1 << 50)
    };
    let ann = world.add("ann", limits);
    let mut node = world.node("a");
    let id = node.id;
    let mut lost = 0;
    for round in 1..=5 {
        let mut stream = node.session(&ann, server.addr).unwrap();
        let load = thread::spawn(move || while stream.write_all(&[b'x'; 16 << 10]).is_ok() {});
        thread::sleep(Duration::from_millis(1500 + round * 137));
        node.kill();
        load.join().unwrap();
        let (received, counted) = (settled(&server), world.counted(&ann));
        assert!(
            counted <= received,
            "round {round}: {counted} of {received}"
        );
        // One interval of 1.1 s, and a busy machine.
        let allowed = RATE * 16 / 10;
        assert!(
            counted + lost + allowed >= received,
            "round {round}: {counted} of {received}"
        );
        lost = received - counted;
        node = world.start_node("a", id);
    }
    // After all restarts nothing was added again.
    thread::sleep(Duration::from_millis(1500));
    assert!(world.counted(&ann) <= server.received());
    node.adit.stop().unwrap();
}
