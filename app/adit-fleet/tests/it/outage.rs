//! Servers that stop answering: calls end in time, and the store finds the server again.

use std::time::{Duration, Instant};

use adit_fleet::StoreErrorKind;

use crate::servers::plain;
use crate::world::{add, eventually, info, open};

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_a_stalled_server_end_in_time_and_then_at_once() {
    let server = plain();
    let store = open(server.url());
    store.create_realm(&info()).await.unwrap();
    server.stall().unwrap();
    let since = Instant::now();
    let error = store.head().await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unreachable);
    assert!(
        since.elapsed() < Duration::from_secs(4),
        "{:?}",
        since.elapsed()
    );
    assert!(!store.health().is_up);
    while store.health().retry_in.is_none() {
        store.head().await.unwrap_err();
        assert!(since.elapsed() < Duration::from_secs(30));
    }
    // Now the store does not wait any more.
    let (mut failed, since) = (0, Instant::now());
    while since.elapsed() < Duration::from_millis(500) {
        store.head().await.unwrap_err();
        failed += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(failed > 10, "{failed} calls in {:?}", since.elapsed());
    tokio::time::sleep(Duration::from_secs(7)).await;
    server.resume().unwrap();
    let resumed = Instant::now();
    eventually("the recovery", || async { store.head().await.ok() }).await;
    assert!(
        resumed.elapsed() < Duration::from_secs(10),
        "{:?}",
        resumed.elapsed()
    );
    assert!(store.health().is_up);
    assert_eq!(store.health().retry_in, None);
    add(&store, &["alice"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_later_is_found() {
    let mut server = plain();
    let store = open(server.url());
    store.create_realm(&info()).await.unwrap();
    server.kill().unwrap();
    let error = store.head().await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unreachable, "{error}");
    let waiting = store
        .changes(adit_fleet::ChangeId(0), Duration::from_secs(5))
        .await;
    assert_eq!(waiting.unwrap_err().kind, StoreErrorKind::Unreachable);
    server.restart().unwrap();
    eventually("the connection", || async { store.head().await.ok() }).await;
    // Without persistence, it has lost everything.
    assert_eq!(
        store.realm_info().await.unwrap_err().kind,
        StoreErrorKind::WrongRealm
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_read_ends_when_the_server_stalls() {
    let server = plain();
    let store = open(server.url());
    store.create_realm(&info()).await.unwrap();
    let waiting = {
        let store = store.clone();
        let after = store.head().await.unwrap();
        tokio::spawn(async move { store.changes(after, Duration::from_secs(1)).await })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    let since = Instant::now();
    server.stall().unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unreachable);
    assert!(
        since.elapsed() < Duration::from_secs(6),
        "{:?}",
        since.elapsed()
    );
    server.resume().unwrap();
    eventually("the recovery", || async { store.head().await.ok() }).await;
}
