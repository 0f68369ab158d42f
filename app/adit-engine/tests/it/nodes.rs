//! Nodes of a fleet with the same keys: what one of them has seen is a replay at the others.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adit_config::{FleetIdentity, ListenerKind, Plan, Secret, SsRole};
use adit_engine::{
    ClaimAnswer, ClaimKind, Engine, FleetDirectory, FleetLimitSource, FleetQuota, FleetUser,
    FleetUserLimits, FleetUsers, Inheritance, RuleSetTable, SharedClaim, SharedReplayFilter,
    SharedSockets, UserLimits,
};
use adit_net::system::{self, SystemClock, ThreadRng};
use adit_shadowsocks::udp::{ClientSession, HEADROOM, TAILROOM};
use adit_shadowsocks::{KeyChain, tcp};
use adit_wire::{Seal, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::world::{KEY, METHOD, echo, udp_echo};

/// Time in which an observer sees nothing.
const WHILE: Duration = Duration::from_millis(300);

/// The filter of a fleet in memory, whose answers can be held back.
struct Fleet {
    seen: Mutex<HashSet<(Vec<u8>, u64)>>,
    answers: watch::Sender<bool>,
}

impl Fleet {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            seen: Mutex::default(),
            answers: watch::Sender::new(true),
        })
    }
}

impl SharedReplayFilter for Fleet {
    fn claim(&self, claim: SharedClaim) -> ClaimAnswer {
        let minute = match claim.kind {
            ClaimKind::Salt => 0,
            _ => claim.stamp.unwrap().0 / 60,
        };
        let is_new = self.seen.lock().unwrap().insert((claim.name, minute));
        let mut answers = self.answers.subscribe();
        Box::pin(async move {
            answers.wait_for(|are_given| *are_given).await.unwrap();
            is_new
        })
    }
}

/// A realm with one user.
#[derive(Debug)]
struct Realm;

/// The identity key that all nodes share.
const SHARED: &str = "ICEiIyQlJicoKSorLC0uLw==";
const PASSWORD: &str = "a password of the user";

impl FleetUser for Realm {
    fn id(&self) -> u32 {
        1
    }

    fn name(&self) -> &'static str {
        "anna"
    }

    fn password(&self) -> Secret {
        Secret::from(PASSWORD)
    }

    fn key(&self, _: usize) -> Option<Secret> {
        Some(Secret::from(KEY))
    }
}

impl FleetLimitSource for Realm {
    fn limits_of(&self, name: &str) -> Option<FleetUserLimits> {
        (name == self.name()).then(|| FleetUserLimits {
            id: self.id(),
            limits: UserLimits::default(),
            quota: FleetQuota::None,
        })
    }
}

impl FleetDirectory for Realm {
    fn identity_key(&self, _: FleetIdentity, _: usize) -> Secret {
        Secret::from(SHARED)
    }

    fn for_each(&self, each: &mut dyn FnMut(&dyn FleetUser)) {
        each(self);
    }
}

/// Starts a server of a node, for clients with `keys`.
async fn node(fleet: &Arc<Fleet>, keys: &str, more: &str) -> (Engine, SocketAddr) {
    node_with(fleet, keys, more, FleetIdentity::Shared).await
}

async fn node_with(
    fleet: &Arc<Fleet>,
    keys: &str,
    more: &str,
    identity: FleetIdentity,
) -> (Engine, SocketAddr) {
    let (method, _) = keys.split_once(':').unwrap();
    // Requests of the AEAD edition have no time, which could be before the start.
    let restart = if method == METHOD {
        "&restart=lenient"
    } else {
        ""
    };
    let url = format!("ss://{method}:{KEY}@127.0.0.1:0?allow_private=all{restart}{more}");
    let mut plan = Plan::from_words(&[url]).unwrap_or_else(|problems| panic!("{problems:?}"));
    let ListenerKind::Shadowsocks(server) = &mut plan.routes[0].listen[0].kind else {
        panic!("a server");
    };
    server.role = SsRole::Fleet { identity };
    let users = FleetUsers::new(Arc::new(Realm));
    let (sets, inherited) = (RuleSetTable::default(), Inheritance::default());
    let prepared = Engine::prepare_with_fleet(&plan, sets, &inherited, users).await;
    let prepared = prepared.unwrap();
    prepared.engine().share_replays(Some(fleet.clone()));
    let engine = prepared.start(SharedSockets::default());
    let at = engine.listeners()[0].addr;
    (engine, at)
}

fn keys_2022() -> String {
    format!("{METHOD}:{SHARED}:{KEY}")
}

fn keys_aead() -> String {
    format!("aes-256-gcm:{PASSWORD}")
}

fn chain(keys: &str) -> KeyChain {
    let (method, secret) = keys.split_once(':').unwrap();
    KeyChain::parse(method.parse().unwrap(), secret).unwrap()
}

/// Returns the first bytes of a client: its request with a payload.
fn request(keys: &str, target: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let target = Target::from(target);
    let (mut seal, _) =
        tcp::client_codecs(&chain(keys), &target, Arc::new(SystemClock), &mut ThreadRng).unwrap();
    let room = seal.overhead();
    let mut record = vec![0; room.head + payload.len() + room.tail];
    record[room.head..][..payload.len()].copy_from_slice(payload);
    let wire = seal
        .seal(&mut record, room.head..room.head + payload.len())
        .unwrap();
    record[wire].to_vec()
}

/// The reaction that a peer observes.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Seen {
    Silence,
    Fin,
    Reset,
    Bytes,
}

async fn send(at: SocketAddr, bytes: &[u8]) -> (TcpStream, Seen) {
    let mut socket = TcpStream::connect(at).await.unwrap();
    // The server may reset the connection during the write.
    let _ = socket.write_all(bytes).await;
    let seen = match timeout(WHILE, socket.read(&mut [0; 64])).await {
        Err(_) => Seen::Silence,
        Ok(Ok(0)) => Seen::Fin,
        Ok(Ok(_)) => Seen::Bytes,
        Ok(Err(_)) => Seen::Reset,
    };
    (socket, seen)
}

#[tokio::test]
async fn a_replay_at_another_node_is_one_here() {
    for keys in [&keys_2022(), &keys_aead()] {
        for (policy, expected) in [
            ("drain", Seen::Silence),
            ("reset", Seen::Reset),
            ("close", Seen::Fin),
        ] {
            let fleet = Fleet::new();
            let more = format!("&reject={policy}");
            let (_one, one) = node(&fleet, keys, &more).await;
            let (_other, other) = node(&fleet, keys, &more).await;
            let target = echo().await;
            let request = request(keys, target, b"hello");
            let (_client, seen) = send(one, &request).await;
            assert_eq!(seen, Seen::Bytes, "{keys} {policy}: the client");
            for node in [one, other] {
                let (_peer, seen) = send(node, &request).await;
                assert_eq!(seen, expected, "{keys} {policy} at {node}");
            }
        }
    }
}

#[tokio::test]
async fn captured_requests_are_refused_by_all_others() {
    let fleet = Fleet::new();
    let keys = keys_2022();
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node(&fleet, &keys, "&reject=close").await);
    }
    let target = echo().await;
    for n in 0..50 {
        let request = request(&keys, target, b"hello");
        let first = nodes[n % 3].1;
        assert_eq!(send(first, &request).await.1, Seen::Bytes);
        for (_, at) in &nodes {
            assert_eq!(send(*at, &request).await.1, Seen::Fin, "{n} at {at}");
        }
    }
}

/// The keys of a node's own are no reason to ask others.
#[tokio::test]
async fn a_node_with_its_own_key_decides_alone() {
    let (fleet, keys) = (Fleet::new(), keys_2022());
    fleet.answers.send_replace(false);
    let (_node, at) = node_with(&fleet, &keys, "", FleetIdentity::Node).await;
    let request = request(&keys, echo().await, b"hello");
    assert_eq!(send(at, &request).await.1, Seen::Bytes);
    assert_eq!(send(at, &request).await.1, Seen::Silence);
    assert!(fleet.seen.lock().unwrap().is_empty());
}

/// The target is dialled at once, and receives nothing before the verdict.
#[tokio::test]
async fn first_bytes_wait_for_the_verdict() {
    for keys in [&keys_2022(), &keys_aead()] {
        let fleet = Fleet::new();
        let (_node, at) = node(&fleet, keys, "").await;
        let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
        fleet.answers.send_replace(false);
        let mut client = TcpStream::connect(at).await.unwrap();
        let request = request(keys, target.local_addr().unwrap(), b"hello");
        client.write_all(&request).await.unwrap();
        let accepted = timeout(Duration::from_secs(5), target.accept()).await;
        let (mut far, _) = accepted.unwrap().unwrap();
        let mut received = [0; 5];
        let early = timeout(WHILE, far.read(&mut received)).await;
        assert!(early.is_err(), "{keys}: {early:?}");
        fleet.answers.send_replace(true);
        let read = timeout(Duration::from_secs(5), far.read_exact(&mut received)).await;
        read.unwrap().unwrap();
        assert_eq!(&received, b"hello");
        far.write_all(b"answer").await.unwrap();
        assert!(client.read(&mut [0; 64]).await.unwrap() > 0);
    }
}

#[tokio::test]
async fn a_target_receives_nothing_of_a_replay() {
    let (fleet, keys) = (Fleet::new(), keys_2022());
    let (_one, one) = node(&fleet, &keys, "").await;
    let (_other, other) = node(&fleet, &keys, "").await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let request = request(&keys, target.local_addr().unwrap(), b"transfer 5");
    let _client = send(one, &request).await;
    let (mut far, _) = target.accept().await.unwrap();
    let mut received = [0; 10];
    far.read_exact(&mut received).await.unwrap();
    let _peer = send(other, &request).await;
    // It may have been dialled.
    if let Ok(accepted) = timeout(WHILE, target.accept()).await {
        let (mut far, _) = accepted.unwrap();
        let end = timeout(Duration::from_secs(5), far.read(&mut received)).await;
        assert!(matches!(end.unwrap(), Ok(0) | Err(_)), "bytes of a replay");
    }
}

/// A decoy gets the bytes as they were received.
#[tokio::test]
async fn a_decoy_gets_a_replay() {
    let (fleet, keys) = (Fleet::new(), keys_2022());
    let decoy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let more = format!("&reject=forward:{}", decoy.local_addr().unwrap());
    let (_one, one) = node(&fleet, &keys, &more).await;
    let (_other, other) = node(&fleet, &keys, &more).await;
    let request = request(&keys, echo().await, b"hello");
    assert_eq!(send(one, &request).await.1, Seen::Bytes);
    let mut peer = TcpStream::connect(other).await.unwrap();
    peer.write_all(&request).await.unwrap();
    let accepted = timeout(Duration::from_secs(5), decoy.accept()).await;
    let (mut far, _) = accepted.unwrap().unwrap();
    let mut received = vec![0; request.len()];
    far.read_exact(&mut received).await.unwrap();
    assert!(received == request);
    far.write_all(b"HTTP/1.1 400").await.unwrap();
    let mut answer = [0; 12];
    peer.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400");
}

/// A check of the key is answered by the server itself, once.
#[tokio::test]
async fn a_replayed_check_of_the_key_gets_no_answer() {
    let (fleet, keys) = (Fleet::new(), keys_2022());
    let (_one, one) = node(&fleet, &keys, "").await;
    let (_other, other) = node(&fleet, &keys, "").await;
    let target: Target = format!("{}:1", adit_engine::acceptor::CHECK_NAME)
        .parse()
        .unwrap();
    let (mut seal, _) = tcp::client_codecs(
        &chain(&keys),
        &target,
        Arc::new(SystemClock),
        &mut ThreadRng,
    )
    .unwrap();
    let room = seal.overhead();
    let mut record = vec![0; room.head + room.tail];
    let wire = seal.seal(&mut record, room.head..room.head).unwrap();
    let request = record[wire].to_vec();
    assert_eq!(send(one, &request).await.1, Seen::Bytes);
    assert_eq!(send(other, &request).await.1, Seen::Silence);
}

/// Returns the packets of one session of a client.
fn packets(keys: &str, target: SocketAddr, count: u8) -> Vec<Vec<u8>> {
    let mut session = ClientSession::new(&chain(keys), &mut ThreadRng);
    let target = Target::from(target);
    let seal = |n| {
        let mut packet = vec![0; HEADROOM + 1 + TAILROOM];
        packet[HEADROOM] = n;
        let now = system::unix_now();
        let sealed = session
            .seal(
                &mut packet,
                HEADROOM..HEADROOM + 1,
                &target,
                now,
                &mut ThreadRng,
            )
            .unwrap();
        packet[sealed].to_vec()
    };
    (0..count).map(seal).collect()
}

async fn is_answered(socket: &UdpSocket, to: SocketAddr, packet: &[u8]) -> bool {
    socket.send_to(packet, to).await.unwrap();
    timeout(WHILE, socket.recv(&mut [0; 1500])).await.is_ok()
}

#[tokio::test]
async fn a_session_of_packets_is_served_by_one_node() {
    let (fleet, keys) = (Fleet::new(), keys_2022());
    let (_one, one) = node(&fleet, &keys, "").await;
    let (_other, other) = node(&fleet, &keys, "").await;
    let target = udp_echo().await;
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let sent = packets(&keys, target, 6);
    for packet in &sent[..3] {
        assert!(is_answered(&client, one, packet).await);
    }
    for packet in &sent {
        assert!(!is_answered(&peer, other, packet).await, "a replay");
    }
    for packet in &sent[3..] {
        assert!(is_answered(&client, one, packet).await);
    }
    // Another session starts anywhere.
    let others = packets(&keys, target, 2);
    assert!(is_answered(&client, other, &others[0]).await);
    assert!(is_answered(&client, other, &others[1]).await);
}

#[tokio::test]
async fn datagrams_wait_for_the_verdict() {
    let (fleet, keys) = (Fleet::new(), keys_2022());
    let (_node, at) = node(&fleet, &keys, "").await;
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    fleet.answers.send_replace(false);
    for packet in packets(&keys, target.local_addr().unwrap(), 3) {
        client.send_to(&packet, at).await.unwrap();
    }
    let mut received = [0; 8];
    assert!(timeout(WHILE, target.recv(&mut received)).await.is_err());
    fleet.answers.send_replace(true);
    for n in 0..3 {
        let read = timeout(Duration::from_secs(5), target.recv(&mut received)).await;
        assert_eq!(read.unwrap().unwrap(), 1);
        assert_eq!(received[0], n);
    }
}

/// A client that gives up before the verdict leaves nothing behind.
#[tokio::test]
async fn a_client_can_leave_before_the_verdict() {
    let (fleet, keys) = (Fleet::new(), keys_2022());
    let (engine, at) = node(&fleet, &keys, "").await;
    fleet.answers.send_replace(false);
    let target = echo().await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = TcpStream::connect(at).await.unwrap();
        let request = request(&keys, target, b"x");
        client.write_all(&request).await.unwrap();
        clients.push(client);
    }
    sleep(Duration::from_millis(50)).await;
    drop(clients);
    fleet.answers.send_replace(true);
    for _ in 0..100 {
        if engine.sessions(1).sessions.is_empty() {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("sessions are open");
}
