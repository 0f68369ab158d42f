//! A store that does not answer, or has lost its content.

use std::sync::Arc;
use std::time::Duration;

use adit_fleet::{
    Fault, FaultyStore, Grace, NodeOp, NodeRecord, RealmInfo, RecordLimits, Store, StoreErrorKind,
};
use adit_fleet_node::NodeReadiness;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

use crate::world::{ByteServer, Realm, closed, has_state, stays_open, until, upload};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traffic_and_users_outlive_the_store() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let node = realm.node("a").await;
    let mut session = node.session(&ann, server.addr).await.unwrap();
    // It stalls: no call is answered for a long time.
    node.faults
        .set_outage(Some(Fault::Delay(Duration::from_secs(30))));
    sleep(Duration::from_millis(1500)).await;
    let since = Instant::now();
    session.write_all(&vec![b'x'; 4 << 20]).await.unwrap();
    until("the bytes arrive", async || server.received() >= 4 << 20).await;
    assert!(
        since.elapsed() < Duration::from_secs(3),
        "{:?}",
        since.elapsed()
    );
    node.session(&ann, server.addr).await.unwrap();
    node.faults.set_outage(Some(Fault::LostRequest));
    node.session(&ann, server.addr).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_starts_from_its_copy_and_without_one_accepts_nobody() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let node = realm.node("a").await;
    node.admits(&ann, server.addr).await;
    node.control.close().await;
    node.engine.drain_and_stop(Duration::ZERO).await;
    drop(node);
    assert!(has_state(&realm.folder("a")));
    let unreachable = || {
        let faults = FaultyStore::new(Arc::new(realm.memory.clone()));
        faults.set_outage(Some(Fault::LostRequest));
        faults
    };
    let faults = unreachable();
    let again = realm.start("a", 1, faults.clone(), |_| {}).await;
    again.session(&ann, server.addr).await.unwrap();
    assert!(matches!(
        again.control.readiness(),
        NodeReadiness::Degraded(_)
    ));
    assert!(again.metric("adit_fleet_up") < 0.5);
    // Users that were added meanwhile appear once the store answers.
    let bob = realm.add("bob", RecordLimits::default()).await;
    assert!(again.session(&bob, server.addr).await.is_err());
    faults.set_outage(None);
    again.admits(&bob, server.addr).await;
    until("it is ready", async || {
        again.control.readiness() == NodeReadiness::Ready
    })
    .await;

    let fresh = realm.start("b", 2, unreachable(), |_| {}).await;
    assert!(fresh.session(&ann, server.addr).await.is_err());
    assert!(matches!(
        fresh.control.readiness(),
        NodeReadiness::NotReady(_)
    ));
    fresh.faults.set_outage(None);
    fresh.admits(&ann, server.addr).await;

    // A copy that is too old, and a node that wants the store.
    again.control.close().await;
    again.engine.drain_and_stop(Duration::ZERO).await;
    drop(again);
    sleep(Duration::from_millis(2100)).await;
    let old = |settings: &mut adit_fleet_node::NodeSettings| {
        settings.cache_max_age = Duration::from_secs(1);
    };
    let stale = realm.start("a", 1, unreachable(), old).await;
    assert!(stale.session(&ann, server.addr).await.is_err());
    stale.control.close().await;
    stale.engine.drain_and_stop(Duration::ZERO).await;
    drop(stale);
    let strict = realm
        .start("a", 1, unreachable(), |settings| {
            settings.require_store = true;
        })
        .await;
    strict.session(&ann, server.addr).await.unwrap();
    assert!(matches!(
        strict.control.readiness(),
        NodeReadiness::NotReady(_)
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_has_a_grace_while_the_store_is_away() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let limits = RecordLimits {
        quota: Some(1 << 40),
        ..RecordLimits::default()
    };
    let ann = realm.add("ann", limits).await;
    let short = |settings: &mut adit_fleet_node::NodeSettings| {
        settings.grace = Grace {
            bytes: 3 << 20,
            time: Duration::from_secs(60),
        };
    };
    let node = realm.node_with("a", short).await;
    let first = node.session(&ann, server.addr).await.unwrap();
    upload(first, 1000).await;
    sleep(Duration::from_millis(1500)).await;
    node.faults.set_outage(Some(Fault::LostRequest));
    let session = node.session(&ann, server.addr).await.unwrap();
    let sent = upload(session, u64::MAX).await;
    // At most the lease and the grace, and what was in buffers.
    assert!(sent >= 3 << 20, "{sent}");
    assert!(server.settled().await <= (64 << 20) + (4 << 20));
    assert!(node.session(&ann, server.addr).await.is_err());
    node.faults.set_outage(None);
    node.admits(&ann, server.addr).await;

    let open = realm
        .node_with("b", |settings| {
            short(settings);
            settings.open_quota = true;
        })
        .await;
    open.faults.set_outage(Some(Fault::LostRequest));
    let session = open.session(&ann, server.addr).await.unwrap();
    assert_eq!(upload(session, 100 << 20).await, 100 << 20);
}

/// A node knows of new ones with its next batch of usage. Those that do not report may have leases too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_of_the_realm_make_leases_smaller() {
    const QUOTA: u64 = 1 << 30;
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let limits = RecordLimits {
        quota: Some(QUOTA),
        ..RecordLimits::default()
    };
    let ann = realm.add("ann", limits).await;
    let node = realm.node_with("a", |settings| settings.grace.bytes = 0);
    let node = node.await;
    until("the node has reported", async || {
        let nodes = realm.memory.nodes().await.unwrap();
        nodes.iter().any(|entry| entry.status.is_some())
    })
    .await;
    for n in 1..16 {
        let record = NodeRecord {
            name: format!("silent-{n}"),
            ..NodeRecord::default()
        };
        realm.memory.add_node(&record).await.unwrap();
    }
    let first = node.session(&ann, server.addr).await.unwrap();
    upload(first, 1000).await;
    sleep(Duration::from_millis(1500)).await;
    node.faults.set_outage(Some(Fault::LostRequest));
    let session = node.session(&ann, server.addr).await.unwrap();
    upload(session, u64::MAX).await;
    let received = server.settled().await;
    // The lease of 16 nodes, and what the session had read; that of one would be 28 MiB.
    assert!(received <= QUOTA / 36 / 16 + (1 << 20), "{received}");
}

/// Neither a lease nor the grace begins anew: the file of the node remembers that the quota is used up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_that_is_used_up_stays_so_when_a_node_starts_without_the_store() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let quota = |bytes| RecordLimits {
        quota: Some(bytes),
        ..RecordLimits::default()
    };
    let ann = realm.add("ann", quota(4 << 20)).await;
    let bob = realm.add("bob", quota(1 << 40)).await;
    let node = realm.node("a").await;
    let session = node.session(&ann, server.addr).await.unwrap();
    upload(session, u64::MAX).await;
    until("the quota is used up", async || {
        node.session(&ann, server.addr).await.is_err()
    })
    .await;
    node.faults.set_outage(Some(Fault::LostRequest));
    node.control.close().await;
    node.engine.drain_and_stop(Duration::ZERO).await;
    drop(node);
    let faults = FaultyStore::new(Arc::new(realm.memory.clone()));
    faults.set_outage(Some(Fault::LostRequest));
    let node = realm.start("a", 1, faults, |_| {}).await;
    node.session(&bob, server.addr).await.unwrap();
    for _ in 0..3 {
        assert!(node.session(&ann, server.addr).await.is_err());
    }
    // The store decides, once it answers.
    let label = adit_fleet::PeriodLabel::new(ann.limits.period, adit_net::system::unix_now());
    realm.memory.reset_usage(ann.id, &[label]).await.unwrap();
    node.faults.set_outage(None);
    node.admits(&ann, server.addr).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushed_store_loses_nobody_and_is_restored() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let bob = realm.add("bob", RecordLimits::default()).await;
    let node = realm.node("a").await;
    let mut session = node.session(&ann, server.addr).await.unwrap();
    realm.memory.flush_all();
    until("the loss is noticed", async || {
        node.metric("adit_fleet_regression") > 0.5
    })
    .await;
    assert!(stays_open(&mut session).await);
    node.session(&bob, server.addr).await.unwrap();
    let NodeReadiness::Degraded(why) = node.control.readiness() else {
        panic!("{:?}", node.control.readiness());
    };
    assert!(why.contains("lost changes"), "{why}");
    // An operator lets the node write its users, after the realm itself: without one, no operation reaches a node.
    let info = RealmInfo::new(realm.writer.cipher(), 1);
    realm.memory.create_realm(&info).await.unwrap();
    realm
        .writer
        .send_node_op(1, &NodeOp::Restore)
        .await
        .unwrap();
    until("the users are back", async || {
        realm
            .memory
            .snapshot()
            .await
            .is_ok_and(|all| all.users.len() == 2)
    })
    .await;
    until("the alarm ends", async || {
        node.metric("adit_fleet_regression") < 0.5
    })
    .await;
    let carol = realm.add("carol", RecordLimits::default()).await;
    node.admits(&carol, server.addr).await;
    assert!(stays_open(&mut session).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_accepts_an_old_backup() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let backup = realm.memory.copy_state();
    let bob = realm.add("bob", RecordLimits::default()).await;
    let node = realm.node("a").await;
    let mut session = node.session(&bob, server.addr).await.unwrap();
    realm.memory.restore_state(backup);
    until("the loss is noticed", async || {
        node.metric("adit_fleet_regression") > 0.5
    })
    .await;
    assert!(stays_open(&mut session).await);
    let accept = NodeOp::Resync { accept: true };
    realm.writer.send_node_op(1, &accept).await.unwrap();
    closed(&mut session).await;
    node.admits(&ann, server.addr).await;
    assert!(node.session(&bob, server.addr).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_refuses_is_named() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let node = realm.node("a").await;
    node.faults
        .set_outage(Some(Fault::Error(StoreErrorKind::Denied {
            command: Some("xread".to_owned()),
        })));
    until("the fault is named", async || {
        matches!(node.control.readiness(), NodeReadiness::Degraded(why) if why.contains("xread"))
    })
    .await;
    node.session(&ann, server.addr).await.unwrap();
}
