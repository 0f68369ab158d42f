//! Requests that one process has accepted are replays for the others.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::shadowsocks::{AES_128, BLAKE3_AES_128};
use adit_interop::socks_client::Destination;
use adit_interop::{AditProcess, TEST_TIMEOUT};
use rustix::process::Signal;

use super::{Lineage, is_alive, signal, wait_for_lines, wait_until};
use crate::associations::{Session, chain, client, whoami};
use crate::reload::flows::EchoStream;
use crate::replay;
use crate::setup::{ALLOW, start};

/// Returns the first flight of a client of adit to this server.
fn record(
    hop: impl Fn(SocketAddr) -> String,
    server: SocketAddr,
    origin: &OriginServer,
) -> Vec<u8> {
    let tap = RecordingRelay::start(server).unwrap();
    let client = start(&["run", "socks5://127.0.0.1:0", &hop(tap.addr())]);
    let target = Destination::Addr(origin.addr());
    let mut stream = EchoStream::open(client.addr(), &target).unwrap();
    stream.exchange(b"recorded").unwrap();
    drop(stream);
    client.stop().unwrap();
    tap.requests().into_iter().next().unwrap()
}

/// A request and a packet that the first process has accepted are replays for its successors, which serve new ones
/// immediately: no time is refused because a process has just started.
#[test]
fn what_was_recorded_is_refused_after_an_upgrade() {
    for method in [BLAKE3_AES_128, AES_128] {
        let origin = OriginServer::start().unwrap();
        let mut back = replay::serve(method, None);
        let mut lineage = Lineage::of(back.process());
        let hop = |at| method.url(at);
        let seen = record(hop, back.addr(), &origin);
        let keys = chain(method, &[method.key]);
        let mut session = Session::new(&keys);
        let packet = session.seal(b"?", whoami());
        let socket = client(back.addr());
        assert!(replay::is_answered_on(&socket, &packet));
        for _ in 0..2 {
            lineage.upgrade_by_signal(back.process());
            let fresh = record(hop, back.addr(), &origin);
            assert_ne!(fresh, seen);
            assert!(!replay::accepts(back.addr(), &seen, &origin), "{method:?}");
            assert!(!replay::accepts(back.addr(), &fresh, &origin), "{method:?}");
            assert!(!replay::is_answered_on(&socket, &packet), "{method:?}");
            let next = session.seal(b"?", whoami());
            assert!(replay::is_answered_on(&socket, &next), "the client goes on");
        }
        // The association continues in the first process; the next one serves it as soon as that has ended.
        signal(lineage.ids[0], Signal::INT);
        back.process().wait(TEST_TIMEOUT).unwrap();
        let next = session.seal(b"?", whoami());
        let restarted = || {
            assert!(!replay::is_answered_on(&socket, &packet), "{method:?}");
            replay::is_answered_on(&socket, &next)
        };
        wait_until(restarted, "the session does not start again");
        lineage.stop(back.process());
    }
}

/// The same of ShadowsocksR.
#[test]
fn a_recorded_request_of_shadowsocksr_is_refused_after_an_upgrade() {
    let origin = OriginServer::start().unwrap();
    let hop = |at| format!("ssr://aes-128-ctr:word@{at}?protocol=auth_aes128_sha1");
    let mut back = start(&["run", &format!("{}&{ALLOW}", hop(ANY))]);
    let mut lineage = Lineage::of(back.process());
    let mut seen = vec![record(hop, back.addr(), &origin)];
    for _ in 0..2 {
        lineage.upgrade_by_signal(back.process());
        seen.push(record(hop, back.addr(), &origin));
        for request in &seen {
            assert!(!replay::accepts(back.addr(), request, &origin));
        }
    }
    lineage.stop(back.process());
}

/// Any port of this machine.
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The settings of a server that lets a connection owe its request for as long as a test takes.
const PATIENT: &str = "allow_private=127.0.0.0/8,::1/128&handshake=5m";

/// Returns the first flight of a client that has reached no server yet.
fn unsent(hop: impl Fn(SocketAddr) -> String, origin: &OriginServer) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = start(&[
        "run",
        "socks5://127.0.0.1:0",
        &hop(listener.local_addr().unwrap()),
    ]);
    let (proxy, target) = (client.addr(), Destination::Addr(origin.addr()));
    // Nothing comes back: the server is this test.
    let opener = std::thread::spawn(move || EchoStream::open(proxy, &target).is_ok());
    let (mut taken, _) = listener.accept().unwrap();
    taken.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut flight = vec![0; 4096];
    let len = taken.read(&mut flight).unwrap();
    flight.truncate(len);
    drop(taken);
    opener.join().unwrap();
    client.stop().unwrap();
    flight
}

/// Returns true if a server accepts the bytes on a connection, which is another connection at the origin.
fn accepts_on(stream: &mut TcpStream, bytes: &[u8], origin: &OriginServer) -> bool {
    let before = origin.connection_count();
    stream.write_all(bytes).unwrap();
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(2) {
        if origin.connection_count() > before {
            return true;
        }
        sleep(Duration::from_millis(20));
    }
    false
}

/// The first process still has connections that owe their request. What one of them accepts is new to both processes.
#[track_caller]
fn requests_are_accepted_once(mut back: AditProcess, hop: impl Fn(SocketAddr) -> String) {
    let origin = OriginServer::start().unwrap();
    let server = back.addr();
    let mut lineage = Lineage::of(back.process());
    let connect = |_| TcpStream::connect(server).unwrap();
    let mut early: Vec<TcpStream> = (0..4).map(connect).collect();
    // They are accepted immediately.
    sleep(Duration::from_millis(500));
    for round in 0..2 {
        lineage.upgrade_by_signal(back.process());
        if round == 0 {
            let open = "4 open connections of this process";
            wait_for_lines(back.process(), open, 1);
        }
        // The new process has accepted it.
        let theirs = record(&hop, server, &origin);
        assert!(!accepts_on(&mut early[2 * round], &theirs, &origin));
        // The first process accepts it.
        let late = unsent(&hop, &origin);
        let stream = &mut early[2 * round + 1];
        assert!(
            accepts_on(stream, &late, &origin),
            "a late client is served"
        );
        assert!(!replay::accepts(server, &late, &origin), "round {round}");
        assert!(is_alive(lineage.ids[0]));
    }
    drop(early);
    lineage.stop(back.process());
}

#[test]
fn two_processes_accept_a_request_once() {
    for method in [BLAKE3_AES_128, AES_128] {
        let url = format!("{}?{PATIENT}", method.url(ANY));
        requests_are_accepted_once(start(&["run", &url]), |at| method.url(at));
    }
}

/// The same of ShadowsocksR, whose first message is protected by other means.
#[test]
fn two_processes_accept_a_request_of_shadowsocksr_once() {
    let hop = |at| format!("ssr://aes-128-ctr:word@{at}?protocol=auth_aes128_sha1");
    let back = start(&["run", &format!("{}&{PATIENT}", hop(ANY))]);
    requests_are_accepted_once(back, hop);
}

/// Datagrams of associations of the first process arrive at the second one, which checks them.
#[test]
fn two_processes_accept_a_packet_once() {
    for method in [BLAKE3_AES_128, AES_128] {
        let mut back = replay::serve(method, None);
        let mut lineage = Lineage::of(back.process());
        let keys = chain(method, &[method.key]);
        let [known, other] = [(); 2].map(|()| client(back.addr()));
        let mut old = Session::new(&keys);
        assert!(replay::is_answered_on(&known, &old.seal(b"?", whoami())));
        for round in 1..=2 {
            lineage.upgrade_by_signal(back.process());
            // The association continues in the first process.
            let packet = old.seal(b"?", whoami());
            assert!(replay::is_answered_on(&known, &packet));
            assert!(!replay::is_answered_on(&other, &packet), "{method:?}");
            assert!(!replay::is_answered_on(&known, &packet), "{method:?}");
            // Another session is one of the newest process, whichever address it comes from.
            let mut new = Session::new(&keys);
            for (from, again) in [(&other, &known), (&known, &other)] {
                let packet = new.seal(b"?", whoami());
                assert!(replay::is_answered_on(from, &packet), "round {round}");
                assert!(!replay::is_answered_on(again, &packet), "{method:?}");
            }
            assert!(is_alive(lineage.ids[0]));
        }
        // They have associations.
        for id in &lineage.ids[..2] {
            signal(*id, Signal::INT);
        }
        lineage.stop(back.process());
    }
}
