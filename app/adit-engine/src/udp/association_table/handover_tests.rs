//! A table that is continued by another one, as in two processes. The target answers with the address from which a
//! datagram came: each association has its own.

use std::net::UdpSocket as StdUdpSocket;

use adit_net::dial::Family;
use adit_net::handover::HandedOverUdp;
use adit_wire::Target;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::*;
use crate::chain_builder::unrestricted_connector;
use crate::serve::DescriptorPool;
use crate::udp::{AssociationRegistry, FixedTargetPackets};

const LONG: Duration = Duration::from_secs(10);

/// A table in the background.
struct RunningTable {
    socket: Arc<BatchUdpSocket>,
    control: AssociationTableUpdater,
    task: JoinHandle<()>,
}

fn run(socket: BatchUdpSocket, target: SocketAddr, idle: Duration) -> RunningTable {
    let socket = Arc::new(socket);
    let codec = FixedTargetPackets {
        target: Target::from(target),
    };
    let router = Router::new(Vec::new(), unrestricted_connector(), Family::Any);
    let pool = Arc::new(DescriptorPool::new(usize::MAX));
    let table = UdpListener::new(
        socket.clone(),
        Box::new(codec),
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
    let parts = timeout(LONG, old.control.hand_over()).await.unwrap();
    let (body, fds) = parts.unwrap().into_parts();
    let parts = HandedOverUdp::from_parts(&body, fds.into()).unwrap();
    run(BatchUdpSocket::continue_from(parts).unwrap(), target, LONG)
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
