//! Groups of servers, the first of which drops SYNs, stays silent or resets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{AES_128, BLAKE3_AES_128};
use adit_interop::socks_client::{self, Destination};
use adit_interop::unanswering_port::UnansweringPort;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, traffic};

use crate::setup::{server, start};

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

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Starts a client with a group of these two servers.
fn client(first: &str, second: &str) -> AditProcess {
    let folder = TempFolder::new("group").unwrap();
    let config = format!(
        "[route.r]\nlisten = [\"socks5://127.0.0.1:0\"]\nvia = [[\"{first}\", \"{second}\"]]\n"
    );
    let file = folder.write_file("group.toml", config).unwrap();
    // The file is read once, at the start.
    start(&["run", file.to_str().unwrap()])
}

fn works(front: &AditProcess, origin: &OriginServer) {
    let stream =
        socks_client::connect_through(front.addr(), None, &Destination::Addr(origin.addr()))
            .unwrap();
    traffic::check_one_byte(stream).unwrap();
}

/// Sends a request, and gives up after a while.
fn fails(front: &AditProcess, origin: &OriginServer, patience: Duration) {
    let mut stream =
        socks_client::connect_through(front.addr(), None, &Destination::Addr(origin.addr()))
            .unwrap();
    stream.write_all(b"ECHO\nx").unwrap();
    stream.set_read_timeout(Some(patience)).unwrap();
    assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "an answer");
}

#[test]
fn a_member_that_drops_syns_costs_a_head_start_once() {
    let (deaf, origin) = (
        UnansweringPort::start().unwrap(),
        OriginServer::start().unwrap(),
    );
    let back = server(BLAKE3_AES_128);
    let first = BLAKE3_AES_128.url(deaf.addr());
    let front = client(&first, &BLAKE3_AES_128.url(back.addr()));
    works(&front, &origin);
    let start = Instant::now();
    for _ in 0..8 {
        works(&front, &origin);
    }
    // Eight head starts would take four seconds, eight timeouts more than a minute.
    let took = start.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    front.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn a_silent_member_is_left_by_the_next_request() {
    let (silent, origin) = (Useless::silent(), OriginServer::start().unwrap());
    let back = server(AES_128);
    let mut front = client(&AES_128.url(silent.addr), &AES_128.url(back.addr()));
    // Longer than the time after which a server counts as silent.
    fails(&front, &origin, Duration::from_millis(2300));
    // The client has disconnected before the end of its session is noticed.
    let noticed = front
        .process()
        .wait_lines("has not answered in ", 1, TEST_TIMEOUT);
    noticed.unwrap();
    for _ in 0..5 {
        works(&front, &origin);
    }
    assert_eq!(silent.connections(), 1);
    front.stop().unwrap();
    back.stop().unwrap();
}

/// If the server answers before anything was sent, the request itself finds out.
#[test]
fn a_silent_proxy_costs_a_head_start_once() {
    let (silent, origin) = (Useless::silent(), OriginServer::start().unwrap());
    let back = server(AES_128);
    let first = format!("socks5://{}", silent.addr);
    let front = client(&first, &AES_128.url(back.addr()));
    for _ in 0..5 {
        works(&front, &origin);
    }
    assert_eq!(silent.connections(), 1);
    front.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn a_resetting_member_is_left_by_the_next_request() {
    let (resetting, origin) = (Useless::resetting(), OriginServer::start().unwrap());
    let back = server(AES_128);
    let front = client(&AES_128.url(resetting.addr), &AES_128.url(back.addr()));
    fails(&front, &origin, TEST_TIMEOUT);
    for _ in 0..5 {
        works(&front, &origin);
    }
    assert_eq!(resetting.connections(), 1);
    front.stop().unwrap();
    back.stop().unwrap();
}
