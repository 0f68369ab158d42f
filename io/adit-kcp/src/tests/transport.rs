//! Sessions over user-provided sockets and transports.

use std::io::{self, ErrorKind};
use std::sync::Mutex;
use std::task::{Context, Poll, ready};

use adit_crypto::packet::session::SessionKey;

use super::memory::{Net, pair_over};
use super::*;

const BAD: FaultRates = FaultRates {
    lost: 80,
    doubled: 30,
    late: 60,
};

#[tokio::test]
async fn sockets_of_the_program_carry_sessions() {
    let [ours, theirs] = [(); 2].map(|()| UdpSocket::bind(any()).unwrap());
    let (at, from) = (ours.local_addr().unwrap(), theirs.local_addr().unwrap());
    ours.set_ttl(33).unwrap();
    let kept = ours.try_clone().unwrap();
    let aes = || settings(PacketKind::Aes, Some(FEC));
    let mut listener = KcpListener::from_socket(ours, aes()).unwrap();
    assert_eq!(listener.local_addr().unwrap(), at);
    assert!(listener.socket_buffers().is_some());
    let near = KcpStream::from_socket(theirs, at, aes()).unwrap();
    assert_eq!(near.local_addr().unwrap(), from);
    let (near, far) = met(&mut listener, near).await;
    assert_eq!(far.peer_addr(), from);
    near.set_dscp(46).unwrap();
    assert_eq!(kept.ttl().unwrap(), 33, "it must be the given socket");
    echo(near, far, 200_000, 1).await;
}

#[tokio::test]
async fn a_socket_that_fits_no_session_is_refused() {
    let connected = UdpSocket::bind(any()).unwrap();
    connected.connect(connected.local_addr().unwrap()).unwrap();
    let kept = connected.try_clone().unwrap();
    let refused = KcpStream::from_socket(connected, any(), plain()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let refused = KcpListener::from_socket(kept, plain()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let v4 = UdpSocket::bind(any()).unwrap();
    let v6 = "[::1]:9".parse().unwrap();
    let refused = KcpStream::from_socket(v4, v6, plain()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn a_bad_transport_is_repaired() {
    let sealed = || Settings {
        session: Some(SessionKey::new(&[7; 32]).unwrap()),
        ..plain()
    };
    for settings in [plain(), settings(PacketKind::Salsa20, Some(FEC)), sealed()] {
        let net = Net::new(BAD);
        let counters = Arc::clone(&settings.counters);
        let (listener, near, far) = pair_over(&net, settings.clone(), settings.clone()).await;
        assert_eq!(
            (listener.local_addr().unwrap(), listener.socket_buffers()),
            (Net::addr(1), None)
        );
        assert_eq!(
            (near.peer_addr(), far.peer_addr()),
            (Net::addr(1), Net::addr(2))
        );
        assert_eq!(near.set_dscp(0).unwrap_err().kind(), ErrorKind::Unsupported);
        echo(near, far, 300_000, 2).await;
        let counts = counters.counts();
        assert!(
            counts.retrans_segs > 0 && counts.repeat_segs > 0,
            "{counts:?}"
        );
        let longest = net.sent_to(1).iter().map(Vec::len).max();
        assert_eq!(longest, Some(settings.mtu));
    }
}

#[tokio::test]
async fn a_listener_over_a_transport_serves_many() {
    let net = Net::new(BAD);
    let end = Arc::new(net.end(1));
    let watched = Arc::downgrade(&end);
    let mut listener = KcpListener::bind_over(end, plain()).unwrap();
    for len in [0, 9, 24, 1500] {
        net.forge(99, 1, &vec![7; len]);
    }
    let mut both = Vec::new();
    for number in 2..8 {
        let client = Settings {
            conv: Some(number.into()),
            ..plain()
        };
        let near = KcpStream::connect_over(net.end(number), Net::addr(1), client).unwrap();
        let (near, far) = met(&mut listener, near).await;
        assert_eq!(
            (far.peer_addr(), far.conv()),
            (Net::addr(number), number.into())
        );
        both.push(tokio::spawn(echo(near, far, 60_000, number.into())));
    }
    for one in both {
        one.await.unwrap();
    }
    drop(listener);
    let deadline = Instant::now() + PATIENCE;
    while watched.strong_count() > 0 {
        assert!(Instant::now() < deadline, "the transport was not dropped");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_end_of_a_transport_ends_its_sessions() {
    let net = Net::new(FaultRates::default());
    let (mut listener, mut near, mut far) = pair_over(&net, plain(), plain()).await;
    net.close(1);
    let read = timeout(PATIENCE, far.read_u8()).await.unwrap();
    assert_eq!(read.unwrap_err().kind(), ErrorKind::BrokenPipe);
    let wrote = far.write(b"x").await;
    assert_eq!(wrote.unwrap_err().kind(), ErrorKind::BrokenPipe);
    let accepted = timeout(PATIENCE, listener.accept()).await.unwrap();
    assert_eq!(accepted.unwrap_err().kind(), ErrorKind::NotConnected);
    // The other end does not notice it.
    near.write_all(b"x").await.unwrap();
}

/// The out-of-band datagrams of one session, as the transport of another.
struct Beside {
    outer: KcpStream,
    inbound: Mutex<OobReceiver>,
}

impl Beside {
    fn of(outer: KcpStream) -> Self {
        let inbound = Mutex::new(outer.oob_receiver());
        Self { outer, inbound }
    }
}

impl DatagramTransport for Beside {
    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let Some(datagram) = ready!(self.inbound.lock().unwrap().poll_recv(cx)) else {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        };
        out[..datagram.len()].copy_from_slice(&datagram);
        Poll::Ready(Ok((datagram.len(), self.outer.peer_addr())))
    }

    fn try_send_to(&self, datagram: &[u8], _: SocketAddr) -> io::Result<()> {
        self.outer.send_oob(datagram).map_err(io::Error::other)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.outer.local_addr()
    }
}

#[tokio::test]
async fn one_session_carries_another() {
    let outer = settings(PacketKind::Aes, Some(FEC));
    let (_listener, near, mut far) = pair(outer.clone(), outer).await;
    // Before the peer has answered it is sent little.
    far.write_all(b"?").await.unwrap();
    let inner = Settings {
        mtu: near.oob_max_size(),
        kcp: Config {
            send_window: 32,
            ..Config::fast3()
        },
        ..plain()
    };
    let peer = near.peer_addr();
    let mut listener = KcpListener::bind_over(Beside::of(far), inner.clone()).unwrap();
    let near = KcpStream::connect_over(Beside::of(near), peer, inner).unwrap();
    let (near, far) = met(&mut listener, near).await;
    echo(near, far, 100_000, 7).await;
}
