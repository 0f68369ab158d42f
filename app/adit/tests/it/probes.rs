//! A prober without the key sees nothing at a Shadowsocks port, with any input.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;
use std::{mem, thread};

use adit_interop::hostile_clients::{AfterWrite, Reaction, WriteMode, probe_server};
use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::shadowsocks::{
    AES_128, BLAKE3_AES_128, BLAKE3_AES_256, ClientSetup, IDENTITY_KEYS, IdentityKeys, MethodKey,
    ShadowsocksPeer,
};
use adit_interop::traffic::{self, DatagramLink, ForwarderEntry};
use adit_interop::{AditProcess, BytePattern, TEST_TIMEOUT, TempFolder, free_port};

use crate::setup::{UsersFile, relay, server, start};

/// Lengths around the ends of salt, identity header, sealed length and sealed header of both editions,
/// and a 221 that real probers send.
const LENGTHS: [usize; 26] = [
    0, 1, 10, 15, 16, 17, 31, 32, 33, 42, 43, 44, 47, 48, 49, 50, 51, 58, 59, 60, 74, 75, 76, 200,
    221, 3000,
];

/// The reactions that a prober sees who holds the connection open, or ends its direction.
const NOTHING: [(AfterWrite, Reaction); 2] = [
    (AfterWrite::Hold, Reaction::Silence),
    (AfterWrite::HalfClose, Reaction::End),
];

/// A port of adit, and the credentials for it.
struct Port {
    front: AditProcess,
    /// The servers behind it.
    behind: Vec<AditProcess>,
    method: MethodKey,
    keys: Vec<&'static str>,
}

impl Port {
    /// Starts a server with one key.
    fn alone(method: MethodKey) -> Self {
        Self {
            front: server(method),
            behind: Vec::new(),
            method,
            keys: vec![method.key],
        }
    }

    /// Starts a server with users, who are identified by identity headers or by trial.
    fn with_users(method: MethodKey, ring: &IdentityKeys) -> Self {
        let (_, key) = ring.users[1];
        let own = method.name.starts_with("2022-").then_some(method.key);
        Self {
            front: UsersFile::new(&ring.users).serve(method),
            behind: Vec::new(),
            method,
            keys: own.into_iter().chain([key]).collect(),
        }
    }

    /// Starts a relay in front of a server with users.
    fn relayed(ring: &IdentityKeys) -> Self {
        let mut behind = Self::with_users(ring.method, ring);
        let [key, _] = ring.relays;
        let method = MethodKey { key, ..ring.method };
        let front = relay(method, &[(behind.front.addr(), ring.method.key)]);
        behind.behind.push(mem::replace(&mut behind.front, front));
        behind.keys.insert(0, key);
        behind
    }

    /// Returns an authorized client for this address instead of that of the port.
    fn client(&self, at: SocketAddr) -> ClientSetup<'_> {
        ClientSetup::new(self.method, &self.keys, at)
    }

    fn stop(self) {
        for adit in self.behind.into_iter().chain([self.front]) {
            adit.stop().unwrap();
        }
    }
}

/// A probe and the reaction to it.
pub(crate) type Seen = (String, Reaction);

/// Sends all probes simultaneously, because each takes a long time. Returns the reaction to each.
pub(crate) fn send_all(
    addr: SocketAddr,
    probes: Vec<(String, Vec<u8>)>,
    ending: AfterWrite,
) -> Vec<Seen> {
    let patience = Duration::from_secs(3);
    let send = |(what, bytes): (String, Vec<u8>)| {
        thread::spawn(move || {
            let mode = if what.ends_with("slowly") {
                WriteMode::ByteByByte
            } else {
                WriteMode::OneWrite
            };
            (
                what,
                probe_server(addr, &bytes, mode, ending, patience).unwrap(),
            )
        })
    };
    let running: Vec<_> = probes.into_iter().map(send).collect();
    running
        .into_iter()
        .map(|probe| probe.join().unwrap())
        .collect()
}

/// Returns garbage of every length, and a genuine first flight replayed, altered and cut.
pub(crate) fn probes(genuine: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for len in LENGTHS {
        let garbage = BytePattern::new(len as u64 + 1).next_bytes(len);
        all.push((format!("{len} bytes"), garbage.clone()));
        if len <= 200 {
            all.push((format!("{len} bytes slowly"), garbage));
        }
    }
    all.push(("an exact replay".to_owned(), genuine.to_vec()));
    all.push(("a slow replay, slowly".to_owned(), genuine.to_vec()));
    all.push(("a doubled replay".to_owned(), genuine.repeat(2)));
    for place in [0, 7, 15, 16, 20, 31, 32, 40, 47, 48, 50, 58, 62, 63, 74, 90] {
        let mut altered = genuine.to_vec();
        if let Some(byte) = altered.get_mut(place) {
            *byte ^= 1;
            all.push((format!("a replay with byte {place} changed"), altered));
        }
    }
    for len in [20, 31, 32, 33, 43, 48, 50, 59, 60, 75] {
        if let Some(cut) = genuine.get(..len) {
            all.push((format!("a replay cut at {len}"), cut.to_vec()));
        }
    }
    all
}

/// Returns a genuine first flight, of a peer's client or of adit, through a tap.
fn record(port: &Port, theirs: Option<ShadowsocksPeer>) -> Vec<u8> {
    let origin = OriginServer::start().unwrap();
    let tap = RecordingRelay::start(port.front.addr()).unwrap();
    let client = port.client(tap.addr());
    match theirs {
        Some(peer) => {
            let client = peer.start_forwarder_for(&client, origin.addr()).unwrap();
            traffic::check_one_byte(traffic::connect_directly(client.addr()).unwrap()).unwrap();
        }
        None => {
            let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
            let client = start(&["run", &target, &client.url()]);
            traffic::check_one_byte(traffic::connect_directly(client.addr()).unwrap()).unwrap();
            client.stop().unwrap();
        }
    }
    let genuine = tap.requests().into_iter().next().unwrap();
    assert!(genuine.len() > 63, "a recording of {} bytes", genuine.len());
    genuine
}

fn all_see_nothing(port: &Port, genuine: &[u8]) {
    for (ending, wanted) in NOTHING {
        for (what, seen) in send_all(port.front.addr(), probes(genuine), ending) {
            assert_eq!(seen, wanted, "{ending:?}: {what}");
        }
    }
}

/// SEC-P1 to SEC-P3: zero bytes, and the same reaction for every cause at every port.
fn nothing_to_be_seen(port: Port, theirs: Option<ShadowsocksPeer>) {
    let genuine = record(&port, theirs);
    all_see_nothing(&port, &genuine);
    // A valid client is still served.
    let origin = OriginServer::start().unwrap();
    let peer = theirs.unwrap_or(ShadowsocksPeer::SingBox);
    let client = port.client(port.front.addr());
    let client = peer.start_forwarder_for(&client, origin.addr()).unwrap();
    traffic::check_one_byte(traffic::connect_directly(client.addr()).unwrap()).unwrap();
    port.stop();
}

macro_rules! nothing_to_be_seen {
    ($($name:ident: $port:expr, $client:expr;)+) => {
        $(#[test]
        fn $name() {
            nothing_to_be_seen($port, $client);
        })+
    };
}

nothing_to_be_seen! {
    the_2022_edition: Port::alone(BLAKE3_AES_128), Some(ShadowsocksPeer::SingBox);
    the_2022_edition_after_our_client: Port::alone(BLAKE3_AES_128), None;
    sip004: Port::alone(AES_128), Some(ShadowsocksPeer::Libev);
    identity_headers_aes_128: Port::with_users(BLAKE3_AES_128, &IDENTITY_KEYS[0]), Some(ShadowsocksPeer::SingBox);
    identity_headers_aes_256: Port::with_users(BLAKE3_AES_256, &IDENTITY_KEYS[1]), None;
    users_by_trial: Port::with_users(AES_128, &IDENTITY_KEYS[0]), Some(ShadowsocksPeer::Libev);
    a_relay_aes_128: Port::relayed(&IDENTITY_KEYS[0]), Some(ShadowsocksPeer::SingBox);
    a_relay_aes_256: Port::relayed(&IDENTITY_KEYS[1]), None;
}

/// A prober must not learn whether the server behind a relay is reachable: the header that names it
/// may be a recording.
#[test]
fn a_relay_whose_server_is_gone() {
    let mut port = Port::relayed(&IDENTITY_KEYS[0]);
    let genuine = record(&port, None);
    for behind in port.behind.drain(..) {
        behind.stop().unwrap();
    }
    all_see_nothing(&port, &genuine);
    port.stop();
}

/// With `reject=forward`, unauthenticated peers reach another server, which receives their bytes
/// unchanged.
#[test]
fn strangers_meet_the_decoy() {
    let [ring, _] = &IDENTITY_KEYS;
    let [key, _] = ring.relays;
    let decoy = TcpListener::bind("127.0.0.1:0").unwrap();
    let reject = format!("reject=forward:{}", decoy.local_addr().unwrap());
    let nowhere: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let (users, folder) = (
        UsersFile::new(&ring.users),
        TempFolder::new("relay").unwrap(),
    );
    let next = format!(
        r#"[{{"server":"127.0.0.1","port":{},"psk":"{}"}}]"#,
        free_port(),
        ring.method.key
    );
    let next = folder.write_file("relay.json", next).unwrap();
    let relay = MethodKey { key, ..ring.method }.url(nowhere);
    // A request that the relay must refuse, because nothing listens at the server's address.
    let dumb = TcpListener::bind("127.0.0.1:0").unwrap();
    let keys = [key, ring.method.key];
    let hop = ClientSetup::new(ring.method, &keys, dumb.local_addr().unwrap()).url();
    let client = start(&["run", "tcp://127.0.0.1:0/127.0.0.1:9", &hop]);
    let mut dialled = traffic::connect_directly(client.addr()).unwrap();
    dialled.write_all(b"genuine").unwrap();
    let mut genuine = [0; 4096];
    let len = dumb.accept().unwrap().0.read(&mut genuine).unwrap();
    let garbage = BytePattern::new(77).next_bytes(300);
    for (url, bytes) in [
        (format!("{}?{reject}", ring.method.url(nowhere)), &*garbage),
        (format!("{}&{reject}", users.url(ring.method)), &garbage),
        (
            format!("{relay}?relay=@{}&{reject}", next.display()),
            &garbage,
        ),
        (
            format!("{relay}?relay=@{}&{reject}", next.display()),
            &genuine[..len],
        ),
    ] {
        let front = start(&["run", &url]);
        let mut stranger = traffic::connect_directly(front.addr()).unwrap();
        stranger.write_all(bytes).unwrap();
        let (mut met, _) = decoy.accept().unwrap();
        let mut said = vec![0; bytes.len()];
        met.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        met.read_exact(&mut said).unwrap();
        assert_eq!(said, bytes, "{url}");
        met.write_all(b"welcome").unwrap();
        let mut heard = [0; 7];
        stranger.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"welcome");
        front.stop().unwrap();
    }
    client.stop().unwrap();
}

/// Returns one port of each kind.
fn ports() -> Vec<Port> {
    let [ring, _] = &IDENTITY_KEYS;
    vec![
        Port::alone(BLAKE3_AES_128),
        Port::with_users(BLAKE3_AES_128, ring),
        Port::relayed(ring),
        Port::alone(AES_128),
        Port::with_users(AES_128, ring),
    ]
}

fn prober(server: SocketAddr) -> UdpSocket {
    let prober = UdpSocket::bind("127.0.0.1:0").unwrap();
    prober.connect(server).unwrap();
    let soon = Some(Duration::from_secs(1));
    prober.set_read_timeout(soon).unwrap();
    prober
}

/// Bytes that the server itself has sent must not open it either (SEC-R6).
#[test]
fn datagrams_of_a_prober_are_never_answered() {
    for port in ports() {
        let origin = OriginServer::start().unwrap();
        let prober = prober(port.front.addr());
        for len in [
            0, 1, 2, 15, 16, 17, 31, 32, 33, 43, 47, 48, 49, 60, 64, 512, 1390, 60_000,
        ] {
            prober
                .send(&BytePattern::new(len as u64 + 9).next_bytes(len))
                .unwrap();
        }
        assert!(prober.recv(&mut [0; 64]).is_err(), "{}", port.method.name);
        let client = port.client(port.front.addr());
        let client = ShadowsocksPeer::SingBox
            .start_forwarder_for(&client, origin.addr())
            .unwrap();
        traffic::check_datagrams(&ForwarderEntry::open(client.addr()).unwrap()).unwrap();
        port.stop();
    }
}

/// A recorded datagram opens a listener once, and never after a change.
#[test]
fn a_recorded_datagram_is_good_for_once() {
    for port in ports() {
        let origin = OriginServer::start().unwrap();
        // It receives what a client sends, and sends nothing.
        let dumb = UdpSocket::bind("127.0.0.1:0").unwrap();
        dumb.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let client = port.client(dumb.local_addr().unwrap());
        let client = ShadowsocksPeer::SingBox
            .start_forwarder_for(&client, origin.addr())
            .unwrap();
        let entry = ForwarderEntry::open(client.addr()).unwrap();
        entry.send(b"genuine").unwrap();
        let mut genuine = [0; 2048];
        let (len, _) = dumb.recv_from(&mut genuine).unwrap();
        let genuine = &genuine[..len];
        let prober = prober(port.front.addr());
        for place in 0..len {
            let mut altered = genuine.to_vec();
            altered[place] ^= 1;
            prober.send(&altered).unwrap();
            prober.send(&genuine[..place]).unwrap();
        }
        assert!(prober.recv(&mut [0; 2048]).is_err(), "{}", port.method.name);
        prober.send(genuine).unwrap();
        prober.recv(&mut [0; 2048]).unwrap();
        prober.send(genuine).unwrap();
        let again = prober.recv(&mut [0; 2048]);
        assert!(again.is_err(), "{}", port.method.name);
        port.stop();
    }
}
