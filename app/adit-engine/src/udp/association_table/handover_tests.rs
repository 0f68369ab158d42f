//! A table that is continued by another one, as in two processes. The target answers with the address from which a
//! datagram came: each association has its own.

use std::net::UdpSocket as StdUdpSocket;

use adit_net::dial::Family;
use adit_net::handover::HandedOverUdp;
use adit_net::system::ThreadRng;
use adit_shadowsocks::udp::{ClientSession, HEADROOM, SessionRegistry, TAILROOM};
use adit_shadowsocks::{Key, KeyChain, Method, ProcessStart, RestartPolicy, SaltPool, Users};
use adit_wire::Target;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::*;
use crate::UserTable;
use crate::chain_builder::unrestricted_connector;
use crate::serve::DescriptorPool;
use crate::udp::{AssociationRegistry, FixedTargetPackets, ShadowsocksPackets};

const LONG: Duration = Duration::from_secs(10);
const METHOD: Method = Method::Blake3Aes128Gcm;

/// A table in the background.
struct RunningTable {
    socket: Arc<BatchUdpSocket>,
    control: AssociationTableUpdater,
    task: JoinHandle<()>,
}

fn run(socket: BatchUdpSocket, target: SocketAddr, idle: Duration) -> RunningTable {
    let target = Target::from(target);
    run_with(socket, Box::new(FixedTargetPackets { target }), idle)
}

fn run_with(socket: BatchUdpSocket, codec: Box<dyn PacketCodec>, idle: Duration) -> RunningTable {
    let socket = Arc::new(socket);
    let router = Router::new(Vec::new(), unrestricted_connector(), Family::Any);
    let pool = Arc::new(DescriptorPool::new(usize::MAX));
    let table = UdpListener::new(
        socket.clone(),
        codec,
        Arc::new(router),
        Arc::default(),
        AssociationTtl { idle, dns: idle },
        AssociationRegistry::new(pool).register_listener(true),
    );
    RunningTable {
        socket,
        control: table.control(),
        task: tokio::spawn(table.run()),
    }
}

/// A target that answers with the source port of each datagram.
async fn port_echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut datagram = [0; 2048];
        loop {
            let (_, from) = socket.recv_from(&mut datagram).await.unwrap();
            let port = from.port().to_be_bytes();
            socket.send_to(&port, from).await.unwrap();
        }
    });
    at
}

/// Asks for the port of the client's association.
async fn ask(client: &UdpSocket, to: SocketAddr) -> u16 {
    client.send_to(b"which?", to).await.unwrap();
    let mut port = [0; 2];
    let (len, from) = timeout(LONG, client.recv_from(&mut port))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((len, from), (2, to));
    u16::from_be_bytes(port)
}

async fn client() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

async fn next_of(old: &RunningTable, target: SocketAddr) -> RunningTable {
    run(next_socket(old).await, target, LONG)
}

async fn next_socket(old: &RunningTable) -> BatchUdpSocket {
    let parts = timeout(LONG, old.control.hand_over()).await.unwrap();
    let (body, fds) = parts.unwrap().into_parts();
    let parts = HandedOverUdp::from_parts(&body, fds.into()).unwrap();
    BatchUdpSocket::continue_from(parts).unwrap()
}

fn local() -> BatchUdpSocket {
    let socket = StdUdpSocket::bind("127.0.0.1:0").unwrap();
    BatchUdpSocket::from_std(socket).unwrap()
}

#[tokio::test]
async fn associations_survive_a_handover_until_they_end() {
    let target = port_echo().await;
    let idle = Duration::from_millis(300);
    let old = run(local(), target, idle);
    let at = old.socket.local_addr().unwrap();
    let (known, new_client) = (client().await, client().await);
    let before = ask(&known, at).await;

    let new = next_of(&old, target).await;
    assert_eq!(new.socket.local_addr().unwrap(), at);
    for _ in 0..20 {
        assert_eq!(ask(&known, at).await, before, "the association continues");
        sleep(Duration::from_millis(10)).await;
    }
    let other = ask(&new_client, at).await;
    assert_ne!(other, before);
    assert_eq!(new.socket.forwarded_count(), 1, "it is at the next process");
    let why = timeout(LONG, old.control.hand_over()).await.unwrap();
    assert_eq!(why.unwrap_err().kind(), io::ErrorKind::AlreadyExists);

    // The association ends when it is idle, and the next one of the client starts at the next process.
    timeout(LONG, async {
        while new.socket.forwarded_count() > 0 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .unwrap();
    let after = ask(&known, at).await;
    old.task.abort();
    assert_eq!(ask(&known, at).await, after);
    assert_eq!(ask(&new_client, at).await, other);
    new.task.abort();
}

#[tokio::test]
async fn a_failed_handover_changes_nothing() {
    let target = port_echo().await;
    let old = run(local(), target, LONG);
    let at = old.socket.local_addr().unwrap();
    let (known, new_client) = (client().await, client().await);
    let before = ask(&known, at).await;
    drop(
        timeout(LONG, old.control.hand_over())
            .await
            .unwrap()
            .unwrap(),
    );
    assert_eq!(ask(&known, at).await, before);
    let new = next_of(&old, target).await;
    assert_eq!(ask(&known, at).await, before);
    new.task.abort();
    let _ = new.task.await;
    drop(new.socket);
    assert_eq!(ask(&known, at).await, before);
    assert_ne!(ask(&new_client, at).await, before);
    old.task.abort();
}

/// A client of the 2022 edition with one session.
struct SealedClient {
    session: ClientSession,
    target: Target,
}

impl SealedClient {
    fn new(key: &str, target: SocketAddr) -> Self {
        let chain = KeyChain::parse(METHOD, key).unwrap();
        Self {
            session: ClientSession::new(&chain, &mut ThreadRng),
            target: target.into(),
        }
    }

    fn seal(&mut self) -> Vec<u8> {
        let mut packet = vec![0; HEADROOM + 6 + TAILROOM];
        let payload = HEADROOM..HEADROOM + 6;
        let now = system::unix_now();
        let sealed = self
            .session
            .seal(&mut packet, payload, &self.target, now, &mut ThreadRng);
        packet[sealed.unwrap()].to_vec()
    }

    /// Asks for the port of the association through `socket`.
    async fn ask(&mut self, socket: &UdpSocket, to: SocketAddr) -> u16 {
        socket.send_to(&self.seal(), to).await.unwrap();
        let mut answer = vec![0; 2048];
        let received = timeout(LONG, socket.recv_from(&mut answer)).await;
        answer.truncate(received.unwrap().unwrap().0);
        let (_, payload) = self.session.open(&mut answer, system::unix_now()).unwrap();
        u16::from_be_bytes(answer[payload].try_into().unwrap())
    }
}

/// The next process knows neither the client's new address nor its keys, but the number of its session; and it refuses
/// recordings.
#[tokio::test]
async fn a_session_may_move_after_the_handover() {
    let target = port_echo().await;
    let (key, text) = Key::generate(METHOD, &mut ThreadRng);
    let users = Users::with_single_key(key);
    let start = ProcessStart::new(system::unix_now(), RestartPolicy::Lenient);
    let salts = || {
        Arc::new(SaltPool::new(
            [1; 16],
            system::unix_now(),
            RestartPolicy::Lenient,
        ))
    };
    let packets = |sessions: &Arc<SessionRegistry>| {
        let table = Arc::new(UserTable::new(users.clone(), None));
        Box::new(ShadowsocksPackets::new(table, salts(), sessions.clone()))
    };
    let sessions = Arc::new(SessionRegistry::new(start));
    let old = run_with(local(), packets(&sessions), LONG);
    let at = old.socket.local_addr().unwrap();
    let mut ann = SealedClient::new(&text, target);
    let (home, abroad) = (client().await, client().await);
    let before = ann.ask(&home, at).await;
    let recorded = ann.seal();
    home.send_to(&recorded, at).await.unwrap();
    timeout(LONG, home.recv_from(&mut [0; 2048]))
        .await
        .unwrap()
        .unwrap();

    let socket = next_socket(&old).await;
    let now = system::unix_now();
    let inherited = SessionRegistry::from_snapshot(&sessions.snapshot(now), now).unwrap();
    let new = run_with(socket, packets(&Arc::new(inherited)), LONG);
    assert_eq!(ann.ask(&home, at).await, before);
    assert_eq!(ann.ask(&abroad, at).await, before);
    assert_eq!(ann.ask(&abroad, at).await, before);
    let thief = client().await;
    thief.send_to(&recorded, at).await.unwrap();
    let mut answer = [0; 2048];
    let nothing = timeout(Duration::from_millis(100), thief.recv_from(&mut answer));
    assert!(nothing.await.is_err(), "a recording is answered");
    assert_eq!(ann.ask(&abroad, at).await, before, "and moves nothing");
    let mut bob = SealedClient::new(&text, target);
    assert_ne!(bob.ask(&client().await, at).await, before);
    old.task.abort();
    new.task.abort();
}
