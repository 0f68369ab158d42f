//! Many users: time and memory to load and to change them.

use std::time::{Duration, Instant};

use adit_fleet::{FleetUser, RealmWriter, RecordLimits};

use crate::world::{ByteServer, Realm};

/// Returns the resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Debug builds are slower than what is asserted here suggests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_users_are_loaded_and_changed_one_by_one() {
    const USERS: u32 = 10_000;
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let mut users: Vec<FleetUser> = (0..USERS)
        .map(|n| {
            FleetUser::new(
                0,
                format!("someone-{n:05}@example.org"),
                *RealmWriter::new_secret(),
            )
        })
        .collect();
    realm.writer.add(&mut users).await.unwrap();
    let before = resident();
    let since = Instant::now();
    let node = realm.node("a").await;
    let took = since.elapsed();
    let growth = resident().saturating_sub(before);
    eprintln!("{USERS} users: loaded in {took:?}, {growth} KiB");
    assert_eq!(node.control.user_count(), u64::from(USERS));
    assert!(took < Duration::from_secs(5), "{took:?}");
    node.session(&users[5000], server.addr).await.unwrap();
    let late = realm.add("late", RecordLimits::default()).await;
    let took = node.admits(&late, server.addr).await;
    eprintln!("one more: {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
}
