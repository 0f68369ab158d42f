//! Messages of a running client about its server: it is down, its key was changed, it is healthy
//! again; and no message if the target is the cause.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{BLAKE3_AES_128, MethodKey};
use adit_interop::socks_client::{self, Destination};
use adit_interop::unanswering_port::UnansweringPort;
use adit_interop::{AditProcess, TEST_TIMEOUT, free_port, loopback_addr, traffic};

use crate::setup::{ALLOW, start};

/// Longer than the time after which a server counts as silent.
const GIVEN_UP: Duration = Duration::from_millis(2300);

const OTHER: MethodKey = MethodKey {
    key: "AAECAwQFBgcICQoLDA0ODw==",
    ..BLAKE3_AES_128
};

/// Starts a server with this key, at an address where another may have been before.
fn server(method: MethodKey, at: SocketAddr, more: &str) -> AditProcess {
    let url = format!("{}?{ALLOW}&restart=lenient{more}", method.url(at));
    start(&["run", &url])
}

fn client(at: SocketAddr) -> AditProcess {
    start(&["run", "socks5://127.0.0.1:0", &BLAKE3_AES_128.url(at)])
}

/// Starts a forwarder of datagrams to `target` through the server at `at`, and a client of it.
fn forwarder(target: &UdpSocket, at: SocketAddr) -> (AditProcess, UdpSocket) {
    let forward = format!("udp://127.0.0.1:0/{}", target.local_addr().unwrap());
    let front = start(&["run", &forward, &BLAKE3_AES_128.url(at)]);
    let client = UdpSocket::bind(loopback_addr(0)).unwrap();
    client.connect(front.addr()).unwrap();
    (front, client)
}

fn works(front: &AditProcess, origin: &OriginServer) {
    let stream =
        socks_client::connect_through(front.addr(), None, &Destination::Addr(origin.addr()))
            .unwrap();
    traffic::check_one_byte(stream).unwrap();
}

/// Sends a request that is not answered; its client gives up after `patience`.
fn fails(front: &AditProcess, to: SocketAddr, patience: Duration) {
    if let Ok(mut stream) =
        socks_client::connect_through(front.addr(), None, &Destination::Addr(to))
    {
        stream.write_all(b"ECHO\nx").unwrap();
        stream.set_read_timeout(Some(patience)).unwrap();
        assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "an answer");
    }
}

/// Waits for a line with these words.
fn says(front: &mut AditProcess, words: &str) {
    front.process().wait_lines(words, 1, TEST_TIMEOUT).unwrap();
}

fn warnings(front: &mut AditProcess) -> usize {
    let log = front.process().output();
    log.lines().filter(|line| line.contains(" WARN ")).count()
}

#[test]
fn a_dead_server_is_named_once_and_greeted_again() {
    let (at, origin) = (loopback_addr(free_port()), OriginServer::start().unwrap());
    let back = server(BLAKE3_AES_128, at, "");
    let mut front = client(at);
    works(&front, &origin);
    back.stop().unwrap();
    fails(&front, origin.addr(), TEST_TIMEOUT);
    says(&mut front, &format!("no connection to ss://{at}: "));
    for _ in 0..5 {
        fails(&front, origin.addr(), TEST_TIMEOUT);
    }
    assert_eq!(warnings(&mut front), 1);
    let back = server(BLAKE3_AES_128, at, "");
    works(&front, &origin);
    says(&mut front, &format!("ss://{at} is healthy again"));
    works(&front, &origin);
    let log = front.process().output();
    assert_eq!(log.matches("healthy again").count(), 1, "{log}");
    front.stop().unwrap();
    back.stop().unwrap();
}

/// With a visible reaction, and with the default one, which is silence.
#[test]
fn a_changed_key_is_named_once() {
    for (reaction, patience) in [("&reject=reset", TEST_TIMEOUT), ("", GIVEN_UP)] {
        let (at, origin) = (loopback_addr(free_port()), OriginServer::start().unwrap());
        let back = server(BLAKE3_AES_128, at, "");
        let mut front = client(at);
        works(&front, &origin);
        back.stop().unwrap();
        let back = server(OTHER, at, reaction);
        fails(&front, origin.addr(), patience);
        says(&mut front, "its key has been changed");
        for _ in 0..3 {
            fails(&front, origin.addr(), Duration::from_millis(50));
        }
        assert_eq!(warnings(&mut front), 1);
        back.stop().unwrap();
        let back = server(BLAKE3_AES_128, at, "");
        works(&front, &origin);
        says(&mut front, "is healthy again");
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// A target that refuses, one that does not answer, a client that closes early, and one that
/// sends nothing.
#[test]
fn a_target_that_fails_is_no_fault_of_the_server() {
    let (at, origin) = (loopback_addr(free_port()), OriginServer::start().unwrap());
    let back = server(BLAKE3_AES_128, at, "");
    let mut front = client(at);
    works(&front, &origin);
    let deaf = UnansweringPort::start().unwrap();
    fails(&front, loopback_addr(free_port()), TEST_TIMEOUT);
    fails(&front, deaf.addr(), GIVEN_UP);
    fails(&front, deaf.addr(), Duration::from_millis(50));
    drop(
        socks_client::connect_through(front.addr(), None, &Destination::Addr(origin.addr()))
            .unwrap(),
    );
    sleep(Duration::from_millis(500));
    assert_eq!(warnings(&mut front), 0, "{}", front.process().output());
    front.stop().unwrap();
    back.stop().unwrap();
}

/// A client that only sends datagrams has no connection that fails.
#[test]
fn datagrams_without_an_answer_have_the_server_asked() {
    for other in [None, Some(OTHER)] {
        let at = loopback_addr(free_port());
        let target = UdpSocket::bind(loopback_addr(0)).unwrap();
        let back = other.map(|method| server(method, at, "&reject=reset"));
        let (mut front, client) = forwarder(&target, at);
        unanswered(&client, 13);
        says(&mut front, complaint(other.is_some()));
        assert_eq!(warnings(&mut front), 1, "{}", front.process().output());
        front.stop().unwrap();
        if let Some(back) = back {
            back.stop().unwrap();
        }
    }
}

/// Sends datagrams that are not answered, one each half second.
fn unanswered(client: &UdpSocket, datagrams: u32) {
    for _ in 0..datagrams {
        // The port of a stopped server may be refused.
        let _ = client.send(b"anybody there?");
        sleep(Duration::from_millis(500));
    }
}

/// Returns the message about a server that is down, or has another key.
fn complaint(is_there: bool) -> &'static str {
    if is_there {
        "answers no datagrams"
    } else {
        "no connection to ss://"
    }
}

/// An association that was in use: its server stops, or restarts with another key.
#[test]
fn a_server_that_changes_under_an_association_is_named() {
    for other in [None, Some(OTHER)] {
        let at = loopback_addr(free_port());
        let target = UdpSocket::bind(loopback_addr(0)).unwrap();
        let back = server(BLAKE3_AES_128, at, "");
        let (mut front, client) = forwarder(&target, at);
        client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        client.send(b"there?").unwrap();
        let (_, from) = target.recv_from(&mut [0; 16]).unwrap();
        target.send_to(b"here", from).unwrap();
        client.recv(&mut [0; 16]).unwrap();
        back.stop().unwrap();
        let back = other.map(|method| server(method, at, "&reject=reset"));
        unanswered(&client, 26);
        says(&mut front, complaint(other.is_some()));
        front.stop().unwrap();
        if let Some(back) = back {
            back.stop().unwrap();
        }
    }
}

/// Like DNS clients: each question is sent from another port.
#[test]
fn short_associations_without_an_answer_have_the_server_asked() {
    let (at, target) = (
        loopback_addr(free_port()),
        UdpSocket::bind(loopback_addr(0)).unwrap(),
    );
    let forward = format!("udp://127.0.0.1:0/{}", target.local_addr().unwrap());
    let mut front = start(&["run", &forward, &BLAKE3_AES_128.url(at)]);
    for _ in 0..13 {
        let client = UdpSocket::bind(loopback_addr(0)).unwrap();
        client.send_to(b"anybody there?", front.addr()).unwrap();
        sleep(Duration::from_millis(500));
    }
    says(&mut front, "no connection to ss://");
    front.stop().unwrap();
}

/// A silent target is not a failure of the server, which confirms that it is healthy.
#[test]
fn datagrams_to_a_silent_target_blame_nobody() {
    let target = UdpSocket::bind(loopback_addr(0)).unwrap();
    let back = server(BLAKE3_AES_128, loopback_addr(free_port()), "");
    let (mut front, client) = forwarder(&target, back.addr());
    for _ in 0..13 {
        client.send(b"anybody there?").unwrap();
        sleep(Duration::from_millis(500));
    }
    says(&mut front, "answers, the key");
    assert_eq!(warnings(&mut front), 0, "{}", front.process().output());
    front.stop().unwrap();
    back.stop().unwrap();
}
