//! Clients whose server does not accept them: few connections, spaced, until it does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{BLAKE3_AES_128, MethodKey};
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, free_port, loopback_addr, traffic};

use crate::setup::{ALLOW, start};

/// The time during which a browser retries.
const STORM: Duration = Duration::from_secs(4);
/// The number of requests that it has at the same time.
const CROWD: usize = 6;

const OTHER: MethodKey = MethodKey {
    key: "AAECAwQFBgcICQoLDA0ODw==",
    ..BLAKE3_AES_128
};

/// A relay to a server that counts its connections.
struct Counted {
    addr: SocketAddr,
    count: Arc<AtomicUsize>,
    times: Arc<Mutex<Vec<Instant>>>,
}

impl Counted {
    /// Accepts connections for `server`.
    fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(loopback_addr(0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let (count, times) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let (counts, log): (_, Arc<Mutex<Vec<Instant>>>) = (count.clone(), Arc::clone(&times));
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                counts.fetch_add(1, Ordering::Relaxed);
                log.lock().unwrap().push(Instant::now());
                let Ok(far) = std::net::TcpStream::connect(server) else {
                    continue;
                };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        Self { addr, count, times }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the highest number of connections within 4 s, less the imprecision of the log.
    fn most_in_window(&self) -> usize {
        let times = self.times.lock().unwrap();
        let window = STORM - Duration::from_millis(100);
        let within = |from: Instant| {
            let counts = |at: &&Instant| **at >= from && **at - from < window;
            times.iter().filter(counts).count()
        };
        times.iter().map(|from| within(*from)).max().unwrap_or(0)
    }
}

/// Sends one request, and returns true if there is an answer.
fn requests(proxy: SocketAddr, to: SocketAddr) -> bool {
    let Ok(mut stream) = socks_client::connect_through(proxy, None, &Destination::Addr(to)) else {
        return false;
    };
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(b"ECHO\nx").is_ok() && matches!(stream.read(&mut [0]), Ok(1..))
}

/// Retries like a browser, and returns the number of requests.
fn storm(proxy: SocketAddr, to: SocketAddr) -> usize {
    let until = Instant::now() + STORM;
    let crowd: Vec<_> = (0..CROWD)
        .map(|_| {
            thread::spawn(move || {
                let mut sent = 0;
                while Instant::now() < until {
                    assert!(!requests(proxy, to), "an answer");
                    sent += 1;
                    thread::sleep(Duration::from_millis(20));
                }
                sent
            })
        })
        .collect();
    crowd.into_iter().map(|one| one.join().unwrap()).sum()
}

fn server(method: MethodKey, at: SocketAddr) -> AditProcess {
    let url = format!("{}?{ALLOW}&restart=lenient&reject=reset", method.url(at));
    start(&["run", &url])
}

#[test]
fn a_wrong_key_does_not_cause_a_storm_of_connections() {
    let origin = OriginServer::start().unwrap();
    for command in ["run", "client"] {
        let back = server(OTHER, loopback_addr(free_port()));
        let counted = Counted::start(back.addr());
        let url = BLAKE3_AES_128.url(counted.addr);
        let front = match command {
            "run" => start(&["run", "socks5://127.0.0.1:0", &url]),
            _ => start(&["client", "-l", "mixed://127.0.0.1:0", &url]),
        };
        let sent = storm(front.addr(), origin.addr());
        assert!(sent > 50, "{command}: {sent} requests");
        println!(
            "{command}: {sent} requests, {} connections, {} within 4 s",
            counted.count(),
            counted.most_in_window()
        );
        let most = counted.most_in_window();
        assert!(
            (1..=4).contains(&most),
            "{command}: {most} connections in 4 s for {sent} requests"
        );
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

#[test]
fn a_server_that_accepts_ends_the_limit() {
    let origin = OriginServer::start().unwrap();
    let at = loopback_addr(free_port());
    let back = server(OTHER, at);
    let counted = Counted::start(at);
    let front = start(&[
        "run",
        "socks5://127.0.0.1:0",
        &BLAKE3_AES_128.url(counted.addr),
    ]);
    storm(front.addr(), origin.addr());
    back.stop().unwrap();
    let back = server(BLAKE3_AES_128, at);
    let begun = Instant::now();
    while !requests(front.addr(), origin.addr()) {
        assert!(begun.elapsed() < TEST_TIMEOUT, "no request succeeds");
        thread::sleep(Duration::from_millis(50));
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let before = counted.count();
    for _ in 0..20 {
        let to = Destination::Addr(origin.addr());
        let stream = socks_client::connect_through(front.addr(), None, &to).unwrap();
        traffic::check_one_byte(stream).unwrap();
    }
    assert!(counted.count() >= before + 20);
    front.stop().unwrap();
    back.stop().unwrap();
}

/// Nothing has failed, so nothing is refused, and a crowd waits for at most a second.
#[test]
fn a_crowd_at_the_start_is_served() {
    let origin = OriginServer::start().unwrap();
    let back = server(BLAKE3_AES_128, loopback_addr(free_port()));
    let url = BLAKE3_AES_128.url(back.addr());
    let front = start(&["run", "socks5://127.0.0.1:0", &url]);
    let (proxy, to) = (front.addr(), origin.addr());
    let begun = Instant::now();
    let crowd: Vec<_> = (0..40)
        .map(|_| thread::spawn(move || requests(proxy, to)))
        .collect();
    assert!(crowd.into_iter().all(|one| one.join().unwrap()));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    front.stop().unwrap();
    back.stop().unwrap();
}
