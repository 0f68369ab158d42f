//! The feed of a node, with a store that forgets and lies.

use std::sync::Arc;
use std::time::Duration;

use adit_fleet::{
    ChangeId, Feed, FeedEvent, FeedNext, FeedStep, MemoryStore, NodeOp, RecordError, Regression,
    Snapshot, Store,
};
use adit_net::system::{SystemRng, unix_now};

use crate::world::{add, cipher, follow, info, names, writer};

/// Returns a store with alice and bob, and a feed that has both.
async fn world() -> (MemoryStore, Arc<dyn Store>, Feed) {
    let memory = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    store.create_realm(&info()).await.unwrap();
    add(&store, &["alice", "bob"]).await;
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &store).await;
    (memory, store, feed)
}

/// Applies the next changes of the log.
async fn read_changes(feed: &mut Feed, store: &Arc<dyn Store>) -> FeedStep {
    let batch = store.changes(feed.position(), Duration::ZERO).await;
    feed.apply_batch(&batch.unwrap())
}

#[tokio::test]
async fn a_gap_leads_to_a_snapshot() {
    let (memory, store, mut feed) = world().await;
    add(&store, &["carol", "dave"]).await;
    writer(&store).delete(&[1]).await.unwrap();
    memory.tamper(|state| state.tamper_log(|log| drop(log.drain(..3))));
    let step = read_changes(&mut feed, &store).await;
    assert_eq!((step.next, step.events.len()), (FeedNext::Snapshot, 0));
    let events = follow(&mut feed, &store).await;
    assert_eq!(names(&feed), ["bob", "carol", "dave"]);
    let deleted =
        |event: &FeedEvent| matches!(event, FeedEvent::Delete(_, user) if user.name() == "alice");
    assert!(events.iter().any(deleted), "{events:?}");
    // A log that is empty.
    add(&store, &["eve"]).await;
    memory.tamper(|state| state.tamper_log(|log| log.clear()));
    follow(&mut feed, &store).await;
    assert_eq!(feed.len(), 4);
    assert_eq!(feed.refused(), 0);
}

#[tokio::test]
async fn changes_in_another_order_are_not_applied() {
    let (memory, store, mut feed) = world().await;
    let mut alice = writer(&store).find("alice").await.unwrap().unwrap();
    for disabled in [true, false] {
        alice.disabled = disabled;
        writer(&store)
            .put(std::slice::from_ref(&alice))
            .await
            .unwrap();
    }
    memory.tamper(|state| state.tamper_log(|log| log.swap(2, 3)));
    let step = read_changes(&mut feed, &store).await;
    assert_eq!((step.next, step.events.len()), (FeedNext::Snapshot, 0));
    // The numbers in the right order, and the records exchanged.
    memory.tamper(|state| {
        state.tamper_log(|log| {
            log.swap(2, 3);
            let (first, second) = (log[2].sealed.clone(), log[3].sealed.clone());
            (log[2].sealed, log[3].sealed) = (second, first);
        });
    });
    let step = read_changes(&mut feed, &store).await;
    let forged = |event: &FeedEvent| {
        matches!(
            event,
            FeedEvent::Refused {
                error: RecordError::Forged,
                ..
            }
        )
    };
    assert!(
        step.events.len() == 2 && step.events.iter().all(forged),
        "{:?}",
        step.events
    );
    assert!(!feed.user(alice.id).unwrap().disabled);
}

#[tokio::test]
async fn a_deleted_user_does_not_return() {
    let (memory, store, mut feed) = world().await;
    let alice = store.user(1).await.unwrap();
    writer(&store).delete(&[1]).await.unwrap();
    follow(&mut feed, &store).await;
    memory.tamper(|state| state.tamper(1, alice));
    let step = feed.apply_snapshot(&store.snapshot().await.unwrap(), false);
    assert_eq!(names(&feed), ["bob"]);
    let rolled_back = |event: &FeedEvent| {
        matches!(
            event,
            FeedEvent::Refused {
                error: RecordError::RolledBack,
                target: 1,
                ..
            }
        )
    };
    assert!(step.events.iter().any(rolled_back), "{:?}", step.events);
}

#[tokio::test]
async fn a_good_record_follows_a_refused_one() {
    let (memory, store, mut feed) = world().await;
    add(&store, &["carol"]).await;
    let good = store.user(3).await.unwrap().unwrap();
    let mut bytes = good.as_bytes().to_vec();
    bytes[40] ^= 1;
    memory.tamper(|state| {
        state.tamper_log(|log| log[2].sealed = adit_fleet::SealedRecord::from_bytes(bytes));
    });
    follow(&mut feed, &store).await;
    assert_eq!((names(&feed).len(), feed.refused()), (2, 1));
    // The record in the table is the right one.
    feed.apply_snapshot(&store.snapshot().await.unwrap(), false);
    assert_eq!(names(&feed), ["alice", "bob", "carol"]);
}

#[tokio::test]
async fn an_old_backup_takes_no_users_away() {
    let (memory, store, mut feed) = world().await;
    let backup = memory.copy_state();
    add(&store, &["carol"]).await;
    follow(&mut feed, &store).await;
    memory.restore_state(backup);
    let batch = store
        .changes(feed.read_after(), Duration::ZERO)
        .await
        .unwrap();
    let lost = Regression {
        held: ChangeId(3),
        found: ChangeId(2),
    };
    assert_eq!(feed.apply_batch(&batch).next, FeedNext::Regression(lost));
    assert_eq!(feed.regression(), Some(lost));
    // It stays so when the store has as many changes again.
    add(&store, &["dave", "eve", "frank"]).await;
    follow(&mut feed, &store).await;
    assert_eq!(names(&feed), ["alice", "bob", "carol"]);
    // Orders for nodes arrive, once, with their time.
    writer(&store)
        .send_node_op(7, &NodeOp::Resync { accept: true })
        .await
        .unwrap();
    let events = follow(&mut feed, &store).await;
    let [
        FeedEvent::Node {
            node: 7,
            op: NodeOp::Resync { accept: true },
            issued_unix,
        },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert!(issued_unix.abs_diff(unix_now().0) < 60);
    assert_eq!(follow(&mut feed, &store).await, []);
    // The operator accepts.
    let step = feed.apply_snapshot(&store.snapshot().await.unwrap(), true);
    assert_eq!(step.next, FeedNext::Continue);
    assert_eq!(names(&feed), ["alice", "bob", "dave", "eve", "frank"]);
    assert_eq!((feed.regression(), feed.position()), (None, ChangeId(6)));
    add(&store, &["grace"]).await;
    follow(&mut feed, &store).await;
    assert_eq!(feed.len(), 6);
}

#[tokio::test]
async fn a_table_is_continued() {
    let (_, store, feed) = world().await;
    let table = feed.to_table(&mut SystemRng);
    add(&store, &["carol"]).await;
    let mut next = Feed::from_table(cipher(), &table);
    assert_eq!(names(&next), ["alice", "bob"]);
    let events = follow(&mut next, &store).await;
    assert_eq!(events.len(), 1);
    assert_eq!(names(&next), ["alice", "bob", "carol"]);
    // A record in the file that was changed is missing, and read from the store.
    let mut broken = table.clone();
    broken.users[0].1 = adit_fleet::SealedRecord::from_bytes(vec![0; 80]);
    let mut healed = Feed::from_table(cipher(), &broken);
    assert_eq!(names(&healed), ["bob"]);
    healed.apply_snapshot(&store.snapshot().await.unwrap(), false);
    assert_eq!(names(&healed), ["alice", "bob", "carol"]);
}

#[tokio::test]
async fn an_empty_realm_is_no_loss() {
    let memory = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(memory);
    store.create_realm(&info()).await.unwrap();
    let mut feed = Feed::new(cipher());
    assert_eq!(
        feed.apply_snapshot(&Snapshot::default(), false).next,
        FeedNext::Continue
    );
    assert!(feed.is_empty() && feed.regression().is_none());
    add(&store, &["alice"]).await;
    follow(&mut feed, &store).await;
    assert_eq!(feed.len(), 1);
}

#[tokio::test]
async fn an_operation_after_a_loss_arrives_before_the_loss_is_noticed() {
    let (memory, store, mut feed) = world().await;
    memory.flush_all();
    store.create_realm(&info()).await.unwrap();
    writer(&store)
        .send_node_op(7, &NodeOp::Restore)
        .await
        .unwrap();
    let mut events = follow(&mut feed, &store).await;
    events.extend(follow(&mut feed, &store).await);
    assert!(
        matches!(
            &events[..],
            [FeedEvent::Node {
                node: 7,
                op: NodeOp::Restore,
                ..
            }]
        ),
        "{events:?}"
    );
    assert!(feed.regression().is_some());
}

#[tokio::test]
async fn an_operation_from_before_a_loss_is_not_repeated() {
    let (memory, store, mut feed) = world().await;
    writer(&store)
        .send_node_op(7, &NodeOp::Drain)
        .await
        .unwrap();
    assert_eq!(follow(&mut feed, &store).await.len(), 1);
    let backup = memory.copy_state();
    add(&store, &["carol"]).await;
    follow(&mut feed, &store).await;
    memory.restore_state(backup);
    for _ in 0..2 {
        assert_eq!(follow(&mut feed, &store).await, []);
    }
    assert!(feed.regression().is_some());
}
