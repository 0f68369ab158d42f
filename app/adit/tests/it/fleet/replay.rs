//! Captured requests that are replayed at another node.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_fleet::{FleetUser, Membership};
use adit_fleet_world::{FleetWorld, NodeOptions};
use adit_interop::TEST_TIMEOUT;
use adit_interop::origin::OriginServer;
use adit_interop::store_server::StoreServer;
use adit_net::system::{SystemClock, ThreadRng};
use adit_shadowsocks::{KeyChain, tcp};
use adit_wire::{Seal, Target};

use crate::setup::bin;

const METHOD: &str = "2022-blake3-aes-128-gcm";
const AEAD: &str = "aes-256-gcm";
const CAPTURED: usize = 1000;
const THREADS: usize = 4;

/// Two nodes with a keyed listener each.
struct Pair {
    world: FleetWorld,
    user: FleetUser,
    membership: Membership,
    /// The listeners.
    at: [SocketAddr; 2],
    origin: OriginServer,
}

impl Pair {
    fn start(method: &str, listener: &str, fleet: &str) -> Self {
        let mut world = FleetWorld::new(StoreServer::start().unwrap()).unwrap();
        let user = world.operator.add_user("anna").unwrap();
        let url = format!(
            "ss://{method}@127.0.0.1:0?users=fleet&reject=close&allow_private=127.0.0.0/8{listener}"
        );
        let options = NodeOptions {
            fleet: fleet.to_owned(),
            listeners: vec![url],
            ..NodeOptions::default()
        };
        world.start_nodes(&bin(), 2, &options).unwrap();
        world.wait_for_tables(TEST_TIMEOUT).unwrap();
        let at = [0, 1].map(|n| world.nodes[n].addrs().unwrap()[1]);
        // Its number is not used.
        let membership = world.operator.add_node("key", None).unwrap();
        Self {
            world,
            user,
            membership,
            at,
            origin: OriginServer::start().unwrap(),
        }
    }

    fn shared(fleet: &str) -> Self {
        let listener = "&identity=shared&restart=lenient";
        Self::start(
            METHOD,
            listener,
            &format!("shared_replay_filter = true\n{fleet}"),
        )
    }

    /// Returns the keys of the user at nodes that share a key.
    fn shared_keys(&self) -> KeyChain {
        let identity = self.membership.realm_key.shared_psk(16).unwrap();
        self.keys_after(&identity)
    }

    /// Returns the keys of the user behind a node's.
    fn keys_after(&self, identity: &str) -> KeyChain {
        let own = self.user.psk(16).unwrap();
        KeyChain::parse(METHOD.parse().unwrap(), &format!("{identity}:{}", *own)).unwrap()
    }

    fn request(&self, keys: &KeyChain) -> Vec<u8> {
        let (payload, target) = (b"ECHO\nhello", Target::from(self.origin.addr()));
        let (mut seal, _) =
            tcp::client_codecs(keys, &target, Arc::new(SystemClock), &mut ThreadRng).unwrap();
        let room = seal.overhead();
        let mut record = vec![0; room.head + payload.len() + room.tail];
        record[room.head..][..payload.len()].copy_from_slice(payload);
        let sealed = seal.seal(&mut record, room.head..room.head + payload.len());
        record[sealed.unwrap()].to_vec()
    }

    /// Sends new requests to the first node, and returns them.
    fn capture(&self, keys: &KeyChain, count: usize) -> Vec<Vec<u8>> {
        let requests: Vec<_> = (0..count).map(|_| self.request(keys)).collect();
        assert_eq!(
            accepted(self.at[0], &requests),
            count,
            "requests of the client"
        );
        requests
    }

    /// Returns the value of a metric at a node.
    fn metric(&self, node: usize, name: &str) -> f64 {
        let text = metrics(&self.world.nodes[node].folder().join("admin.sock"));
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        value.trim().parse().unwrap()
    }
}

fn metrics(socket: &std::path::Path) -> String {
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Returns true if the server answers a request, and false if it closes the connection.
fn is_accepted(at: SocketAddr, request: &[u8]) -> bool {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(request).unwrap();
    match stream.read(&mut [0; 64]) {
        Ok(n) => n > 0,
        Err(why) if why.kind() == ErrorKind::ConnectionReset => false,
        Err(why) => panic!("neither an answer nor an end: {why}"),
    }
}

/// Returns the number of requests that a server answers.
fn accepted(at: SocketAddr, requests: &[Vec<u8>]) -> usize {
    let count = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for part in requests.chunks(requests.len().div_ceil(THREADS)) {
            let count = &count;
            scope.spawn(move || {
                let answered = part
                    .iter()
                    .filter(|request| is_accepted(at, request))
                    .count();
                count.fetch_add(answered, Ordering::Relaxed);
            });
        }
    });
    count.into_inner()
}

#[test]
fn nodes_with_a_shared_key_refuse_what_another_one_has_seen() {
    // A check that takes too long on a busy machine lets nothing through.
    let pair = Pair::shared("replay_outage = \"closed\"\n");
    let keys = pair.shared_keys();
    let requests: Vec<_> = (0..CAPTURED).map(|_| pair.request(&keys)).collect();
    let in_time = accepted(pair.at[0], &requests);
    assert!(
        in_time >= CAPTURED * 99 / 100,
        "{in_time} requests of the client"
    );
    assert_eq!(accepted(pair.at[1], &requests), 0, "at the other node");
    assert_eq!(accepted(pair.at[0], &requests), 0, "at the same node");
    let checks = |node, result| {
        let name = format!("adit_fleet_replay_checks_total{{result=\"{result}\"}}");
        pair.metric(node, &name)
    };
    let known = checks(1, "replayed");
    assert!(
        known >= 990.0 && checks(1, "new") == 0.0,
        "{known} are known to be replays"
    );
    // The local filter has decided about those at the same node.
    assert_eq!(checks(0, "replayed"), 0.0);
    // New requests still work at both.
    for at in pair.at {
        assert!((0..10).any(|_| is_accepted(at, &pair.request(&keys))));
    }
}

/// The default: a request for one node means nothing to another, and no store is asked.
#[test]
fn nodes_with_their_own_keys_refuse_requests_for_others() {
    let pair = Pair::start(METHOD, "&restart=lenient", "");
    let keys = |node: usize| {
        let id = pair.world.nodes[node].id;
        let identity = pair.membership.realm_key.identity_psk(id, 16).unwrap();
        pair.keys_after(&identity)
    };
    let captured = pair.capture(&keys(0), CAPTURED);
    pair.world.store.stall().unwrap();
    assert_eq!(accepted(pair.at[1], &captured), 0);
    assert_eq!(accepted(pair.at[0], &captured), 0);
    assert!(is_accepted(pair.at[1], &pair.request(&keys(1))));
    pair.world.store.resume().unwrap();
}

/// Users of the AEAD edition have the same password at all nodes.
#[test]
fn requests_without_a_time_are_refused_too() {
    let pair = Pair::start(AEAD, "", "shared_replay_filter = true\n");
    let keys = KeyChain::parse(AEAD.parse().unwrap(), &pair.user.password()).unwrap();
    let captured = pair.capture(&keys, 100);
    assert_eq!(accepted(pair.at[1], &captured), 0);
}

#[test]
fn without_the_store_each_node_decides_alone() {
    let pair = Pair::shared("replay_outage = \"open\"\n");
    let keys = pair.shared_keys();
    let before = pair.capture(&keys, 10);
    pair.world.store.stall().unwrap();
    let start = Instant::now();
    let during = pair.capture(&keys, 10);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(accepted(pair.at[0], &during), 0, "the local filter");
    assert_eq!(accepted(pair.at[1], &during), 10, "open over nodes");
    assert_eq!(accepted(pair.at[1], &before), 10, "open over nodes");
    pair.world.store.resume().unwrap();
    assert!(pair.metric(0, "adit_fleet_replay_degraded_seconds_total") > 0.0);
    recovers(&pair, &keys);
}

#[test]
fn a_closed_filter_refuses_what_it_cannot_check() {
    let pair = Pair::shared("replay_outage = \"closed\"\n");
    let keys = pair.shared_keys();
    let _ = pair.capture(&keys, 10);
    pair.world.store.stall().unwrap();
    let requests: Vec<_> = (0..20).map(|_| pair.request(&keys)).collect();
    assert_eq!(accepted(pair.at[0], &requests), 0);
    pair.world.store.resume().unwrap();
    recovers(&pair, &keys);
}

/// Waits until the nodes refuse what the other one has seen, and accept what is new.
fn recovers(pair: &Pair, keys: &KeyChain) {
    let start = Instant::now();
    loop {
        let requests: Vec<_> = (0..10).map(|_| pair.request(keys)).collect();
        let new = accepted(pair.at[0], &requests);
        let replayed = accepted(pair.at[1], &requests);
        if (new, replayed) == (10, 0) {
            return;
        }
        let waited = start.elapsed();
        assert!(
            waited < Duration::from_secs(10),
            "{new} new and {replayed} replayed after {waited:?}"
        );
        sleep(Duration::from_millis(200));
    }
}
