//! Quotas over nodes, and usage that is counted once.

use std::time::Duration;

use adit_fleet::{Fault, FaultyStore, FleetUser, PeriodLabel, RecordLimits, Store, StoreCall};
use adit_wire::QuotaPeriod;
use tokio::time::{Instant, sleep};

use crate::world::{ByteServer, Realm, closed, until, upload};

fn quota(bytes: u64) -> RecordLimits {
    RecordLimits {
        quota: Some(bytes),
        period: QuotaPeriod::Month,
        ..RecordLimits::default()
    }
}

/// Returns what the store has counted for a user.
async fn counted(realm: &Realm, user: &FleetUser) -> u64 {
    let label = PeriodLabel::new(user.limits.period, adit_net::system::unix_now());
    let totals = realm.memory.usage(&label, Some(&[user.id])).await.unwrap();
    totals.first().map_or(0, adit_fleet::UserTotal::sum)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_holds_over_all_nodes() {
    const QUOTA: u64 = 20 << 20;
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", quota(QUOTA)).await;
    let (a, b) = (realm.node("a").await, realm.node("b").await);
    let mut loads = Vec::new();
    for node in [&a, &b, &a] {
        let session = node.session(&ann, server.addr).await.unwrap();
        loads.push(tokio::spawn(upload(session, u64::MAX)));
    }
    let since = Instant::now();
    for load in loads {
        load.await.unwrap();
    }
    assert!(
        since.elapsed() < Duration::from_secs(15),
        "{:?}",
        since.elapsed()
    );
    let received = server.settled().await;
    // The bound of the leases is 2 MiB for two nodes; the rest is in buffers of sessions that were cut.
    assert!(received <= QUOTA + (3 << 20), "{received}");
    until("everything is counted", async || {
        counted(&realm, &ann).await >= QUOTA
    })
    .await;
    let total = counted(&realm, &ann).await;
    assert!(
        total >= received && total <= QUOTA + (4 << 20),
        "{total} of {received}"
    );
    assert!(a.session(&ann, server.addr).await.is_err());
    // More quota, and the user is served again.
    let mut more = ann.clone();
    more.limits.quota = Some(4 * QUOTA);
    realm.writer.put(&[more]).await.unwrap();
    a.admits(&ann, server.addr).await;
    b.admits(&ann, server.addr).await;
}

/// The lease of a user who moves more than 64 MiB within a second lasts for about a second, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_user_needs_few_leases() {
    const BYTES: u64 = 2 << 30;
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", quota(1 << 40)).await;
    let node = realm.node("a").await;
    let session = node.session(&ann, server.addr).await.unwrap();
    let since = Instant::now();
    assert_eq!(upload(session, BYTES).await, BYTES);
    let seconds = since.elapsed().as_secs();
    until("everything is counted", async || {
        counted(&realm, &ann).await == BYTES
    })
    .await;
    let batches = realm.memory.last_batch(1).await.unwrap();
    // With leases of 64 MiB, 43 of them for the bytes alone.
    assert!(
        batches <= 12 + 2 * seconds,
        "{batches} batches in {seconds} s"
    );
}

/// A user whose quota ends at one node is cut at the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_quota_cuts_sessions_that_move_bytes_elsewhere() {
    const QUOTA: u64 = 8 << 20;
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", quota(QUOTA)).await;
    let (a, b) = (realm.node("a").await, realm.node("b").await);
    let mut slow = b.session(&ann, server.addr).await.unwrap();
    let fast = a.session(&ann, server.addr).await.unwrap();
    upload(fast, u64::MAX).await;
    let since = Instant::now();
    let trickle = async {
        use tokio::io::AsyncWriteExt;
        while slow.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), trickle)
        .await
        .expect("the session goes on");
    let took = since.elapsed();
    assert!(took < Duration::from_millis(2500), "{took:?}");
    closed(&mut slow).await;
    // An operator resets the usage.
    let label = PeriodLabel::new(ann.limits.period, adit_net::system::unix_now());
    realm.memory.reset_usage(ann.id, &[label]).await.unwrap();
    b.admits(&ann, server.addr).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_replies_count_nothing_twice() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", quota(1 << 40)).await;
    let node = realm.node("a").await;
    for round in 0..4 {
        let fault = if round % 2 == 0 {
            Fault::LostReply
        } else {
            Fault::LostRequest
        };
        node.faults.fail_next(StoreCall::AddUsage, fault);
        let session = node.session(&ann, server.addr).await.unwrap();
        assert_eq!(upload(session, 300_000).await, 300_000);
        sleep(Duration::from_millis(1200)).await;
    }
    until("everything is counted", async || {
        counted(&realm, &ann).await >= 1_200_000
    })
    .await;
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(counted(&realm, &ann).await, 1_200_000);
    assert_eq!(server.received(), 1_200_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_sends_what_was_not_acknowledged_once() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", quota(1 << 40)).await;
    let node = realm.node("a").await;
    // The store has it, and the node does not know.
    node.faults.fail_next(StoreCall::AddUsage, Fault::LostReply);
    let session = node.session(&ann, server.addr).await.unwrap();
    upload(session, 100_000).await;
    until("the store has the batch", async || {
        counted(&realm, &ann).await == 100_000
    })
    .await;
    node.faults.set_outage(Some(Fault::LostRequest));
    node.control.close().await;
    node.engine.drain_and_stop(Duration::ZERO).await;
    drop(node);
    let faults = FaultyStore::new(std::sync::Arc::new(realm.memory.clone()));
    let again = realm.start("a", 1, faults, |_| {}).await;
    let session = again.session(&ann, server.addr).await.unwrap();
    upload(session, 50_000).await;
    until("the rest is counted", async || {
        counted(&realm, &ann).await >= 150_000
    })
    .await;
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(counted(&realm, &ann).await, 150_000);
}

/// A close grants open sessions what is left, and sends everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_closes_and_reopens_counts_on() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", quota(1 << 30)).await;
    let node = realm.node("a").await;
    let session = node.session(&ann, server.addr).await.unwrap();
    let other = node.session(&ann, server.addr).await.unwrap();
    upload(session, 70_000).await;
    server.settled().await;
    node.control.close().await;
    assert_eq!(counted(&realm, &ann).await, 70_000);
    // More than the last lease, without the node.
    assert_eq!(upload(other, 80 << 20).await, 80 << 20);
    node.control.reopen().await;
    let expected = 70_000 + (80 << 20);
    until("everything is counted", async || {
        counted(&realm, &ann).await == expected
    })
    .await;
}
