//! UDP associations in numbers: their owners, their limits and their costs.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{AES_128, BLAKE3_AES_128, IDENTITY_KEYS, MethodKey};
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, traffic};
use adit_net::PacketBuf;
use adit_net::system::{self, ThreadRng};
use adit_shadowsocks::udp::ClientSession;
use adit_shadowsocks::{KeyChain, Method as Edition};

use crate::setup::{ALLOW, UsersFile, bin, resident, server};

/// Returns the keys of a client as its URL writes them.
pub(crate) fn chain(method: MethodKey, secrets: &[&str]) -> KeyChain {
    let edition: Edition = method.name.parse().unwrap();
    KeyChain::parse(edition, &secrets.join(":")).unwrap()
}

/// A client's session, used packet by packet.
pub(crate) struct Session(ClientSession);

impl Session {
    pub(crate) fn new(chain: &KeyChain) -> Self {
        Self(ClientSession::new(chain, &mut ThreadRng))
    }

    pub(crate) fn seal(&mut self, say: &[u8], to: SocketAddr) -> Vec<u8> {
        let mut packet = PacketBuf::from_payload(say);
        let (bytes, payload) = packet.buffer_and_range();
        let sealed = self
            .0
            .seal(
                bytes,
                payload,
                &to.into(),
                system::unix_now(),
                &mut ThreadRng,
            )
            .unwrap();
        packet.set_payload(sealed);
        packet.payload().to_vec()
    }

    /// Returns true if an answer arrives.
    pub(crate) fn ask(
        &mut self,
        socket: &UdpSocket,
        say: &[u8],
        to: SocketAddr,
    ) -> Option<Vec<u8>> {
        socket.send(&self.seal(say, to)).unwrap();
        let mut answer = vec![0; 2048];
        let n = socket.recv(&mut answer).ok()?;
        let (_, data) = self.0.open(&mut answer[..n], system::unix_now()).ok()?;
        Some(answer[data].to_vec())
    }
}

/// Returns a socket that sends to `at` and waits for answers.
pub(crate) fn client(at: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(at).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    socket
}

/// Starts a server that answers with the sender's port, and stops after a while of silence.
pub(crate) fn whoami() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let at = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((_, from)) = socket.recv_from(&mut [0; 2048]) {
            let _ = socket.send_to(from.port().to_string().as_bytes(), from);
        }
    });
    at
}

fn descriptors(adit: &mut AditProcess) -> usize {
    let folder = fs::read_dir(format!("/proc/{}/fd", adit.process().id()));
    folder.unwrap().count()
}

/// Waits until the process has at most this many descriptors.
fn descriptors_fall_to(adit: &mut AditProcess, most: usize) {
    let until = Instant::now() + TEST_TIMEOUT;
    while descriptors(adit) > most {
        assert!(Instant::now() < until, "{} descriptors", descriptors(adit));
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_user_takes_udp_from_nobody() {
    let ring = &IDENTITY_KEYS[0];
    let mut server = UsersFile::new(&ring.users).serve(ring.method);
    let target = whoami();
    let keys = |user: usize| chain(ring.method, &[ring.method.key, ring.users[user].1]);
    let (greedy, modest) = (keys(0), keys(1));
    let socket = client(server.addr());
    let mut bob = Session::new(&modest);
    let first = bob.ask(&socket, b"?", target).expect("an answer");
    let before = descriptors(&mut server);

    let flood = client(server.addr());
    for turn in 0..1_200 {
        let answer = Session::new(&greedy).ask(&flood, b"?", target);
        assert!(
            answer.is_some(),
            "{turn}: the newest one of the greedy user"
        );
    }
    descriptors_fall_to(&mut server, before + 512);
    assert_eq!(
        bob.ask(&socket, b"?", target),
        Some(first),
        "another user's association went for it"
    );
    server.stop().unwrap();
}

#[test]
fn datagrams_leave_connections_their_descriptors() {
    let origin = OriginServer::start().unwrap();
    let forward = format!("udp://127.0.0.1:0/{}", whoami());
    let socks = format!("socks5://127.0.0.1:0?{ALLOW}");
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 400; exec \"$0\" \"$@\""])
        .arg(bin())
        .args(["run", "-L", &forward, "-L", &socks]);
    let mut adit = AditProcess::start_command(command, 2).unwrap();
    let (entry, proxy) = (adit.addrs()[0], adit.addrs()[1]);
    let at_rest = descriptors(&mut adit);
    let all: Vec<UdpSocket> = (0..600)
        .map(|_| {
            let socket = client(entry);
            socket.send(b"?").unwrap();
            socket
        })
        .collect();
    let newest = client(entry);
    // Datagrams of the flood may still be queued before it.
    newest
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let answered = (0..10).any(|_| {
        newest.send(b"?").unwrap();
        newest.recv(&mut [0; 64]).is_ok()
    });
    assert!(answered, "no room for the newest");
    // Half of them, and a sixteenth that is being closed.
    let open = descriptors(&mut adit);
    assert!(open <= at_rest + 225, "{open} are open, {at_rest} at rest");
    let to = Destination::Addr(origin.addr());
    let streams: Vec<_> = (0..20)
        .map(|n| {
            socks_client::connect_through(proxy, None, &to).unwrap_or_else(|e| panic!("{n}: {e}"))
        })
        .collect();
    for stream in streams {
        traffic::check_one_byte(stream).unwrap();
    }
    drop(all);
    adit.stop().unwrap();
}

/// Memory of a session that was answered, in the edition that stores most for it. A process allocates
/// other memory (a worker's first buffers) once, and rarely in between: the minimum of several servers
/// counts. Measured: 2.2 KiB, of which the entry in the table of sessions has 120 bytes, and the state of a handover and
/// the resolver of the route have 50.
#[test]
fn an_association_is_small() {
    let all = [(); 3].map(|()| bytes_of_an_association());
    assert!(all.iter().min() <= Some(&2304), "{all:?} bytes");
}

fn bytes_of_an_association() -> u64 {
    // Together with those before, as many as the tables hold before they grow again.
    const COUNT: u64 = 3_300;
    let mut server = server(BLAKE3_AES_128);
    let keys = chain(BLAKE3_AES_128, &[BLAKE3_AES_128.key]);
    let (target, socket) = (whoami(), client(server.addr()));
    // The kernel's queue of the loopback device is full at times beside other tests, which loses datagrams.
    let open = |count: u64| {
        for turn in 0..count {
            let mut session = Session::new(&keys);
            let is_answered = (0..3).any(|_| session.ask(&socket, b"?", target).is_some());
            assert!(is_answered, "{turn}");
        }
    };
    // Memory that every process allocates, and tables that grow in steps.
    open(200);
    let before = resident(&mut server);
    open(COUNT);
    let each = resident(&mut server).saturating_sub(before) * 1024 / COUNT;
    server.stop().unwrap();
    each
}

/// Each garbage packet costs one attempt per user, so a source is limited; known users of the same
/// source continue.
#[test]
fn garbage_does_not_have_every_key_tried_for_ever() {
    // Trying all of them takes a millisecond.
    let passwords: Vec<(String, String)> = (0..1_000)
        .map(|n| (format!("user{n}"), format!("password{n}")))
        .collect();
    let users: Vec<(&str, &str)> = passwords.iter().map(|(n, p)| (&**n, &**p)).collect();
    let mut server = UsersFile::new(&users).serve(AES_128);
    let target = whoami();
    let keys = |user: usize| chain(AES_128, &[users[user].1]);
    let (socket, other) = (client(server.addr()), client(server.addr()));
    // The garbage uses up its attempts before the answer, on a busy machine too.
    for socket in [&socket, &other] {
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    }
    let mut last = Session::new(&keys(999));
    let mine = last.ask(&socket, b"?", target).expect("an answer");

    let before = server.process().cpu_ticks().unwrap();
    let garbage = client(server.addr());
    for n in 0..4_000u32 {
        garbage.send(&[n.to_be_bytes(); 16].concat()).unwrap();
        if n % 100 == 99 {
            assert_eq!(last.ask(&socket, b"?", target).as_ref(), Some(&mine), "{n}");
        }
    }
    let again = Session::new(&keys(999)).ask(&other, b"?", target);
    assert!(again.is_some(), "the same user from another port");
    let used = server.process().cpu_ticks().unwrap() - before;
    assert!(used < 200, "{used} of 100 ticks a second");
    server.stop().unwrap();
}
