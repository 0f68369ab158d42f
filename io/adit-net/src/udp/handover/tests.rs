//! Two sockets of one port in one process: the previous one and the next one.

use std::future::poll_fn;
use std::time::Duration;

use super::super::tests::recv;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use super::*;

fn local() -> BatchUdpSocket {
    BatchUdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap()
}

/// Hands `old` over with these peers.
fn next_of(old: &BatchUdpSocket, peers: &[&BatchUdpSocket]) -> BatchUdpSocket {
    let mut parts = old.hand_over().unwrap();
    let peers = peers.iter().map(|peer| peer.local_addr().unwrap());
    parts.sources.extend(peers);
    let (body, fds) = parts.into_parts();
    BatchUdpSocket::continue_from(HandedOverUdp::from_parts(&body, fds.into()).unwrap()).unwrap()
}

type Received = Arc<Mutex<Vec<Vec<u8>>>>;

/// Receives on a socket in the background, as a process does, and returns what it received in the end.
fn spawn_receiver(socket: &Arc<BatchUdpSocket>) -> (tokio::task::JoinHandle<()>, Received) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let (socket, into) = (socket.clone(), received.clone());
    let task = tokio::spawn(async move {
        loop {
            let done = poll_fn(|cx| {
                socket.poll_recv(cx, &mut |datagram, _| {
                    into.lock().unwrap().push(datagram.to_vec());
                })
            });
            done.await.unwrap();
        }
    });
    (task, received)
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), what)
        .await
        .unwrap()
}

#[tokio::test]
async fn datagrams_reach_the_process_that_serves_their_peer() {
    let (old, known, new_peer) = (local(), local(), local());
    let at = old.local_addr().unwrap();
    known.try_send(b"first", at).unwrap();
    assert_eq!(within(recv(&old, 1)).await[0].0, b"first");

    let new = Arc::new(next_of(&old, &[&known]));
    assert_eq!(new.local_addr().unwrap(), at);
    assert!(old.is_handed_over() && new.forwarded_count() == 1);
    let (task, received) = spawn_receiver(&new);
    for text in [&b"second"[..], b"", &[7; 1400]] {
        known.try_send(text, at).unwrap();
        new_peer.try_send(b"hello", at).unwrap();
        let (got, from) = within(recv(&old, 1)).await.remove(0);
        assert_eq!((&*got, from), (text, known.local_addr().unwrap()));
    }
    // A run that the kernel has joined stays one.
    (0..20).for_each(|n| known.queue(&[n; 1000], at).unwrap());
    known.flush().unwrap();
    let run = within(recv(&old, 20)).await;
    assert!((0..20).zip(&run).all(|(n, (got, _))| *got == [n; 1000]));
    // Both send.
    old.try_send(b"reply", known.local_addr().unwrap()).unwrap();
    new.try_send(b"other", new_peer.local_addr().unwrap())
        .unwrap();
    assert_eq!(within(recv(&known, 1)).await[0], (b"reply".to_vec(), at));
    assert_eq!(within(recv(&new_peer, 1)).await[0], (b"other".to_vec(), at));
    task.abort();
    assert!(received.lock().unwrap().iter().all(|got| got == b"hello"));
}

#[tokio::test]
async fn a_released_peer_belongs_to_the_next_process() {
    let (old, known, kept) = (local(), local(), local());
    let at = old.local_addr().unwrap();
    let new = next_of(&old, &[&known, &kept]);
    old.release_source(known.local_addr().unwrap());
    known.try_send(b"new session", at).unwrap();
    assert_eq!(within(recv(&new, 1)).await[0].0, b"new session");
    assert_eq!(new.forwarded_count(), 1);
    // The end of the previous socket releases all.
    drop(old);
    kept.try_send(b"another", at).unwrap();
    assert_eq!(within(recv(&new, 1)).await[0].0, b"another");
    assert_eq!(new.forwarded_count(), 0);
}

#[tokio::test]
async fn the_socket_is_received_on_again_if_the_next_process_ends() {
    let (old, known) = (Arc::new(local()), local());
    let at = old.local_addr().unwrap();
    let (task, received) = spawn_receiver(&old);
    tokio::task::yield_now().await;
    // One that never started, and one that received for some time.
    drop(old.hand_over().unwrap());
    let turns = [b"one", b"two"];
    for text in turns {
        let before = received.lock().unwrap().len();
        known.try_send(text, at).unwrap();
        within(async {
            while received.lock().unwrap().len() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!(received.lock().unwrap()[before], text);
        let new = next_of(&old, &[]);
        assert_eq!(
            old.hand_over().unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        known.try_send(b"for the next", at).unwrap();
        // The task of the previous process was waiting for the socket and has not read it.
        assert_eq!(within(recv(&new, 1)).await[0].0, b"for the next");
    }
    task.abort();
}

#[tokio::test]
async fn three_processes_in_a_row() {
    let (first, one, two) = (local(), local(), local());
    let at = first.local_addr().unwrap();
    let second = Arc::new(next_of(&first, &[&one]));
    let third = Arc::new(next_of(&second, &[&two]));
    assert_eq!(third.forwarded_count(), 2);
    let (_, seen_by_second) = spawn_receiver(&second);
    let (_, seen_by_third) = spawn_receiver(&third);
    one.try_send(b"1", at).unwrap();
    two.try_send(b"2", at).unwrap();
    assert_eq!(within(recv(&first, 1)).await[0].0, b"1");
    drop(first);
    // The next datagram is lost at most: the second process sees that the first has ended, and passes that on.
    within(async {
        while seen_by_third.lock().unwrap().is_empty() {
            one.try_send(b"1", at).unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(seen_by_second.lock().unwrap().contains(&b"2".to_vec()));
    assert!(seen_by_third.lock().unwrap().iter().all(|got| got == b"1"));
}

/// A client that has moved is known by its session.
#[tokio::test]
async fn sessions_are_forwarded_from_any_address() {
    let (old, moved) = (local(), local());
    let mut parts = old.hand_over().unwrap();
    parts.sessions = vec![1, u64::MAX];
    let (body, fds) = parts.into_parts();
    let parts = HandedOverUdp::from_parts(&body, fds.into()).unwrap();
    assert_eq!(parts.sessions, [1, u64::MAX]);
    let new = BatchUdpSocket::continue_from(parts).unwrap();
    let from = moved.local_addr().unwrap();
    assert!(new.is_forwarding());
    assert!(!new.forward_session(2, b"of another", from));
    assert!(new.forward_session(u64::MAX, b"of a session", from));
    assert!(new.forward_datagram(b"any", from));
    let received = within(recv(&old, 2)).await;
    assert_eq!(received[0], (b"of a session".to_vec(), from));
    assert_eq!(received[1], (b"any".to_vec(), from));
    drop(old);
    assert!(!new.forward_session(1, b"late", from));
    assert_eq!(new.forwarded_count(), 0);
    assert!(!new.is_forwarding());
}

/// A previous process that does not read costs datagrams, not time.
#[tokio::test]
async fn a_full_link_loses_datagrams() {
    let (old, known) = (local(), local());
    let at = old.local_addr().unwrap();
    let new = Arc::new(next_of(&old, &[&known]));
    let (task, received) = spawn_receiver(&new);
    for _ in 0..3000 {
        known.try_send(&[7; 8000], at).unwrap();
        tokio::task::yield_now().await;
    }
    let mut forwarded = 0;
    while old.try_recv(&mut |_, _| forwarded += 1).is_ok() {}
    assert!((1..3000).contains(&forwarded), "{forwarded}");
    // And then it goes on, after what the socket's own queue contains.
    within(async {
        let mut received = Vec::new();
        while !received.iter().any(|(got, _)| got == b"later") {
            known.try_send(b"later", at).unwrap();
            received = recv(&old, 1).await;
        }
    })
    .await;
    task.abort();
    assert!(received.lock().unwrap().is_empty());
}

#[tokio::test]
async fn other_descriptors_are_refused() {
    let fd = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let parts = |socket, link| HandedOverUdp {
        socket,
        link,
        sources: Vec::new(),
        sessions: Vec::new(),
    };
    let HandedOverUdp { socket, link, .. } = local().hand_over().unwrap();
    for parts in [parts(socket, fd()), parts(fd(), link)] {
        let why = BatchUdpSocket::continue_from(parts).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::InvalidInput);
    }
    let none = [0; 8];
    assert!(HandedOverUdp::from_parts(&none, vec![fd(), fd()]).is_ok());
    assert!(HandedOverUdp::from_parts(&none, vec![fd()]).is_err());
    // Without a length, with one that is too large, and with half a session.
    for body in [&b""[..], &[0, 0, 0, 0, 0, 0, 0, 1], &[0; 12]] {
        assert!(HandedOverUdp::from_parts(body, vec![fd(), fd()]).is_err());
    }
}
