//! Filters with other deciders.

use std::sync::Mutex;

use adit_shadowsocks::RestartPolicy;

use super::*;

const NAME: [u8; 2] = [7, 8];

fn pool() -> Arc<SaltPool> {
    let now = system::unix_now();
    Arc::new(SaltPool::new([1; 16], now, RestartPolicy::Lenient))
}

fn claims_of(gate: &Arc<ClaimGate>, salts: &Arc<SaltPool>, key: Option<&str>) -> FilterClaims {
    let filter = ReplayFilter::Salts(salts.clone());
    let scope = key.map(|key| ClaimScope::of_key("aes-256-gcm", key));
    FilterClaims::new(gate.clone(), NAME.to_vec(), filter, scope)
}

fn insert(salts: &SaltPool, salt: u8) -> bool {
    let inserted = salts.insert_salt(&[salt; 32], None, system::unix_now());
    inserted.is_ok()
}

impl UnconfirmedDecisions {
    fn is_empty(&self) -> bool {
        self.successor.is_empty() && self.fleet.is_empty()
    }
}

#[tokio::test]
async fn a_successor_confirms_what_it_has_not_seen() {
    let (old, new, gate) = (pool(), pool(), Arc::<ClaimGate>::default());
    let claims = claims_of(&gate, &old, None);
    let (done, mut decisions) = claims.observe(|| insert(&old, 1));
    assert!(done && decisions.is_empty() && decisions.are_confirmed_by_successor().await);

    let (mut claimed, ()) = gate.open(|| ());
    assert!(insert(&new, 2));
    for (salt, expected) in [(2, false), (3, true)] {
        let (done, mut decisions) = claims.observe(|| insert(&old, salt));
        assert!(done, "this process has not seen it");
        let claim = claimed.recv().await.unwrap();
        let entry = claim.as_bytes().strip_prefix(&NAME).unwrap();
        let is_new = ReplayFilter::Salts(new.clone()).insert_logged(entry);
        claim.answer(is_new);
        let confirmed = decisions.are_confirmed_by_successor().await;
        assert_eq!(confirmed, expected, "{salt}");
    }
    assert!(!insert(&new, 3), "it has been confirmed");
    let (done, decisions) = claims.observe(|| insert(&old, 3));
    assert!(!done && decisions.is_empty(), "it is a replay here");

    // The successor ends: this process decides alone.
    let (_, mut decisions) = claims.observe(|| insert(&old, 4));
    drop(claimed);
    assert!(decisions.are_confirmed_by_successor().await);
    let (_, mut decisions) = claims.observe(|| insert(&old, 5));
    assert!(decisions.are_confirmed_by_successor().await);
    gate.close();
    let (_, decisions) = claims.observe(|| insert(&old, 6));
    assert!(decisions.is_empty());
}

#[tokio::test]
async fn a_claim_is_passed_on_to_the_newest_process() {
    let gate = ClaimGate::default();
    assert!(gate.decide_claim(b"claim", || true).unwrap());
    let (mut claimed, ()) = gate.open(|| ());
    let decided = gate.decide_claim(b"claim", || unreachable!("the successor decides"));
    let claim = claimed.recv().await.unwrap();
    assert_eq!(claim.as_bytes(), b"claim");
    claim.answer(false);
    assert!(!decided.unwrap_err().await.unwrap());
    let decided = gate.decide_claim(b"claim", || unreachable!("the successor decides"));
    drop(claimed);
    assert!(decided.unwrap_err().await.is_err());
}

/// A shared filter in memory.
#[derive(Default)]
struct SharedSet(Mutex<Vec<SharedClaim>>);

impl SharedReplayFilter for SharedSet {
    fn claim(&self, claim: SharedClaim) -> ClaimAnswer {
        let mut seen = self.0.lock().unwrap();
        let is_new = !seen.contains(&claim);
        seen.push(claim);
        Box::pin(async move { is_new })
    }
}

#[tokio::test]
async fn nodes_with_the_same_key_see_each_salt_once() {
    let fleet = Arc::new(SharedSet::default());
    let gates: [Arc<ClaimGate>; 2] = Default::default();
    for gate in &gates {
        gate.share(Some(fleet.clone()));
    }
    let pools = [pool(), pool(), pool()];
    let [one, other] = [0, 1].map(|n| claims_of(&gates[n], &pools[n], Some("key")));
    let foreign = claims_of(&gates[1], &pools[2], Some("another key"));
    let (_, mut first) = one.observe(|| insert(&pools[0], 1));
    assert!(first.are_confirmed_by_successor().await, "there is none");
    let (done, mut again) = other.observe(|| insert(&pools[1], 1));
    assert!(done, "that node has not seen it");
    assert!(first.fleet.is_new().await && first.fleet.is_new().await);
    assert!(!again.fleet.is_new().await && !again.fleet.is_new().await);
    let (_, mut elsewhere) = foreign.observe(|| insert(&pools[2], 1));
    assert!(elsewhere.fleet.is_new().await, "salts of keys are apart");
    // A replay at the same node is no claim.
    let claimed = fleet.0.lock().unwrap().len();
    let (done, decisions) = one.observe(|| insert(&pools[0], 1));
    assert!(!done && decisions.is_empty());
    assert_eq!(fleet.0.lock().unwrap().len(), claimed);
    // A server whose key no other node has.
    let alone = claims_of(&gates[0], &pools[0], None);
    let (_, decisions) = alone.observe(|| insert(&pools[0], 2));
    assert!(decisions.is_empty());
    gates[0].share(None);
    let (_, decisions) = one.observe(|| insert(&pools[0], 3));
    assert!(decisions.is_empty());
}

#[tokio::test]
async fn a_claim_has_the_time_of_the_request() {
    let (fleet, gate, salts) = (Arc::new(SharedSet::default()), Arc::default(), pool());
    let claims = claims_of(&gate, &salts, Some("key"));
    gate.share(Some(fleet.clone()));
    let now = system::unix_now();
    let stamp = UnixTime(now.0 - 20);
    let (done, _) = claims.observe(|| salts.insert_salt(&[1; 32], Some(stamp), now));
    done.unwrap();
    let (done, _) = claims.observe(|| salts.insert_salt(&[1; 32], None, now));
    done.unwrap();
    let claimed = fleet.0.lock().unwrap();
    let stamps: Vec<_> = claimed.iter().map(|claim| claim.stamp).collect();
    assert_eq!(stamps, [Some(stamp), None]);
    assert_ne!(claimed[0].name, claimed[1].name);
}
