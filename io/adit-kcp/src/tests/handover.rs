//! A socket that is handed over from one listener to the next, as between two processes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_net::handover::HandedOverUdp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::{Config, DatagramTransport, KcpListener, KcpStream, SessionKey, Settings};

const LONG: Duration = Duration::from_secs(20);

fn plain() -> Settings {
    Settings::new(Config::fast3())
}

fn sealed() -> Settings {
    let mut settings = plain();
    settings.session = Some(SessionKey::new(&[7; 32]).unwrap());
    settings
}

fn bind(settings: &Settings) -> KcpListener {
    KcpListener::bind("127.0.0.1:0".parse().unwrap(), settings.clone()).unwrap()
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(LONG, what).await.unwrap()
}

/// Hands a listener over as through a channel between processes.
async fn next_of(listener: &KcpListener, settings: &Settings) -> KcpListener {
    let (body, fds) = within(listener.hand_over()).await.unwrap().into_parts();
    let parts = HandedOverUdp::from_parts(&body, fds.into()).unwrap();
    KcpListener::continue_from(parts, settings.clone()).unwrap()
}

/// Starts a session at `listener`, which another one does not see.
async fn open(listener: &mut KcpListener, settings: &Settings) -> (KcpStream, KcpStream) {
    let to = listener.local_addr().unwrap();
    let mut near = KcpStream::connect(to, settings.clone()).await.unwrap();
    near.write_all(b"hello").await.unwrap();
    near.flush().await.unwrap();
    let (mut far, _) = within(listener.accept()).await.unwrap();
    let mut text = [0; 5];
    within(far.read_exact(&mut text)).await.unwrap();
    (near, far)
}

/// Moves `len` bytes from one end to the other.
async fn exchange(near: &mut KcpStream, far: &mut KcpStream, len: usize) {
    let text: Vec<u8> = (0..len).map(|n| n.to_le_bytes()[0]).collect();
    let mut got = vec![0; text.len()];
    let send = async {
        near.write_all(&text).await.unwrap();
        near.flush().await.unwrap();
    };
    let receive = async { far.read_exact(&mut got).await.unwrap() };
    within(async { tokio::join!(send, receive) }).await;
    assert!(got == text);
}

async fn sessions_survive(settings: Settings) {
    let mut old = bind(&settings);
    let (mut near, mut far) = open(&mut old, &settings).await;
    let (mut other, mut other_far) = open(&mut old, &settings).await;
    // Under load: the handover happens while data is under way.
    let moving = tokio::spawn(async move {
        exchange(&mut near, &mut far, 20_000_000).await;
        (near, far)
    });
    sleep(Duration::from_millis(20)).await;
    let mut new = next_of(&old, &settings).await;
    assert!(!moving.is_finished());
    assert_eq!(new.local_addr().unwrap(), old.local_addr().unwrap());
    exchange(&mut other_far, &mut other, 300_000).await;
    let (mut near, mut far) = moving.await.unwrap();
    exchange(&mut far, &mut near, 300_000).await;

    // A new session starts at the new listener, and only there.
    let (mut later, mut later_far) = open(&mut new, &settings).await;
    exchange(&mut later, &mut later_far, 300_000).await;
    let nothing = timeout(Duration::from_millis(50), old.accept()).await;
    assert!(nothing.is_err());

    // Without its listener the old process serves its sessions until they end.
    drop(old);
    exchange(&mut near, &mut far, 300_000).await;
    exchange(&mut other, &mut other_far, 300_000).await;
    near.shutdown().await.unwrap();
    assert_eq!(within(far.read(&mut [0; 9])).await.unwrap(), 0);
    drop((near, far, other, other_far));
    exchange(&mut later_far, &mut later, 300_000).await;
    let (mut last, mut last_far) = open(&mut new, &settings).await;
    exchange(&mut last, &mut last_far, 300_000).await;
}

#[tokio::test]
async fn sessions_survive_a_handover() {
    sessions_survive(plain()).await;
}

#[tokio::test]
async fn sessions_with_keys_survive_a_handover() {
    sessions_survive(sealed()).await;
}

/// A middlebox that gets another address at each notification.
async fn relay(server: SocketAddr) -> (SocketAddr, Arc<Notify>) {
    let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = near.local_addr().unwrap();
    let moves = Arc::new(Notify::new());
    let moved = moves.clone();
    tokio::spawn(async move {
        let mut far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (mut up, mut down) = ([0; 2000], [0; 2000]);
        let mut client = None;
        loop {
            tokio::select! {
                () = moved.notified() => far = UdpSocket::bind("127.0.0.1:0").await.unwrap(),
                Ok((n, from)) = near.recv_from(&mut up) => {
                    client = Some(from);
                    let _ = far.send_to(&up[..n], server).await;
                }
                Ok((n, _)) = far.recv_from(&mut down) => {
                    let Some(client) = client else { continue };
                    let _ = near.send_to(&down[..n], client).await;
                }
            }
        }
    });
    (at, moves)
}

/// The new listener does not know the address, but the session.
#[tokio::test]
async fn a_client_with_session_keys_may_move_after_the_handover() {
    let settings = sealed();
    let mut old = bind(&settings);
    let (at, moves) = relay(old.local_addr().unwrap()).await;
    let mut near = KcpStream::connect(at, settings.clone()).await.unwrap();
    near.write_all(b"hello").await.unwrap();
    near.flush().await.unwrap();
    let (mut far, first) = within(old.accept()).await.unwrap();
    within(far.read_exact(&mut [0; 5])).await.unwrap();
    exchange(&mut far, &mut near, 10_000).await;
    let mut new = next_of(&old, &settings).await;
    for _ in 0..3 {
        moves.notify_one();
        exchange(&mut near, &mut far, 100_000).await;
        exchange(&mut far, &mut near, 100_000).await;
    }
    assert_ne!(far.peer_addr(), first, "it has moved");
    let (mut later, mut later_far) = open(&mut new, &settings).await;
    exchange(&mut later, &mut later_far, 10_000).await;
}

/// The new listener forwards nothing any more when the sessions of the old one have ended.
#[tokio::test]
async fn sessions_that_end_are_released() {
    let settings = plain();
    let mut old = bind(&settings);
    let (near, far) = open(&mut old, &settings).await;
    let (mut kept, mut kept_far) = open(&mut old, &settings).await;
    let new = next_of(&old, &settings).await;
    let forwarded = || new.socket.transport.udp().unwrap().forwarded_count();
    assert_eq!(forwarded(), 2);
    drop((near, far));
    within(async {
        while forwarded() == 2 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    exchange(&mut kept, &mut kept_far, 100_000).await;
    assert_eq!(forwarded(), 1);
    drop((old, kept, kept_far));
    within(async {
        while forwarded() > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_failed_handover_changes_nothing() {
    let settings = plain();
    let mut old = bind(&settings);
    let (mut near, mut far) = open(&mut old, &settings).await;
    drop(within(old.hand_over()).await.unwrap());
    let (mut later, mut later_far) = open(&mut old, &settings).await;
    let new = next_of(&old, &settings).await;
    let why = within(old.hand_over()).await.unwrap_err();
    assert_eq!(why.kind(), io::ErrorKind::AlreadyExists);
    exchange(&mut near, &mut far, 100_000).await;
    // The new process ends early.
    drop(new);
    exchange(&mut later, &mut later_far, 100_000).await;
    let (mut last, mut last_far) = open(&mut old, &settings).await;
    exchange(&mut last, &mut last_far, 100_000).await;
}

struct Nowhere;

impl DatagramTransport for Nowhere {
    fn poll_recv_from(
        &self,
        _: &mut std::task::Context<'_>,
        _: &mut [u8],
    ) -> std::task::Poll<io::Result<(usize, SocketAddr)>> {
        std::task::Poll::Pending
    }

    fn try_send_to(&self, _: &[u8], _: SocketAddr) -> io::Result<()> {
        Ok(())
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[tokio::test]
async fn a_transport_cannot_be_handed_over() {
    let listener = KcpListener::bind_over(Nowhere, plain()).unwrap();
    let why = within(listener.hand_over()).await.unwrap_err();
    assert_eq!(why.kind(), io::ErrorKind::Unsupported);
}
