//! Nodes that share a store in memory, whose faults are scripted. The clock of the runtime is virtual.

use std::sync::Arc;
use std::time::Duration;

use adit_net::system;
use adit_wire::UnixTime;
use tokio::time::{Instant, advance, sleep};

use super::*;
use crate::realm_key::RealmKey;
use crate::store::{Fault, FaultyStore, MemoryStore, StoreCall, StoreErrorKind};

const STAMP: UnixTime = UnixTime(1_800_000_030);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn store() -> FaultyStore {
    FaultyStore::new(Arc::new(MemoryStore::new()))
}

fn node(store: &FaultyStore, policy: ReplayOutage) -> ClaimBatcher {
    let cipher = RecordCipher::new("main", &RealmKey::new([1; 32]));
    ClaimBatcher::start(Arc::new(store.clone()), Arc::new(cipher), policy)
}

fn two_nodes(policy: ReplayOutage) -> (FaultyStore, [ClaimBatcher; 2]) {
    let store = store();
    let nodes = [node(&store, policy), node(&store, policy)];
    (store, nodes)
}

#[tokio::test(start_paused = true)]
async fn another_node_has_seen_it() {
    let (_store, [one, other]) = two_nodes(ReplayOutage::Open);
    for n in 0..1000_u32 {
        assert!(one.claim_salt(&n.to_be_bytes(), Some(STAMP)).await, "{n}");
    }
    for n in 0..1000_u32 {
        assert!(
            !other.claim_salt(&n.to_be_bytes(), Some(STAMP)).await,
            "{n}"
        );
    }
    let (one, other) = (one.stats(), other.stats());
    assert_eq!((one.new, one.replayed), (1000, 0));
    assert_eq!((other.new, other.replayed), (0, 1000));
    assert_eq!(one.by_result()[0], ("new", 1000));
}

/// Many checks at once are few calls, and each has its own answer.
#[tokio::test(start_paused = true)]
async fn checks_of_a_millisecond_share_a_call() {
    let (store, [one, other]) = two_nodes(ReplayOutage::Open);
    // Each call takes 10 ms, so that one per check would take longer than the deadline.
    store.set_outage(Some(Fault::Delay(ms(10))));
    let names: Vec<[u8; 4]> = (0..2000_u32).map(u32::to_be_bytes).collect();
    let start = Instant::now();
    let checks: Vec<_> = names
        .iter()
        .map(|name| one.claim_salt(name, Some(STAMP)))
        .collect();
    for check in checks {
        assert!(check.await);
    }
    assert!(start.elapsed() < MIN_DEADLINE, "{:?}", start.elapsed());
    let odd = |n: usize| n % 2 == 1;
    let checks: Vec<_> = (0..2000_usize)
        .map(|n| match odd(n) {
            true => other.claim_salt(&names[n], Some(STAMP)),
            false => other.claim_salt(format!("another {n}").as_bytes(), Some(STAMP)),
        })
        .collect();
    for (n, check) in checks.into_iter().enumerate() {
        assert_eq!(check.await, !odd(n), "{n}");
    }
}

/// Two nodes that ask at the same time: one of them gets it.
#[tokio::test(start_paused = true)]
async fn a_race_has_one_winner() {
    let (store, [one, other]) = two_nodes(ReplayOutage::Open);
    store.set_outage(Some(Fault::Delay(ms(2))));
    for n in 0..100_u8 {
        let (a, b) = tokio::join!(
            one.claim_salt(&[n], Some(STAMP)),
            other.claim_salt(&[n], Some(STAMP))
        );
        assert!(a != b, "{n}");
        let (a, b) = tokio::join!(
            one.claim_salt(&[n, n], None),
            other.claim_salt(&[n, n], None)
        );
        assert!(a != b, "{n}, without a stamp");
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_decides_without_the_store() {
    for (policy, verdict) in [(ReplayOutage::Open, true), (ReplayOutage::Closed, false)] {
        for fault in [
            Fault::LostRequest,
            Fault::Error(StoreErrorKind::OutOfMemory),
            Fault::Delay(Duration::from_secs(3600)),
        ] {
            let is_slow = matches!(fault, Fault::Delay(_));
            let (store, [node, _]) = two_nodes(policy);
            store.set_outage(Some(fault.clone()));
            let start = Instant::now();
            assert_eq!(node.claim_salt(b"first", Some(STAMP)).await, verdict);
            let waited = start.elapsed();
            match is_slow {
                true => assert!((ms(50)..ms(60)).contains(&waited), "{fault:?} {waited:?}"),
                false => assert!(waited < ms(5), "{fault:?} {waited:?}"),
            }
            // Later ones do not wait for a store that is silent.
            sleep(ms(1500)).await;
            let start = Instant::now();
            assert_eq!(node.claim_salt(b"second", Some(STAMP)).await, verdict);
            assert!(start.elapsed() < ms(5));
            let stats = node.stats();
            assert_eq!((stats.new, stats.replayed), (0, 0));
            assert_eq!(
                (stats.timeout == 1, stats.timeout + stats.outage),
                (is_slow, 2)
            );
            assert!(stats.degraded >= ms(1500), "{stats:?}");
        }
    }
}

/// Checks are made again without a request that has to wait for it first.
#[tokio::test(start_paused = true)]
async fn it_recovers_by_itself() {
    let (store, [one, other]) = two_nodes(ReplayOutage::Closed);
    store.set_outage(Some(Fault::LostRequest));
    assert!(!one.claim_salt(b"a", Some(STAMP)).await);
    sleep(Duration::from_secs(60)).await;
    store.set_outage(None);
    sleep(Duration::from_secs(5)).await;
    let degraded = one.stats().degraded;
    assert!((ms(60_000)..ms(64_000)).contains(&degraded), "{degraded:?}");
    assert!(one.claim_salt(b"b", Some(STAMP)).await);
    assert!(!other.claim_salt(b"b", Some(STAMP)).await);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(one.stats().degraded, degraded, "the outage is over");
}

/// A store far away answers later than the first deadline. Once that is known, checks wait for it.
#[tokio::test(start_paused = true)]
async fn the_deadline_follows_a_slow_store() {
    let (store, [one, other]) = two_nodes(ReplayOutage::Open);
    store.set_outage(Some(Fault::Delay(ms(150))));
    assert!(one.claim_salt(b"a", Some(STAMP)).await, "the policy");
    assert_eq!(one.stats().timeout, 1);
    sleep(ms(200)).await;
    assert!(one.claim_salt(b"b", Some(STAMP)).await);
    assert_eq!((one.stats().new, one.stats().timeout), (1, 1));
    // The answer of the first came too late for its client, and in time for others.
    assert!(other.claim_salt(b"c", Some(STAMP)).await);
    sleep(ms(200)).await;
    assert!(!other.claim_salt(b"a", Some(STAMP)).await);
    assert!(!other.claim_salt(b"b", Some(STAMP)).await);
}

/// A reply that is lost is an outage: the claim must not be repeated, because it would find itself.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_no_replay() {
    let (store, [one, _]) = two_nodes(ReplayOutage::Open);
    store.fail_next(StoreCall::ClaimSalts, Fault::LostReply);
    assert!(one.claim_salt(b"a", Some(STAMP)).await);
    assert_eq!((one.stats().outage, one.stats().replayed), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_replay_looks_into_the_minute_of_its_stamp() {
    let (_store, [one, other]) = two_nodes(ReplayOutage::Open);
    assert!(one.claim_salt(b"a", Some(STAMP)).await);
    advance(Duration::from_secs(59)).await;
    assert!(!other.claim_salt(b"a", Some(STAMP)).await);
    assert!(
        other.claim_salt(b"a", Some(UnixTime(STAMP.0 + 60))).await,
        "another request"
    );
}

/// Without a stamp, the clock of the node that asks decides, and clocks differ.
#[tokio::test(start_paused = true)]
async fn requests_without_a_stamp_are_found_in_two_minutes() {
    let store = MemoryStore::new();
    let cipher = Arc::new(RecordCipher::new("main", &RealmKey::new([1; 32])));
    let digest = cipher.salt_digest(b"a");
    for (minutes_ago, is_new) in [(2, true), (1, false), (0, false), (-1, true)] {
        // Repeated if a minute ends meanwhile.
        loop {
            let now = minute(system::unix_now());
            let bucket = now.checked_sub_signed(minutes_ago).unwrap();
            store.flush_all();
            let claimed = store.claim_salts(&[SaltClaim { bucket, digest }]).await;
            assert_eq!(claimed.unwrap(), [true]);
            let shared = Arc::new(store.clone());
            let node = ClaimBatcher::start(shared, cipher.clone(), ReplayOutage::Closed);
            let verdict = node.claim_salt(b"a", None).await;
            if minute(system::unix_now()) == now {
                assert_eq!(verdict, is_new, "{minutes_ago}");
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_claimed_ahead_and_renewed() {
    let (_store, [one, other]) = two_nodes(ReplayOutage::Open);
    let at = |minutes: u64| UnixTime(STAMP.0 + 60 * minutes);
    assert!(one.claim_session(b"s", at(0)).await);
    sleep(ms(10)).await;
    assert!(!other.claim_session(b"s", at(0)).await);
    assert!(!other.claim_session(b"s", at(1)).await);
    one.renew_session(b"s", at(1));
    sleep(ms(10)).await;
    assert!(!other.claim_session(b"s", at(2)).await);
    // The refused claims have not prolonged it.
    assert!(other.claim_session(b"s", at(3)).await);
    sleep(ms(10)).await;
    assert!(!one.claim_session(b"s", at(4)).await);
}
