//! Usage through a store that loses requests and replies: each byte is counted once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adit_fleet::{
    Fault, FaultyStore, MemoryStore, PeriodLabel, Store, StoreCall, StoreErrorKind, UsageLedger,
};
use adit_interop::store_server::StoreServer;
use proptest::prelude::*;

use crate::laws::check_store_laws;
use crate::world::{info, open};

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_without_scripted_faults() {
    check_store_laws(Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())))).await;
}

#[tokio::test]
async fn faults_follow_the_script() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    store.fail_next(StoreCall::AllocateUsers, Fault::LostReply);
    store.fail_next(StoreCall::AllocateUsers, Fault::LostRequest);
    store.fail_next(StoreCall::Time, Fault::Delay(Duration::from_millis(50)));
    for _ in 0..2 {
        let error = store.allocate_users(1).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unreachable);
    }
    // The first of the two calls was performed.
    assert_eq!(store.allocate_users(1).await.unwrap(), 2);
    let since = Instant::now();
    store.time().await.unwrap();
    assert!(since.elapsed() >= Duration::from_millis(50));
    store.set_outage(Some(Fault::Error(StoreErrorKind::OutOfMemory)));
    assert_eq!(
        store.head().await.unwrap_err().kind,
        StoreErrorKind::OutOfMemory
    );
    assert!(!store.health().is_up);
    store.set_outage(None);
    store.head().await.unwrap();
    assert!(store.health().is_up);
}

/// The server is killed and started again, and replies are lost, while two nodes send usage.
#[tokio::test(flavor = "multi_thread")]
async fn each_byte_is_counted_once_by_a_server_that_is_killed() {
    let mut server = StoreServer::start_persistent().unwrap();
    let period = PeriodLabel::from_text("2026-11").unwrap();
    open(server.url()).create_realm(&info()).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let nodes: Vec<_> = (1..=2)
        .map(|node| {
            let (store, period, stop) = (open(server.url()), period.clone(), stop.clone());
            tokio::spawn(send_usage(FaultyStore::new(store), node, period, stop))
        })
        .collect();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.restart().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let mut counted = 0;
    for node in nodes {
        let (bytes, failures) = node.await.unwrap();
        assert!(failures > 0, "no call has failed");
        counted += bytes;
    }
    let totals = open(server.url()).usage(&period, None).await.unwrap();
    let sum: u64 = totals.iter().map(adit_fleet::UserTotal::sum).sum();
    assert_eq!(sum, counted);
}

/// Sends usage until `stop` is set and the store has everything, and returns the bytes and the number of failed calls.
async fn send_usage(
    store: FaultyStore,
    node: u32,
    period: PeriodLabel,
    stop: Arc<AtomicBool>,
) -> (u64, u32) {
    let mut ledger = UsageLedger::default();
    let (mut counted, mut failures, mut calls) = (0, 0, 0u32);
    loop {
        let is_over = stop.load(Ordering::Relaxed);
        if !is_over {
            ledger.add(calls % 7, &period, 5, 8);
            counted += 13;
        } else if ledger.is_empty() {
            return (counted, failures);
        }
        calls += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
        if calls.is_multiple_of(50) && !is_over {
            store.fail_next(StoreCall::AddUsage, Fault::LostReply);
        }
        let Some(batch) = ledger.cut().cloned() else {
            continue;
        };
        match store.add_usage(node, &batch).await {
            Ok(reply) => assert!(reply.last == batch.number && ledger.acknowledge(batch.number)),
            Err(why) => {
                assert!(why.is_outage(), "{why}");
                failures += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A node counts, sends, loses replies, and is killed and started again from what it has persisted.
    #[test]
    fn each_byte_is_counted_once(
        steps in proptest::collection::vec((0u32..3, 1u64..1000, 0u8..8), 1..120),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let store = FaultyStore::new(Arc::new(MemoryStore::new()));
            let period = PeriodLabel::from_text("2026-11").unwrap();
            let mut ledger = UsageLedger::default();
            let (mut counted, mut lost) = (0, 0);
            for (user, bytes, step) in steps {
                ledger.add(user, &period, bytes, 2 * bytes);
                counted += 3 * bytes;
                match step {
                    0 => store.fail_next(StoreCall::AddUsage, Fault::LostRequest),
                    1 => store.fail_next(StoreCall::AddUsage, Fault::LostReply),
                    // Killed: the batch was persisted, what is pending was not.
                    2 => {
                        let batch = ledger.unacknowledged().cloned();
                        let sent = batch.as_ref().map_or(0, adit_fleet::UsageBatch::bytes);
                        lost += ledger.unacknowledged_bytes() - sent;
                        ledger = UsageLedger::resume(ledger.last(), batch);
                    }
                    _ => {}
                }
                if let Some(batch) = ledger.cut().cloned()
                    && let Ok(reply) = store.add_usage(1, &batch).await
                {
                    prop_assert!(reply.last == batch.number);
                    prop_assert!(ledger.acknowledge(batch.number));
                }
            }
            while let Some(batch) = ledger.cut().cloned() {
                if store.add_usage(1, &batch).await.is_ok() {
                    prop_assert!(ledger.acknowledge(batch.number));
                }
            }
            let totals = store.usage(&period, None).await.unwrap();
            let sum: u64 = totals.iter().map(adit_fleet::UserTotal::sum).sum();
            prop_assert_eq!(sum, counted - lost);
            Ok(())
        })?;
    }
}
