//! The store in a file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_fleet::{ChangeId, EmbeddedStore, Feed, MemoryStore, Store, StoreErrorKind};
use adit_interop::TempFolder;

use crate::laws::check_store_laws;
use crate::world::{PATIENCE, REALM, add, cipher, follow, info, names, open};

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_in_memory() {
    check_store_laws(Arc::new(MemoryStore::new())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_in_a_file() {
    let folder = TempFolder::new("embedded").unwrap();
    let path = folder.path().join("realm");
    let store = open(format!("file://{}", path.display()));
    check_store_laws(store.clone()).await;
    // Another process finds the same.
    let again = EmbeddedStore::open(&path, REALM).unwrap();
    let found = again.realm_info().await.unwrap();
    assert_eq!(found, store.realm_info().await.unwrap());
    assert_ne!(found, info(), "its key was replaced");
    assert!(again.head().await.unwrap() > ChangeId(40));
    assert_eq!(again.last_batch(5).await.unwrap(), 2);
    let other = EmbeddedStore::open(&path, "other").unwrap();
    assert_eq!(
        other.realm_info().await.unwrap_err().kind,
        StoreErrorKind::WrongRealm
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_share_a_file() {
    let folder = TempFolder::new("embedded-two").unwrap();
    let url = format!("file://{}", folder.path().join("realm").display());
    let (one, two) = (open(&url), open(&url));
    one.create_realm(&info()).await.unwrap();
    let waiting = {
        let two = two.clone();
        tokio::spawn(async move { two.changes(ChangeId(0), PATIENCE).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    let since = Instant::now();
    let users = add(&one, &["alice"]).await;
    assert_eq!(waiting.await.unwrap().unwrap().changes.len(), 1);
    assert!(
        since.elapsed() < Duration::from_secs(2),
        "{:?}",
        since.elapsed()
    );
    let more = add(&two, &["bob"]).await;
    assert_eq!(more[0].id, users[0].id + 1);
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &one).await;
    assert_eq!(names(&feed), ["alice", "bob"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_cut_is_an_earlier_one() {
    let folder = TempFolder::new("embedded-cut").unwrap();
    let path = folder.path().join("realm");
    let store = open(format!("file://{}", path.display()));
    store.create_realm(&info()).await.unwrap();
    add(&store, &["alice"]).await;
    add(&store, &["bob"]).await;
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let mut last = ChangeId(0);
    for len in (0..=whole.len()).step_by(7).chain([whole.len()]) {
        let cut = folder.path().join(format!("cut-{len}"));
        std::fs::write(&cut, &whole[..len]).unwrap();
        let store = EmbeddedStore::open(&cut, REALM).unwrap();
        let head = store.head().await.unwrap();
        assert!(head >= last, "cut at {len}");
        last = head;
        std::fs::remove_file(cut).unwrap();
    }
    assert_eq!(last, ChangeId(2));
    let other = folder.write_file("other", "something else").unwrap();
    let error = EmbeddedStore::open(&other, REALM).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::File, "{error}");
}

/// Reports are written every few seconds: the file does not grow without end.
#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_rewritten_when_it_is_long() {
    let folder = TempFolder::new("embedded-long").unwrap();
    let path = folder.path().join("realm");
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(&path, REALM).unwrap());
    store.create_realm(&info()).await.unwrap();
    add(&store, &["alice"]).await;
    let status = adit_fleet::NodeStatus {
        id: 1,
        name: "x".repeat(4000),
        ..adit_fleet::NodeStatus::default()
    };
    let mut longest = 0;
    for _ in 0..600 {
        store.heartbeat(&status).await.unwrap();
        longest = longest.max(std::fs::metadata(&path).unwrap().len());
    }
    assert!(longest < 2 << 20, "{longest}");
    let again = open(format!("file://{}", path.display()));
    assert_eq!(again.snapshot().await.unwrap().users.len(), 1);
}
