//! Ends of `adit kcp`, and of the carrier, whose settings differ: the client finds the difference within
//! three seconds and reports it. The servers are adit's and kcptun's, which does not report it.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::{AditProcess, TEST_TIMEOUT, free_port, kcptun, loopback_addr, traffic};

use crate::carrier_kcp::ss;
use crate::kcp::{client, server};
use crate::setup::start;

/// Waits for a word in the log of a client, within three seconds of its start.
fn hears(server: SocketAddr, options: &[&str], word: &str) {
    let mut front = client(server, options);
    let start = Instant::now();
    let found = front.process().wait_lines(word, 1, Duration::from_secs(6));
    let took = start.elapsed();
    found.unwrap_or_else(|why| panic!("{options:?}: {why}"));
    front.stop().unwrap();
    assert!(took < Duration::from_secs(3), "{options:?}: {took:?}");
}

/// A server of either program with these options.
enum Server {
    Ours(AditProcess),
    Debian(kcptun::KcptunProcess),
}

impl Server {
    fn both(origin: &OriginServer, options: &[&str]) -> [Self; 2] {
        let debian = kcptun::start_server(origin.addr(), options).unwrap();
        [
            Self::Ours(server(origin.addr(), options)),
            Self::Debian(debian),
        ]
    }

    fn addr(&self) -> SocketAddr {
        match self {
            Self::Ours(adit) => adit.addr(),
            Self::Debian(debian) => debian.addr(),
        }
    }

    fn stop(self) {
        if let Self::Ours(adit) = self {
            adit.stop().unwrap();
        }
    }
}

#[test]
fn another_key_or_cipher() {
    let origin = OriginServer::start().unwrap();
    for back in Server::both(&origin, &["--crypt", "salsa20"]) {
        hears(
            back.addr(),
            &["--crypt", "aes"],
            "answers to `crypt` salsa20 only, this end has aes",
        );
        let wrong = ["--crypt", "salsa20", "--key", "wrong"];
        hears(back.addr(), &wrong, "`key` differs there");
        back.stop();
    }
    hears(loopback_addr(free_port()), &[], "nothing listens at");
}

#[test]
fn another_smux_or_compression() {
    let origin = OriginServer::start().unwrap();
    for back in Server::both(&origin, &["--smuxver", "1", "--nocomp"]) {
        let at = back.addr();
        hears(at, &["--smuxver", "2", "--nocomp"], "use `smuxver=1`");
        hears(at, &["--smuxver", "1", "--nocomp=false"], "use `nocomp`");
        hears(
            at,
            &["--smuxver", "2", "--nocomp=false"],
            "it does not compress",
        );
        back.stop();
    }
    for back in Server::both(&origin, &["--smuxver", "2", "--nocomp=false"]) {
        let at = back.addr();
        hears(at, &["--smuxver", "1", "--nocomp=false"], "use `smuxver=2`");
        hears(at, &["--smuxver", "2", "--nocomp"], "remove `nocomp`");
        back.stop();
    }
}

#[test]
fn another_correction() {
    let origin = OriginServer::start().unwrap();
    let told = |theirs: &[&str], ours: &[&str], words: &str| {
        for back in Server::both(&origin, theirs) {
            hears(back.addr(), ours, words);
            back.stop();
        }
    };
    let none = ["--ds", "0", "--ps", "0"];
    told(
        &["--ds", "3", "--ps", "1"],
        &[],
        "sends with correction 3+1, this end with correction 10+3",
    );
    told(
        &none,
        &["--ds", "10", "--ps", "3"],
        "sends without correction, this end with correction 10+3",
    );
    told(
        &none,
        &[],
        "sends without correction: this end does the same now",
    );
    told(
        &["--ds", "5", "--ps", "2"],
        &none,
        "sends with correction 5+2, this end without correction",
    );
}

/// A server whose settings differ ends each session immediately: a connection tries a few, then ends.
#[test]
fn a_connection_through_ends_that_do_not_fit_is_ended() {
    let origin = OriginServer::start().unwrap();
    for back in Server::both(&origin, &["--smuxver", "1", "--nocomp"]) {
        let mut front = client(back.addr(), &["--smuxver", "2", "--nocomp"]);
        let process = front.process();
        process
            .wait_lines("use `smuxver=1`", 1, TEST_TIMEOUT)
            .unwrap();
        let mut stream = traffic::connect_directly(front.addr()).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let ended = stream.read(&mut [0]);
        let waited = matches!(&ended, Err(why) if why.kind() == ErrorKind::WouldBlock);
        assert!(!waited && !matches!(ended, Ok(1..)), "{ended:?}");
        let told = front.process().wait_lines("smuxver", 20, Duration::ZERO);
        assert!(told.is_err(), "a line for each of many sessions");
        front.stop().unwrap();
        back.stop();
    }
}

/// Settings that are not configured are learnt from the server, even both at once; a connection that
/// was opened before survives that.
#[test]
fn what_was_not_said_is_learnt_before_the_first_connection() {
    let origin = OriginServer::start().unwrap();
    for back in Server::both(&origin, &["--smuxver", "1", "--nocomp"]) {
        let front = client(back.addr(), &[]);
        traffic::transfer_both_ways(traffic::connect_directly(front.addr()).unwrap(), 300_000)
            .unwrap();
        front.stop().unwrap();
        back.stop();
    }
}

/// Starts a server that acknowledges immediately, but sends its first frame, of smux 2, when the session
/// has long been established.
fn slow_to_differ() -> SocketAddr {
    const PUSH: u8 = 81;
    const ACK: u8 = 82;
    let socket = UdpSocket::bind(loopback_addr(0)).unwrap();
    socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let addr = socket.local_addr().unwrap();
    let segment = |conv: [u8; 4], cmd: u8, ts: [u8; 4], sn: u32, frame: &[u8]| {
        let len = u32::try_from(frame.len()).unwrap();
        let (sn, una) = (sn.to_le_bytes(), 1_u32.to_le_bytes());
        let head = [&conv[..], &[cmd, 0, 0xff, 0xff], &ts, &sn, &una];
        [&head.concat(), &len.to_le_bytes()[..], frame].concat()
    };
    thread::spawn(move || {
        let mut buf = [0; 2048];
        let (_, from) = socket.recv_from(&mut buf).unwrap();
        let field = |at: usize| <[u8; 4]>::try_from(&buf[at..at + 4]).unwrap();
        let (conv, ts) = (field(0), field(8));
        let ack = segment(conv, ACK, ts, 0, &[]);
        socket.send_to(&ack, from).unwrap();
        sleep(Duration::from_millis(300));
        let no_operation = [2, 3, 0, 0, 0, 0, 0, 0];
        let push = segment(conv, PUSH, [0; 4], 0, &no_operation);
        socket.send_to(&push, from).unwrap();
    });
    addr
}

#[test]
fn an_end_that_does_not_fit_is_named_behind_its_acknowledgement() {
    let keys = "crypt=null&data=0&parity=0&smux=1&comp=false";
    let hop = ss(slow_to_differ(), keys);
    let mut front = start(&["run", "-v", "tcp://127.0.0.1:0/127.0.0.1:1", &hop]);
    assert!(traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).is_err());
    let process = front.process();
    let found = process.wait_lines("use `smux=2`", 1, Duration::from_secs(2));
    found.unwrap();
    front.stop().unwrap();
}
