//! The realm of all tests, its users, and ways to wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_fleet::{
    Feed, FeedEvent, FeedNext, FleetUser, RealmInfo, RealmKey, RealmWriter, RecordCipher, Store,
    StoreLogin, open_store,
};

/// The name of the realm.
pub(crate) const REALM: &str = "laws";

/// Maximum time for anything that should happen soon, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn key() -> RealmKey {
    RealmKey::new([7; 32])
}

pub(crate) fn cipher() -> RecordCipher {
    RecordCipher::new(REALM, &key())
}

pub(crate) fn info() -> RealmInfo {
    RealmInfo::new(&cipher(), 1_795_867_200)
}

pub(crate) fn login(url: impl Into<String>) -> StoreLogin {
    StoreLogin {
        realm: REALM.to_owned(),
        url: url.into(),
        user: None,
        password: None,
        ca_pem: None,
    }
}

pub(crate) fn open(url: impl Into<String>) -> Arc<dyn Store> {
    open_store(&login(url)).unwrap()
}

pub(crate) fn writer(store: &Arc<dyn Store>) -> RealmWriter {
    RealmWriter::new(store.clone(), cipher())
}

/// Returns a user without a number.
pub(crate) fn user(name: &str) -> FleetUser {
    FleetUser::new(0, name, *RealmWriter::new_secret())
}

/// Adds users with these names, and returns them.
pub(crate) async fn add(store: &Arc<dyn Store>, names: &[&str]) -> Vec<FleetUser> {
    let mut users: Vec<FleetUser> = names.iter().map(|name| user(name)).collect();
    writer(store).add(&mut users).await.unwrap();
    users
}

/// Reads everything that the store has, and returns the events.
pub(crate) async fn follow(feed: &mut Feed, store: &Arc<dyn Store>) -> Vec<FeedEvent> {
    let mut events = Vec::new();
    for _ in 0..1000 {
        if feed.needs_snapshot() {
            let step = feed.apply_snapshot(&store.snapshot().await.unwrap(), false);
            events.extend(step.events);
        }
        let batch = store
            .changes(feed.read_after(), Duration::ZERO)
            .await
            .unwrap();
        let is_last = batch.changes.is_empty();
        let step = feed.apply_batch(&batch);
        events.extend(step.events);
        match step.next {
            FeedNext::Snapshot => {
                let step = feed.apply_snapshot(&store.snapshot().await.unwrap(), false);
                events.extend(step.events);
            }
            FeedNext::Continue if !is_last => {}
            FeedNext::Continue | FeedNext::Regression(_) => return events,
        }
    }
    panic!("the feed does not come to an end");
}

/// Returns the names of a feed's users.
pub(crate) fn names(feed: &Feed) -> Vec<String> {
    let mut names: Vec<String> = feed.users().map(|user| user.name).collect();
    names.sort();
    names
}

/// Repeats `attempt` until it returns a value.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut attempt: impl FnMut() -> F,
) -> T {
    let since = Instant::now();
    loop {
        if let Some(value) = attempt().await {
            return value;
        }
        assert!(since.elapsed() < PATIENCE, "{what} does not happen");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
