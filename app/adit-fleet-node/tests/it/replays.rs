//! Captured requests that are replayed at another node.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_config::OutagePolicy;
use adit_fleet::{Fault, FleetUser, RecordLimits};
use adit_net::system::{SystemClock, ThreadRng};
use adit_shadowsocks::{KeyChain, tcp};
use adit_wire::{Seal, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::world::{ByteServer, METHOD, Node, PATIENCE, Realm, until};

const CAPTURED: usize = 1000;

/// Two nodes that check replays together.
struct Pair {
    realm: Realm,
    nodes: [Node; 2],
    user: FleetUser,
    target: ByteServer,
}

impl Pair {
    async fn start(policy: OutagePolicy) -> Self {
        let realm = Realm::new().await;
        let user = realm.add("anna", RecordLimits::default()).await;
        let set = |settings: &mut adit_fleet_node::NodeSettings| {
            settings.shared_replay_filter = true;
            settings.replay_outage = policy;
        };
        let nodes = [
            realm.node_with("one", set).await,
            realm.node_with("two", set).await,
        ];
        Self {
            realm,
            nodes,
            user,
            target: ByteServer::start().await,
        }
    }

    fn keys(&self, identity: &str) -> KeyChain {
        let own = self.user.psk(16).unwrap();
        KeyChain::parse(METHOD.parse().unwrap(), &format!("{identity}:{}", *own)).unwrap()
    }

    fn shared_keys(&self) -> KeyChain {
        self.keys(&self.realm.key.shared_psk(16).unwrap())
    }

    /// Returns a request whose payload is one byte.
    fn request(&self, keys: &KeyChain) -> Vec<u8> {
        let target = Target::from(self.target.addr);
        let (mut seal, _) =
            tcp::client_codecs(keys, &target, Arc::new(SystemClock), &mut ThreadRng).unwrap();
        let room = seal.overhead();
        let mut record = vec![0; room.head + 1 + room.tail];
        let sealed = seal.seal(&mut record, room.head..room.head + 1).unwrap();
        record[sealed].to_vec()
    }

    fn requests(&self, keys: &KeyChain, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.request(keys)).collect()
    }

    /// Sends requests, and returns how many of them have reached the target.
    async fn accepted(&self, at: SocketAddr, requests: &[Vec<u8>]) -> u64 {
        let before = self.target.received();
        for request in requests {
            let mut stream = TcpStream::connect(at).await.unwrap();
            stream.write_all(request).await.unwrap();
            stream.shutdown().await.unwrap();
            // The server closes the connection after the target, or as its reject policy demands.
            let end = timeout(PATIENCE, stream.read(&mut [0; 64])).await;
            assert!(end.is_ok(), "the connection stays open");
        }
        // What the target has received is counted a little later.
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.target.received() - before
    }

    fn checks(&self, node: usize, result: &str) -> u64 {
        let metrics = self.nodes[node].control.metrics();
        let name = "adit_fleet_replay_checks_total";
        let found = metrics.iter().find(|metric| metric.name == name).unwrap();
        let labels = vec![("result", result.to_owned())];
        let sample = found.samples.iter().find(|(known, _)| *known == labels);
        sample.unwrap().1 as u64
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_a_shared_key_refuse_what_another_one_has_seen() {
    // A check that takes too long on a busy machine lets nothing through.
    let pair = Pair::start(OutagePolicy::Closed).await;
    let requests = pair.requests(&pair.shared_keys(), CAPTURED);
    let [one, two] = [0, 1].map(|n| pair.nodes[n].shared);
    let in_time = pair.accepted(one, &requests).await;
    assert!(in_time >= 990, "{in_time} of the client");
    assert_eq!(pair.accepted(two, &requests).await, 0, "at the other node");
    assert_eq!(
        pair.accepted(one, &requests[..100]).await,
        0,
        "at the same node"
    );
    let known = pair.checks(1, "replayed");
    assert!(
        known >= 990 && pair.checks(1, "new") == 0,
        "{known} are known"
    );
    assert_eq!(
        pair.checks(0, "replayed"),
        0,
        "the local filter has decided"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_their_own_keys_need_no_store() {
    let pair = Pair::start(OutagePolicy::Closed).await;
    for node in &pair.nodes {
        node.faults.set_outage(Some(Fault::LostRequest));
    }
    let [one, two] = [0, 1].map(|n| pair.nodes[n].keyed);
    let identity = pair.realm.key.identity_psk(1, 16).unwrap();
    let requests = pair.requests(&pair.keys(&identity), CAPTURED);
    assert_eq!(pair.accepted(one, &requests).await, 1000);
    assert_eq!(pair.accepted(two, &requests).await, 0);
    assert_eq!(pair.accepted(one, &requests[..100]).await, 0);
    assert_eq!(pair.checks(0, "outage"), 0, "the store was not asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_store_the_policy_decides() {
    for (policy, count) in [(OutagePolicy::Open, 10), (OutagePolicy::Closed, 0)] {
        let pair = Pair::start(policy).await;
        let keys = pair.shared_keys();
        let [one, two] = [0, 1].map(|n| pair.nodes[n].shared);
        for fault in [Fault::LostRequest, Fault::Delay(Duration::from_secs(3600))] {
            for node in &pair.nodes {
                node.faults.set_outage(Some(fault.clone()));
            }
            let requests = pair.requests(&keys, 10);
            assert_eq!(
                pair.accepted(one, &requests).await,
                count,
                "{policy:?} {fault:?}"
            );
            assert_eq!(
                pair.accepted(two, &requests).await,
                count,
                "{policy:?} {fault:?}"
            );
            assert_eq!(pair.accepted(one, &requests).await, 0, "the local filter");
            for node in &pair.nodes {
                node.faults.set_outage(None);
            }
            until("the nodes ask each other again", async || {
                let requests = pair.requests(&keys, 5);
                let new = pair.accepted(one, &requests).await;
                (new, pair.accepted(two, &requests).await) == (5, 0)
            })
            .await;
        }
        let degraded = pair.nodes[0].metric("adit_fleet_replay_degraded_seconds_total");
        assert!(degraded > 0.0);
    }
}
