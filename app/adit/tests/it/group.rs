//! Groups of servers, the first of which is dead in some way.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{AES_128, BLAKE3_AES_128};
use adit_interop::socks_client::{self, Destination};
use adit_interop::unanswering_port::UnansweringPort;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr, traffic};

use crate::netns::{self, CLIENT, GATEWAY};
use crate::setup::{ALLOW, server, start};

/// Time that a dead member may add to the first request: the limit is 600 ms on an idle machine.
pub(crate) const FIRST_LIMIT: Duration = Duration::from_millis(1500);
/// The same for later requests, of which the fastest counts.
const LATER_LIMIT: Duration = Duration::from_millis(10);

/// A server that accepts connections and does not serve them.
struct Useless {
    addr: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Useless {
    fn start(serve: fn(TcpStream)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = connections.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || serve(stream));
            }
        });
        Self { addr, connections }
    }

    /// Reads, and sends nothing.
    fn silent() -> Self {
        Self::start(|mut stream| {
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        })
    }

    /// Closes without reading the bytes that have arrived, so that the system resets the connection.
    fn resetting() -> Self {
        Self::start(|stream| drop(stream.peek(&mut [0])))
    }

    /// Reads the first bytes, and closes without an answer.
    fn closing() -> Self {
        Self::start(|mut stream| {
            let _ = stream.read(&mut [0; 4096]);
        })
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Starts a client with this configuration.
fn client_of(config: &str) -> AditProcess {
    let folder = TempFolder::new("group").unwrap();
    let file = folder.write_file("group.toml", config).unwrap();
    // The file is read once, at the start.
    start(&["run", file.to_str().unwrap()])
}

fn config(via: &[&str]) -> String {
    format!("[route.r]\nlisten = \"socks5://127.0.0.1:0\"\nvia = [{via:?}]\n")
}

/// Starts a client with a group of these servers.
fn client(via: &[&str]) -> AditProcess {
    client_of(&config(via))
}

/// Returns the time of one request.
fn works(front: &AditProcess, origin: &OriginServer) -> Duration {
    let start = Instant::now();
    let stream =
        socks_client::connect_through(front.addr(), None, &Destination::Addr(origin.addr()))
            .unwrap();
    traffic::check_one_byte(stream).unwrap();
    start.elapsed()
}

/// Returns the times of the first request, and of the fastest of ten later ones.
fn first_and_later(front: &AditProcess, origin: &OriginServer) -> (Duration, Duration) {
    let first = works(front, origin);
    let later = (0..10).map(|_| works(front, origin)).min();
    (first, later.unwrap())
}

/// Checks what a dead first member costs, and that the log names it in one line.
fn check_death(first: &str, word: &str) {
    let (back, origin) = (server(BLAKE3_AES_128), OriginServer::start().unwrap());
    let good = BLAKE3_AES_128.url(back.addr());
    let plain = client(&[&good]);
    let (_, usual) = first_and_later(&plain, &origin);
    plain.stop().unwrap();
    let mut front = client(&[first, &good]);
    let (first, later) = first_and_later(&front, &origin);
    println!(
        "{word}: first +{:?}, later {later:?} ({usual:?} without a group)",
        first - usual.min(first)
    );
    assert!(
        first <= usual + FIRST_LIMIT,
        "{word}: the first takes {first:?}"
    );
    assert!(
        later <= usual + LATER_LIMIT,
        "{word}: later ones take {later:?}, {usual:?} alone"
    );
    let out = front.process().wait_lines(" is out: ", 1, TEST_TIMEOUT);
    let out = out.unwrap();
    assert!(out[0].contains("group r.1: ss://"), "{out:?}");
    assert!(out[0].contains(word), "{out:?}");
    let log = front.process().output();
    assert_eq!(log.matches(" WARN ").count(), 1, "{log}");
    front.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn a_member_that_refuses_costs_nothing() {
    check_death(&BLAKE3_AES_128.url(loopback_addr(free_port())), "refused");
}

#[test]
fn a_member_that_drops_syns_costs_its_usual_time_once() {
    let deaf = UnansweringPort::start().unwrap();
    check_death(&BLAKE3_AES_128.url(deaf.addr()), "no connection in");
}

#[test]
fn a_silent_member_costs_its_usual_time_once() {
    let silent = Useless::silent();
    check_death(&BLAKE3_AES_128.url(silent.addr), "has not answered in");
    // With the probes of the first seconds at most.
    assert!(silent.connections() < 8, "{}", silent.connections());
}

#[test]
fn a_resetting_member_costs_nothing() {
    check_death(
        &BLAKE3_AES_128.url(Useless::resetting().addr),
        "without an answer",
    );
}

#[test]
fn a_closing_member_costs_nothing() {
    check_death(&BLAKE3_AES_128.url(Useless::closing().addr), "has closed");
}

/// If the server answers before anything was sent, the request itself finds out.
#[test]
fn a_silent_proxy_costs_its_usual_time_once() {
    let (silent, origin) = (Useless::silent(), OriginServer::start().unwrap());
    let back = server(AES_128);
    let first = format!("socks5://{}", silent.addr);
    let front = client(&[&first, &AES_128.url(back.addr())]);
    let start = Instant::now();
    for _ in 0..3 {
        works(&front, &origin);
    }
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(silent.connections(), 1);
    front.stop().unwrap();
    back.stop().unwrap();
}

/// Two dead members, in all combinations of those that fail late.
#[test]
fn several_dead_members_are_passed_in_one_request() {
    let (silent, resetting) = (Useless::silent(), Useless::resetting());
    let (back, origin) = (server(AES_128), OriginServer::start().unwrap());
    let good = AES_128.url(back.addr());
    let (mute, reset) = (AES_128.url(silent.addr), AES_128.url(resetting.addr));
    for dead in [[&mute, &reset], [&reset, &mute]] {
        let front = client(&[dead[0], dead[1], &good]);
        let took = works(&front, &origin);
        assert!(took < Duration::from_secs(3), "{took:?}");
        front.stop().unwrap();
    }
    back.stop().unwrap();
}

/// An origin that counts requests, and closes the connection instead of answering.
struct DroppingOrigin {
    addr: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl DroppingOrigin {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let n = stream.read(&mut [0; 4096]).unwrap_or(0);
                counter.fetch_add(usize::from(n > 0), Ordering::Relaxed);
            }
        });
        Self { addr, requests }
    }
}

/// Sends a request, and expects the connection to end without an answer.
fn unanswered(front: &AditProcess, to: SocketAddr, request: &[u8]) {
    let mut stream =
        socks_client::connect_through(front.addr(), None, &Destination::Addr(to)).unwrap();
    stream.write_all(request).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "an answer");
}

#[test]
fn only_a_request_without_an_effect_is_repeated() {
    let (one, two) = (server(AES_128), server(AES_128));
    let front = client(&[&AES_128.url(one.addr()), &AES_128.url(two.addr())]);
    for (method, times) in [("POST", 1), ("DELETE", 1), ("GET", 2)] {
        let origin = DroppingOrigin::start();
        let request = format!("{method} / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        unanswered(&front, origin.addr, request.as_bytes());
        // A repetition would have started before the client's connection ended.
        thread::sleep(Duration::from_millis(300));
        assert_eq!(origin.requests.load(Ordering::Relaxed), times, "{method}");
    }
    front.stop().unwrap();
    one.stop().unwrap();
    two.stop().unwrap();
}

/// More bytes than a group keeps, through a good first member, in both directions.
#[test]
fn long_requests_pass_a_group() {
    let (one, two) = (server(BLAKE3_AES_128), server(BLAKE3_AES_128));
    let origin = OriginServer::start().unwrap();
    let front = client(&[
        &BLAKE3_AES_128.url(one.addr()),
        &BLAKE3_AES_128.url(two.addr()),
    ]);
    let open =
        || socks_client::connect_through(front.addr(), None, &Destination::Addr(origin.addr()));
    traffic::upload(open().unwrap(), 300_000).unwrap();
    traffic::download(open().unwrap(), 3_000_000).unwrap();
    traffic::transfer_both_ways(open().unwrap(), 3_000_000).unwrap();
    traffic::check_half_close(open().unwrap(), 100_000).unwrap();
    for process in [front, one, two] {
        process.stop().unwrap();
    }
}

/// The client has ended its direction before the next member is tried, so that nothing else wakes the relay.
#[test]
fn a_half_closed_request_passes_a_silent_member() {
    let silent = Useless::silent();
    // Answers after the end of the request.
    let origin = Useless::start(|mut stream| {
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        let _ = stream.write_all(b"all");
    });
    let back = server(BLAKE3_AES_128);
    let front = client(&[
        &BLAKE3_AES_128.url(silent.addr),
        &BLAKE3_AES_128.url(back.addr()),
    ]);
    let mut stream =
        socks_client::connect_through(front.addr(), None, &Destination::Addr(origin.addr)).unwrap();
    let start = Instant::now();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"all");
    let took = start.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    front.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn a_member_returns_by_a_probe_and_the_log_says_so() {
    let at = loopback_addr(free_port());
    let (back, origin) = (server(BLAKE3_AES_128), OriginServer::start().unwrap());
    let mut front = client(&[&BLAKE3_AES_128.url(at), &BLAKE3_AES_128.url(back.addr())]);
    works(&front, &origin);
    front
        .process()
        .wait_lines(" is out: ", 1, TEST_TIMEOUT)
        .unwrap();
    let again = start(&["run", &format!("{}?{ALLOW}", BLAKE3_AES_128.url(at))]);
    // No request is needed for that.
    let says = format!("group r.1: ss://{at} works again after ");
    front.process().wait_lines(&says, 1, TEST_TIMEOUT).unwrap();
    back.stop().unwrap();
    works(&front, &origin);
    front.stop().unwrap();
    again.stop().unwrap();
}

/// A server that dies while its client runs.
#[test]
fn a_member_that_dies_is_left_at_once() {
    let (one, two) = (server(BLAKE3_AES_128), server(BLAKE3_AES_128));
    let origin = OriginServer::start().unwrap();
    let mut front = client(&[
        &BLAKE3_AES_128.url(one.addr()),
        &BLAKE3_AES_128.url(two.addr()),
    ]);
    works(&front, &origin);
    one.stop().unwrap();
    let took = works(&front, &origin);
    assert!(took < FIRST_LIMIT, "{took:?}");
    front
        .process()
        .wait_lines(" is out: ", 1, TEST_TIMEOUT)
        .unwrap();
    front.stop().unwrap();
    two.stop().unwrap();
}

/// A target that never answers, and one that closes, are no fault of the members.
#[test]
fn a_dead_target_puts_no_member_out() {
    let (one, two) = (server(BLAKE3_AES_128), server(BLAKE3_AES_128));
    let (silent, dropping) = (Useless::silent(), DroppingOrigin::start());
    let mut front = client(&[
        &BLAKE3_AES_128.url(one.addr()),
        &BLAKE3_AES_128.url(two.addr()),
    ]);
    for _ in 0..3 {
        unanswered(&front, dropping.addr, b"x");
    }
    let mut stream =
        socks_client::connect_through(front.addr(), None, &Destination::Addr(silent.addr)).unwrap();
    stream.write_all(b"x").unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(2500)))
        .unwrap();
    assert!(stream.read(&mut [0]).is_err());
    drop(stream);
    thread::sleep(Duration::from_millis(500));
    let log = front.process().output();
    assert_eq!(log.matches(" WARN ").count(), 0, "{log}");
    for process in [front, one, two] {
        process.stop().unwrap();
    }
}

/// Passes connections on to a server, and counts them.
fn counting_server(to: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::Relaxed);
            let far = TcpStream::connect(to).unwrap();
            let (mut from, mut into) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut into);
                let _ = into.shutdown(std::net::Shutdown::Write);
            });
            let (mut from, mut into) = (far, near);
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut into);
                let _ = into.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    (addr, count)
}

#[test]
fn the_kind_of_a_group_decides() {
    let (back, origin) = (server(AES_128), OriginServer::start().unwrap());
    for (kind, expected) in [
        ("failover", [12, 0, 0]),
        ("spread", [4, 4, 4]),
        ("spread-by-destination", [12, 0, 0]),
        ("manual", [0, 12, 0]),
    ] {
        let servers: Vec<_> = (0..3).map(|_| counting_server(back.addr())).collect();
        let mut text = format!("[group.g]\nkind = \"{kind}\"\nmembers = [");
        for (number, (addr, _)) in (1..).zip(&servers) {
            let _ = write!(text, "\"{}#m{number}\", ", AES_128.url(*addr));
        }
        text.push_str("]\n");
        if kind == "manual" {
            text.push_str("selected = \"m2\"\n");
        }
        text.push_str("[route.r]\nlisten = \"socks5://127.0.0.1:0\"\nvia = \"g\"\n");
        let front = client_of(&text);
        for _ in 0..12 {
            works(&front, &origin);
        }
        let mut counts = [0; 3];
        for (count, (_, counter)) in counts.iter_mut().zip(&servers) {
            *count = counter.load(Ordering::Relaxed);
        }
        if kind == "spread-by-destination" {
            // Any of them, but one.
            counts.sort_unstable_by(|a, b| b.cmp(a));
        }
        assert_eq!(counts, expected, "{kind}");
        front.stop().unwrap();
    }
    back.stop().unwrap();
}

/// A member that takes datagrams and returns none.
#[test]
fn datagrams_move_to_the_next_member() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (back, origin) = (server(BLAKE3_AES_128), OriginServer::start().unwrap());
    let first = BLAKE3_AES_128.url(silent.local_addr().unwrap());
    let second = BLAKE3_AES_128.url(back.addr());
    let config = format!(
        "[route.r]\nlisten = \"udp://127.0.0.1:0/{}\"\nvia = [[\"{first}\", \"{second}\"]]\n",
        origin.addr()
    );
    let mut front = client_of(&config);
    let client = UdpSocket::bind(loopback_addr(0)).unwrap();
    client.connect(front.addr()).unwrap();
    client
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let start = Instant::now();
    let answered = (0..50).any(|_| {
        client.send(b"anybody there?").unwrap();
        client.recv(&mut [0; 64]).is_ok()
    });
    assert!(answered, "{}", front.process().output());
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    // Another client does not meet the silent member at all.
    let next = UdpSocket::bind(loopback_addr(0)).unwrap();
    next.connect(front.addr()).unwrap();
    next.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    next.send(b"here?").unwrap();
    next.recv(&mut [0; 64]).unwrap();
    front
        .process()
        .wait_lines("new associations avoid", 1, TEST_TIMEOUT)
        .unwrap();
    front.stop().unwrap();
    back.stop().unwrap();
}

/// The client's namespace has a server that works, and routes that drop or reject.
#[test]
fn an_unreachable_member_costs_nothing() {
    if !netns::world("group::an_unreachable_member_costs_nothing") {
        return;
    }
    // The gateway does not forward, so a dead address is one that no one answers for.
    for (route, word) in [
        ("unreachable 203.0.113.0/24", "No route to host"),
        ("prohibit 203.0.113.0/24", "ermission denied"),
    ] {
        let mut words = vec!["ip", "route", "replace"];
        words.extend(route.split(' '));
        assert!(netns::command(CLIENT, &words).status().unwrap().success());
        netns::enter(CLIENT, || {
            check_death(
                &BLAKE3_AES_128.url("203.0.113.7:8388".parse().unwrap()),
                word,
            );
        });
    }
    // A packet filter on the gateway would drop it; an address without a route there does the same.
    let deaf = ["ip", "route", "add", "blackhole", "198.51.100.0/24"];
    assert!(netns::command(GATEWAY, &deaf).status().unwrap().success());
    netns::enter(CLIENT, || {
        check_death(
            &BLAKE3_AES_128.url("198.51.100.7:8388".parse().unwrap()),
            "no connection in",
        );
    });
}
