//! A socket that is handed over from one listener to the next, as between two processes.

use std::future::poll_fn;
use std::time::Duration;

use adit_fec::CodeMatrix;
use adit_net::handover::HandedOverUdp;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

const LONG: Duration = Duration::from_secs(10);

fn settings(session: bool) -> FecSettings {
    let mut settings = FecSettings::new(Fec {
        data: 3,
        parity: 1,
        matrix: CodeMatrix::Vandermonde,
    });
    settings.session = session.then(|| SessionKey::new(&[5; 32]).unwrap());
    settings
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(LONG, what).await.unwrap()
}

/// Sends until the other end receives: the first datagrams may be lost.
async fn exchange(from: &FecChannel, to: &FecChannel, text: &[u8]) {
    let mut received = Vec::new();
    while !received.iter().any(|got| got == text) {
        from.send(text).unwrap();
        from.flush().unwrap();
        let more = poll_fn(|cx| to.poll_recv(cx, &mut |bytes| received.push(bytes.to_vec())));
        if let Ok(more) = timeout(Duration::from_millis(50), more).await {
            more.unwrap();
        }
    }
}

/// Receives for the lanes of a listener that starts no further ones.
fn serve(mut listener: FecListener) -> JoinHandle<()> {
    tokio::spawn(async move {
        let lane = listener.accept().await;
        panic!(
            "a lane has started: {:?}",
            lane.map(|lane| lane.peer_addr())
        );
    })
}

/// Starts a lane: its client, and its end at the listener.
async fn open(listener: &mut FecListener, session: bool) -> (FecChannel, FecChannel) {
    let to = listener.local_addr().unwrap();
    let near = FecChannel::connect(to, settings(session)).unwrap();
    let greet = async {
        loop {
            near.send(b"hello").unwrap();
            near.flush().unwrap();
            let answer = poll_fn(|cx| near.poll_recv(cx, &mut |_| ()));
            let _ = timeout(Duration::from_millis(20), answer).await;
        }
    };
    let far = tokio::select! {
        lane = listener.accept() => lane.unwrap(),
        () = greet => unreachable!(),
    };
    (near, far)
}

async fn lanes_survive(session: bool) {
    let any = "127.0.0.1:0".parse().unwrap();
    let mut old = FecListener::bind(any, settings(session)).unwrap();
    let (near, far) = within(open(&mut old, session)).await;
    let (body, fds) = old.hand_over().unwrap().into_parts();
    let parts = HandedOverUdp::from_parts(&body, fds.into()).unwrap();
    let socket = BatchUdpSocket::continue_from(parts).unwrap();
    let mut new = FecListener::over_udp(socket, settings(session)).unwrap();
    let why = old.hand_over().unwrap_err();
    assert_eq!(why.kind(), io::ErrorKind::AlreadyExists);
    let old = serve(old);

    let (other, other_far) = within(open(&mut new, session)).await;
    let shared = new.socket.clone();
    let new = serve(new);
    within(exchange(&near, &far, b"to the old one")).await;
    within(exchange(&far, &near, b"from the old one")).await;
    within(exchange(&other, &other_far, b"to the new one")).await;
    within(exchange(&other_far, &other, b"from the new one")).await;
    assert!(!old.is_finished() && !new.is_finished());
    assert_eq!(shared.udp.forwarded_count(), 1);
    drop((near, far));
    assert_eq!(shared.udp.forwarded_count(), 0);
    old.abort();
    new.abort();
}

#[tokio::test]
async fn lanes_survive_a_handover() {
    lanes_survive(false).await;
}

#[tokio::test]
async fn lanes_with_session_keys_survive_a_handover() {
    lanes_survive(true).await;
}
