//! The laws of the trait `Store`, which hold for each implementation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_fleet::{
    ChangeId, ChangeOp, Feed, FeedEvent, FeedNext, NodeOp, NodeRecord, NodeState, NodeStatus,
    PeriodLabel, RealmInfo, RecordCipher, RecordError, SaltClaim, SealedRecord, Store,
    StoreErrorKind, UsageBatch, UserActivity, UserUsage, WriteError, reseal,
};
use adit_net::system::{SystemRng, unix_now};

use crate::world::{PATIENCE, REALM, add, cipher, follow, info, key, names, user, writer};

/// Checks all laws of an empty store.
pub(crate) async fn check_store_laws(store: Arc<dyn Store>) {
    a_realm_is_created_once(&store).await;
    users_are_written_together_or_not_at_all(&store).await;
    a_waiting_reader_learns_of_changes(&store).await;
    writers_do_not_lose_each_others_changes(&store).await;
    usage_is_counted_once(&store).await;
    a_salt_is_new_once(&store).await;
    devices_are_counted_over_nodes(&store).await;
    nodes_are_known_while_they_do_not_report(&store).await;
    a_membership_is_taken_once(&store).await;
    the_audit_log_is_in_order(&store).await;
    users_are_restored(&store).await;
    a_key_is_replaced_unless_someone_writes(&store).await;
    let drift = store.time().await.unwrap() / 1000;
    assert!(drift.abs_diff(unix_now().0) < 60);
    assert!(store.health().is_up);
}

fn kind<T: std::fmt::Debug>(result: Result<T, WriteError>) -> StoreErrorKind {
    match result.unwrap_err() {
        WriteError::Store(why) => why.kind,
        other => panic!("{other}"),
    }
}

async fn a_realm_is_created_once(store: &Arc<dyn Store>) {
    assert_eq!(
        store.realm_info().await.unwrap_err().kind,
        StoreErrorKind::WrongRealm
    );
    let request = cipher().kick(1, ChangeId(1), &mut SystemRng).unwrap();
    let early = store.write(ChangeId(0), &[request]).await;
    assert_eq!(early.unwrap_err().kind, StoreErrorKind::WrongRealm);
    assert_eq!(store.head().await.unwrap(), ChangeId(0));
    store.create_realm(&info()).await.unwrap();
    let again = store.create_realm(&info()).await;
    assert_eq!(again.unwrap_err().kind, StoreErrorKind::RealmExists);
    let found = store.realm_info().await.unwrap();
    assert_eq!(found, info());
    found.check(&cipher()).unwrap();
    let other_key = RecordCipher::new(&info().realm, &adit_fleet::RealmKey::new([8; 32]));
    let other_name = RecordCipher::new("other", &key());
    for other in [other_key, other_name] {
        assert_eq!(
            found.check(&other).unwrap_err().kind,
            StoreErrorKind::WrongRealm
        );
    }
    let newer = RealmInfo {
        format: 99,
        ..found
    };
    newer.check(&cipher()).unwrap_err();
}

async fn users_are_written_together_or_not_at_all(store: &Arc<dyn Store>) {
    let realm = writer(store);
    let users = add(store, &["alice", "bob"]).await;
    assert_eq!(users[1].id, users[0].id + 1);
    assert_eq!(store.head().await.unwrap(), ChangeId(2));
    assert_eq!(realm.find("bob").await.unwrap().as_ref(), Some(&users[1]));
    assert_eq!(realm.find("carol").await.unwrap(), None);
    let sealed = store.user(users[0].id).await.unwrap().unwrap();
    assert_eq!(cipher().open(users[0].id, &sealed).unwrap(), users[0]);
    assert_eq!(store.user(9999).await.unwrap(), None);

    // A taken name, also as the second of two: neither is written.
    let mut more = [user("dave"), user("alice")];
    assert_eq!(kind(realm.add(&mut more).await), StoreErrorKind::NameTaken);
    assert_eq!(realm.find("dave").await.unwrap(), None);
    assert_eq!(
        kind(realm.add(&mut [user("eve"), user("eve")]).await),
        StoreErrorKind::NameTaken
    );
    assert_eq!(store.head().await.unwrap(), ChangeId(2));

    // Names change hands in one write.
    let (mut alice, mut bob) = (users[0].clone(), users[1].clone());
    alice.name = "alice-2".to_owned();
    bob.name = "alice".to_owned();
    realm.put(&[alice.clone(), bob.clone()]).await.unwrap();
    assert_eq!(realm.find("alice").await.unwrap(), Some(bob.clone()));
    assert_eq!(realm.find("bob").await.unwrap(), None);

    // A write that expects another state changes nothing.
    let request = cipher().put(&alice, ChangeId(2), &mut SystemRng).unwrap();
    let stale = store.write(ChangeId(1), &[request]).await.unwrap_err();
    assert_eq!(stale.kind, StoreErrorKind::Conflict { head: ChangeId(4) });

    assert_eq!(
        kind(realm.delete(&[alice.id, 9999]).await),
        StoreErrorKind::Gone
    );
    realm.delete(&[alice.id]).await.unwrap();
    assert_eq!(kind(realm.delete(&[alice.id]).await), StoreErrorKind::Gone);
    assert_eq!(realm.find("alice-2").await.unwrap(), None);
    realm.kick(bob.id).await.unwrap();
    realm.send_node_op(3, &NodeOp::Drain).await.unwrap();
    realm.set_policy("{}").await.unwrap();

    // The log, and a snapshot, have the same users.
    let mut from_log = Feed::new(cipher());
    from_log.apply_snapshot(&adit_fleet::Snapshot::default(), false);
    let batch = store.changes(ChangeId(0), Duration::ZERO).await.unwrap();
    let numbers: Vec<u64> = batch.changes.iter().map(|change| change.number.0).collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    assert_eq!(batch.head, ChangeId(8));
    let step = from_log.apply_batch(&batch);
    assert_eq!(step.next, FeedNext::Continue);
    let kinds: Vec<&str> = step.events.iter().map(name_of).collect();
    assert_eq!(
        kinds,
        [
            "put", "put", "put", "put", "delete", "kick", "node", "policy"
        ]
    );
    let mut from_snapshot = Feed::new(cipher());
    from_snapshot.apply_snapshot(&store.snapshot().await.unwrap(), false);
    assert_eq!(names(&from_log), ["alice"]);
    assert_eq!(names(&from_snapshot), ["alice"]);
    assert_eq!(from_snapshot.position(), from_log.position());
}

fn name_of(event: &FeedEvent) -> &'static str {
    match event {
        FeedEvent::Put(..) => "put",
        FeedEvent::Delete(..) => "delete",
        FeedEvent::Kick(_) => "kick",
        FeedEvent::Node { .. } => "node",
        FeedEvent::Policy(_) => "policy",
        _ => "other",
    }
}

async fn a_waiting_reader_learns_of_changes(store: &Arc<dyn Store>) {
    let head = store.head().await.unwrap();
    let since = Instant::now();
    let none = store
        .changes(head, Duration::from_millis(120))
        .await
        .unwrap();
    assert_eq!((none.head, none.changes.len()), (head, 0));
    assert!(
        since.elapsed() >= Duration::from_millis(100),
        "{:?}",
        since.elapsed()
    );
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { store.changes(head, PATIENCE).await })
    };
    tokio::time::sleep(Duration::from_millis(150)).await;
    let written = Instant::now();
    writer(store).kick(1).await.unwrap();
    let batch = waiting.await.unwrap().unwrap();
    assert!(written.elapsed() < PATIENCE / 2);
    assert_eq!(batch.head, head.next());
    assert_eq!(batch.changes.len(), 1);
    assert_eq!(batch.changes[0].op, Some(ChangeOp::Kick));
    // A reader that was given up does not hold up the next one.
    for _ in 0..3 {
        let given_up = store.changes(head.next(), PATIENCE);
        let _ = tokio::time::timeout(Duration::from_millis(30), given_up).await;
    }
    let again = store.changes(head, PATIENCE).await.unwrap();
    assert_eq!(again.changes.len(), 1);
}

async fn writers_do_not_lose_each_others_changes(store: &Arc<dyn Store>) {
    let before = store.head().await.unwrap();
    let mut feed = Feed::new(cipher());
    follow(&mut feed, store).await;
    let known = feed.len();
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..10 {
                    let mut users = [user(&format!("user-{task}-{n}"))];
                    writer(&store).add(&mut users).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.head().await.unwrap(), before.plus(40));
    let events = follow(&mut feed, store).await;
    assert_eq!(events.len(), 40);
    assert_eq!(feed.len(), known + 40);
    let ids: BTreeSet<u32> = feed.users().map(|user| user.id).collect();
    assert_eq!(ids.len(), feed.len());
    assert_eq!(feed.refused(), 0);
}

async fn usage_is_counted_once(store: &Arc<dyn Store>) {
    let period = |text| PeriodLabel::from_text(text).unwrap();
    let (month, day) = (period("2026-11"), period("2026-11-28"));
    let entry = |user, period: &PeriodLabel, up, down| UserUsage {
        user,
        period: period.clone(),
        up,
        down,
    };
    let batch = UsageBatch {
        number: 1,
        entries: vec![
            entry(1, &month, 10, 100),
            entry(1, &day, 1, 2),
            entry(2, &month, 0, 7),
        ],
    };
    let first = store.add_usage(5, &batch).await.unwrap();
    assert_eq!((first.applied, first.last), (true, 1));
    // Those that do not report have leases too.
    let nodes = store.nodes().await.unwrap().len();
    assert_eq!(usize::try_from(first.nodes).unwrap(), nodes);
    let record = NodeRecord {
        name: "counted".to_owned(),
        ..NodeRecord::default()
    };
    let id = store.add_node(&record).await.unwrap();
    let sums: Vec<(u64, u64)> = first
        .totals
        .iter()
        .map(|total| (total.up, total.down))
        .collect();
    assert_eq!(sums, [(10, 100), (1, 2), (0, 7)]);
    // The reply was lost: the same batch again.
    let again = store.add_usage(5, &batch).await.unwrap();
    assert_eq!((again.applied, again.last), (false, 1));
    assert_eq!(again.totals, first.totals);
    assert_eq!(again.nodes, first.nodes + 1);
    store.remove_node(id).await.unwrap();
    // Another node has its own numbers.
    let other = store.add_usage(6, &batch).await.unwrap();
    assert!(other.applied);
    assert_eq!((other.totals[0].up, other.totals[0].down), (20, 200));
    assert_eq!(other.totals[0].sum(), 220);
    assert_eq!(store.last_batch(5).await.unwrap(), 1);
    assert_eq!(store.last_batch(77).await.unwrap(), 0);
    let asked = store.usage(&month, Some(&[2, 1, 3])).await.unwrap();
    let sums: Vec<(u32, u64)> = asked
        .iter()
        .map(|total| (total.user, total.sum()))
        .collect();
    assert_eq!(sums, [(2, 14), (1, 220), (3, 0)]);
    let mut all = store.usage(&month, None).await.unwrap();
    all.sort_by_key(|total| total.user);
    let sums: Vec<(u32, u64)> = all.iter().map(|total| (total.user, total.up)).collect();
    assert_eq!(sums, [(1, 20), (2, 0)]);
    assert!(
        store
            .usage(&period("2026-12"), None)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(store.usage(&month, Some(&[])).await.unwrap().is_empty());
    store
        .reset_usage(1, std::slice::from_ref(&month))
        .await
        .unwrap();
    let after = store.usage(&month, Some(&[1, 2])).await.unwrap();
    assert_eq!((after[0].sum(), after[1].sum()), (0, 14));
    let untouched = store.usage(&day, Some(&[1])).await.unwrap();
    assert_eq!(untouched[0].sum(), 6);
    // As many entries as a batch may have.
    let entries = (0..1000).map(|user| entry(user, &month, 1, 1)).collect();
    let large = UsageBatch { number: 2, entries };
    assert_eq!(store.add_usage(5, &large).await.unwrap().totals.len(), 1000);
}

async fn a_salt_is_new_once(store: &Arc<dyn Store>) {
    let now = store.time().await.unwrap() / 60_000;
    let claim = |bucket, byte| SaltClaim {
        bucket,
        digest: [byte; 8],
    };
    let claims = [
        claim(now, 1),
        claim(now, 2),
        claim(now, 1),
        claim(now - 1, 1),
    ];
    let new = store.claim_salts(&claims).await.unwrap();
    assert_eq!(new, [true, true, false, true]);
    let again = store.claim_salts(&claims).await.unwrap();
    assert_eq!(again, [false; 4]);
    assert!(store.claim_salts(&[]).await.unwrap().is_empty());
    // Digests are bytes, not text.
    let bytes = [claim(now, 0), claim(now, 0xff), claim(now, b'\n')];
    assert_eq!(store.claim_salts(&bytes).await.unwrap(), [true; 3]);
}

async fn devices_are_counted_over_nodes(store: &Arc<dyn Store>) {
    let report = |sessions, devices: &[u8]| UserActivity {
        user: 3,
        sessions,
        max_devices: Some(2),
        devices: devices.iter().map(|byte| [*byte; 8]).collect(),
        gone: Vec::new(),
    };
    let first = store.report_activity(1, &[report(2, &[1])]).await.unwrap();
    assert_eq!(
        (first[0].nodes, first[0].sessions, first[0].devices),
        (1, 2, 1)
    );
    let second = store
        .report_activity(2, &[report(5, &[2, 3, 1])])
        .await
        .unwrap();
    assert_eq!(
        (second[0].nodes, second[0].sessions, second[0].devices),
        (2, 7, 2)
    );
    assert_eq!(second[0].refused, [[3; 8]]);
    let gone = store.report_activity(1, &[report(0, &[])]).await.unwrap();
    assert_eq!((gone[0].nodes, gone[0].sessions), (1, 5));
    let unlimited = UserActivity {
        user: 4,
        sessions: 1,
        max_devices: None,
        devices: (0..50).map(|byte| [byte; 8]).collect(),
        gone: Vec::new(),
    };
    let both = store
        .report_activity(1, &[report(1, &[1]), unlimited])
        .await
        .unwrap();
    assert_eq!((both[0].user, both[1].user), (3, 4));
    assert_eq!((both[1].devices, both[1].refused.len()), (50, 0));
    assert!(store.report_activity(1, &[]).await.unwrap().is_empty());
    // A device that has left makes room at once, and a lower limit refuses those that came last.
    let left = UserActivity {
        gone: vec![[2; 8]],
        ..report(5, &[3, 1])
    };
    let third = store.report_activity(2, &[left]).await.unwrap();
    assert_eq!((third[0].devices, third[0].refused.len()), (2, 0));
    let lowered = UserActivity {
        max_devices: Some(1),
        ..report(5, &[3, 1])
    };
    let fourth = store.report_activity(2, &[lowered]).await.unwrap();
    assert_eq!((fourth[0].devices, &*fourth[0].refused), (1, &[[1; 8]][..]));
}

async fn nodes_are_known_while_they_do_not_report(store: &Arc<dyn Store>) {
    let record = |name: &str| NodeRecord {
        name: name.to_owned(),
        joined_unix: 5,
        ..NodeRecord::default()
    };
    let fra = store.add_node(&record("fra")).await.unwrap();
    let ams = store.add_node(&record("ams")).await.unwrap();
    assert!(fra >= 1 && ams == fra + 1);
    let taken = store.add_node(&record("fra")).await;
    assert_eq!(taken.unwrap_err().kind, StoreErrorKind::NameTaken);
    let taken = store.put_node(ams, &record("fra")).await;
    assert_eq!(taken.unwrap_err().kind, StoreErrorKind::NameTaken);
    let gone = store.put_node(900, &record("x")).await;
    assert_eq!(gone.unwrap_err().kind, StoreErrorKind::Gone);
    let renamed = NodeRecord {
        weight: 7,
        state: NodeState::Draining,
        ..record("ams-2")
    };
    store.put_node(ams, &renamed).await.unwrap();
    let status = |id, name: &str, instance| NodeStatus {
        id,
        name: name.to_owned(),
        instance,
        sessions: 9,
        ..NodeStatus::default()
    };
    assert_eq!(store.heartbeat(&status(fra, "fra", 1)).await.unwrap(), None);
    let previous = store.heartbeat(&status(fra, "fra", 2)).await.unwrap();
    assert_eq!(previous, Some(status(fra, "fra", 1)));
    let nodes = store.nodes().await.unwrap();
    assert_eq!(
        nodes.iter().map(|node| node.id).collect::<Vec<_>>(),
        [fra, ams]
    );
    assert_eq!(nodes[0].status, Some(status(fra, "fra", 2)));
    assert!(nodes[0].is_listed() && !nodes[1].is_listed());
    assert_eq!((&nodes[1].record, &nodes[1].status), (&renamed, &None));
    // The store has lost the record of a node that runs.
    store.heartbeat(&status(ams + 5, "lost", 1)).await.unwrap();
    let nodes = store.nodes().await.unwrap();
    assert_eq!(
        nodes.last().map(|node| node.record.name.as_str()),
        Some("lost")
    );
    assert_eq!(store.add_node(&record("new")).await.unwrap(), ams + 6);
    for id in [fra, ams, ams + 5, ams + 6] {
        store.remove_node(id).await.unwrap();
    }
    assert_eq!(
        store.remove_node(fra).await.unwrap_err().kind,
        StoreErrorKind::Gone
    );
    assert!(store.nodes().await.unwrap().is_empty());
}

async fn a_membership_is_taken_once(store: &Arc<dyn Store>) {
    let sealed = [0, 255, 10, 13];
    let minute = Duration::from_secs(60);
    store.put_join("abc", &sealed, minute).await.unwrap();
    assert_eq!(store.take_join("other").await.unwrap(), None);
    assert_eq!(
        store.take_join("abc").await.unwrap().as_deref(),
        Some(&sealed[..])
    );
    assert_eq!(store.take_join("abc").await.unwrap(), None);
    store
        .put_join("short", &sealed, Duration::from_secs(1))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(store.take_join("short").await.unwrap(), None);
}

async fn the_audit_log_is_in_order(store: &Arc<dyn Store>) {
    for n in 0..5 {
        store.audit(&format!("{{\"n\":{n}}}")).await.unwrap();
    }
    let last = store.audit_log(2).await.unwrap();
    let texts: Vec<&str> = last.iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(texts, [r#"{"n":4}"#, r#"{"n":3}"#]);
    assert!(last[0].unix_ms >= last[1].unix_ms && last[0].unix_ms > 1_700_000_000_000);
}

async fn users_are_restored(store: &Arc<dyn Store>) {
    let mut feed = Feed::new(cipher());
    follow(&mut feed, store).await;
    let before = names(&feed);
    assert!(before.len() > 40);
    let batches = store.last_batch(5).await.unwrap();
    let mut table = feed.to_table(&mut SystemRng);
    table.version = table.version.plus(100);
    let head = store.restore(&info(), &table).await.unwrap();
    assert_eq!(head, table.version.next());
    assert_eq!(store.head().await.unwrap(), head);
    let events = follow(&mut feed, store).await;
    assert_eq!(names(&feed), before);
    assert_eq!(events, [], "the users are the same as before");
    assert_eq!(feed.position(), head);
    assert_eq!(store.last_batch(5).await.unwrap(), batches);
    // Names are found again, and numbers continue.
    let found = writer(store).find(&before[0]).await.unwrap().unwrap();
    assert_eq!(found.name, before[0]);
    let new = add(store, &["after-restoration"]).await;
    assert!(feed.users().all(|user| user.id < new[0].id));
    // What is no record cannot be restored.
    let broken = adit_fleet::Snapshot {
        version: head,
        users: vec![(1, SealedRecord::from_bytes(vec![1, 2, 3]))],
    };
    let refused = store.restore(&info(), &broken).await;
    assert_eq!(refused.unwrap_err().kind, StoreErrorKind::Protocol);
    assert_eq!(
        writer(store)
            .find(&before[0])
            .await
            .unwrap()
            .map(|user| user.id),
        Some(found.id)
    );
}

/// The last law: the realm has another key afterwards.
async fn a_key_is_replaced_unless_someone_writes(store: &Arc<dyn Store>) {
    let new = RecordCipher::new(REALM, &adit_fleet::RealmKey::new([9; 32]));
    let new_info = RealmInfo::new(&new, info().created_unix);
    let mut feed = Feed::new(cipher());
    follow(&mut feed, store).await;
    let before = names(&feed);
    let seal = async || {
        let snapshot = store.snapshot().await.unwrap();
        reseal(&snapshot, &cipher(), &new, |_| {}, &mut SystemRng).unwrap()
    };
    let late = seal().await;
    let added = add(store, &["written-meanwhile"]).await;
    let head = store.head().await.unwrap();
    let refused = store.replace_key(late.version, &new_info, &late).await;
    let conflict = StoreErrorKind::Conflict { head };
    assert_eq!(refused.unwrap_err().kind, conflict);
    assert_eq!(store.realm_info().await.unwrap(), info());
    assert!(writer(store).find(&added[0].name).await.unwrap().is_some());

    let sealed = seal().await;
    let number = store.replace_key(sealed.version, &new_info, &sealed).await;
    let number = number.unwrap();
    assert!(number > head && store.head().await.unwrap() == number);
    store.realm_info().await.unwrap().check(&new).unwrap();
    for (id, record) in store.snapshot().await.unwrap().users {
        assert_eq!(cipher().open(id, &record), Err(RecordError::Forged));
    }
    // A member with the old key keeps what it had.
    let events = follow(&mut feed, store).await;
    let is_refused = |event: &FeedEvent| matches!(event, FeedEvent::Refused { .. });
    assert!(!events.is_empty() && events.iter().all(is_refused));
    assert_eq!(names(&feed), before);
    // One that has the new key continues, also from its old table, whose number stays.
    let all = before.len() + 1;
    let mut other = Feed::from_table(new, &feed.to_table(&mut SystemRng));
    let held = other.position();
    assert!(other.needs_snapshot() && held == number);
    follow(&mut other, store).await;
    assert!(!other.needs_snapshot());
    assert_eq!((other.len(), other.position()), (all, held));
    let user = store
        .user_by_name(other.cipher().name_digest(&before[0]))
        .await;
    assert!(user.unwrap().is_some());
    let delete = other
        .cipher()
        .delete(added[0].id, number.next(), &mut SystemRng);
    store.write(number, &[delete.unwrap()]).await.unwrap();
    follow(&mut other, store).await;
    assert_eq!(names(&other), before);
}
