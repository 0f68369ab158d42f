//! Many silent connections at a keyed listener: its reaction does not reveal it, and clients with the
//! key are still served.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use adit_interop::hostile_clients::{
    Reaction, open_idle_connections, open_idle_connections_from, read_reactions, time_to_end,
};
use adit_interop::origin::OriginServer;
use adit_interop::probe::raise_descriptor_limit;
use adit_interop::shadowsocks::{AES_128, BLAKE3_AES_128};
use adit_interop::ssr::SsrSetup;
use adit_interop::{AditProcess, BytePattern, TEST_TIMEOUT, loopback_addr, traffic};

use crate::setup::{ALLOW, resident, start};

/// All addresses, so that sources can be told apart.
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A keyed listener under attack, and its address.
struct Port {
    adit: AditProcess,
    /// Returns its URL for a client, from its address.
    hop: fn(SocketAddr) -> String,
}

impl Port {
    const KINDS: [fn(SocketAddr) -> String; 3] = [
        |addr| BLAKE3_AES_128.url(addr),
        |addr| AES_128.url(addr),
        |addr| SsrSetup::new("aes-256-ctr", "auth_aes128_sha1", "plain").url(addr),
    ];

    fn start(hop: fn(SocketAddr) -> String, more: &str) -> Self {
        let url = hop(ANY);
        let mark = if url.contains('?') { '&' } else { '?' };
        let adit = start(&["run", &format!("{url}{mark}{ALLOW}&{more}")]);
        Self { adit, hop }
    }

    fn addr(&self) -> SocketAddr {
        loopback_addr(self.adit.addr().port())
    }

    /// Starts a client of adit, each connection of which is a request for the origin.
    fn client(&self, origin: &OriginServer) -> AditProcess {
        let entry = format!("tcp://127.0.0.1:0/{}", origin.addr());
        start(&["run", &entry, &(self.hop)(self.addr())])
    }
}

fn served(client: &AditProcess) {
    traffic::check_one_byte(traffic::connect_directly(client.addr()).unwrap()).unwrap();
}

/// Returns how many connections are still open, once there are `most` of them or the time is over. The
/// others were the oldest, and saw `end`.
fn still_open(crowd: &mut [TcpStream], most: usize, end: Reaction) -> usize {
    let until = Instant::now() + TEST_TIMEOUT;
    let mut gone = 0;
    loop {
        // Each end is seen once.
        let seen = read_reactions(&mut crowd[gone..]).unwrap();
        gone += seen.iter().take_while(|seen| **seen == end).count();
        let open = &seen[seen.len() + gone - crowd.len()..];
        assert!(
            open.iter().all(|seen| *seen == Reaction::Silence),
            "{gone} ended by {end:?}, then {open:?}"
        );
        if open.len() <= most || Instant::now() > until {
            return open.len();
        }
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_crowd_of_one_address_sees_no_limit() {
    for (kind, reject) in Port::KINDS.into_iter().zip(["drain", "reset", "close"]) {
        let more = format!("reject={reject}");
        let (port, origin) = (Port::start(kind, &more), OriginServer::start().unwrap());
        let mut crowd = open_idle_connections(port.addr(), 200);
        let client = port.client(&origin);
        served(&client);
        assert_eq!(still_open(&mut crowd, 200, Reaction::End), 200, "{reject}");
        // Open connections would delay the end of the listener.
        drop(crowd);
        client.stop().unwrap();
        port.adit.stop().unwrap();
    }
}

/// The oldest connections end, in the way of the policy, and none of the newest.
#[test]
fn the_oldest_make_room_as_the_policy_says() {
    let ends = [
        ("drain", Reaction::End),
        ("reset", Reaction::Reset),
        ("close", Reaction::End),
    ];
    for (kind, (reject, end)) in Port::KINDS.into_iter().zip(ends) {
        let more = format!("reject={reject}&max_connections=40");
        let (port, origin) = (Port::start(kind, &more), OriginServer::start().unwrap());
        let mut crowd = open_idle_connections(port.addr(), 60);
        let client = port.client(&origin);
        served(&client);
        let open = still_open(&mut crowd, 40, end);
        assert!((20..=40).contains(&open), "{reject}: {open} of 60");
        // Open connections would delay the end of the listener.
        drop(crowd);
        client.stop().unwrap();
        port.adit.stop().unwrap();
    }
}

/// Servers without a reject policy answer an end within a millisecond or two.
#[test]
fn an_end_is_answered_without_a_wait_of_our_own() {
    let port = Port::start(Port::KINDS[0], "reject=drain");
    for pause in [Duration::ZERO, Duration::from_millis(30)] {
        let soonest = (0..30).map(|n| {
            let mut stream = traffic::connect_directly(port.addr()).unwrap();
            stream
                .write_all(&BytePattern::new(n).next_bytes(100))
                .unwrap();
            sleep(pause);
            stream.shutdown(Shutdown::Write).unwrap();
            time_to_end(&mut stream, TEST_TIMEOUT).unwrap().unwrap()
        });
        let soonest = soonest.min().unwrap();
        let bound = Duration::from_millis(if pause.is_zero() { 6 } else { 1 });
        assert!(soonest < bound, "{soonest:?} after {pause:?}");
    }
    port.adit.stop().unwrap();
}

/// More connections than slots, from more sources than can have a share.
#[test]
fn a_flood_keeps_nobody_out_and_leaves_no_memory_behind() {
    raise_descriptor_limit().unwrap();
    let mut port = Port::start(Port::KINDS[0], "reject=drain");
    let (addr, origin) = (port.addr(), OriginServer::start().unwrap());
    let client = port.client(&origin);
    served(&client);
    let before = resident(&mut port.adit);
    let sources: Vec<_> = (1..=70).map(|n| Ipv4Addr::new(127, 7, 0, n)).collect();
    let over = AtomicBool::new(false);
    let mut requests = 0;
    let peak = scope(|scope| {
        let flood = scope.spawn(|| {
            let mut crowd = open_idle_connections_from(&sources, addr, 5000).unwrap();
            over.store(true, Ordering::Relaxed);
            let seen = read_reactions(&mut crowd).unwrap();
            let open = seen.iter().filter(|seen| **seen == Reaction::Silence);
            let open = open.count();
            assert!(open >= 2000, "{open} of {} are left", crowd.len());
            (crowd, open)
        });
        while !over.load(Ordering::Relaxed) || requests < 20 {
            served(&client);
            requests += 1;
        }
        let (mut crowd, open) = flood.join().unwrap();
        served(&client);
        let peak = resident(&mut port.adit);
        // The newest are open. The last of them end when the memory of the others was returned already.
        let last = crowd.split_off(crowd.len() - open / 9);
        drop(crowd);
        let until = Instant::now() + TEST_TIMEOUT;
        while resident(&mut port.adit) > peak / 2 {
            assert!(Instant::now() < until, "nothing of {peak} KiB is returned");
            sleep(Duration::from_millis(100));
        }
        drop(last);
        peak
    });
    let until = Instant::now() + Duration::from_secs(6);
    let mut after = resident(&mut port.adit);
    while after > before + 4096 && Instant::now() < until {
        sleep(Duration::from_millis(100));
        after = resident(&mut port.adit);
    }
    assert!(
        after <= before + 4096,
        "{before} KiB before, {peak} at its height, {after} after"
    );
    served(&client);
    client.stop().unwrap();
    port.adit.stop().unwrap();
}
