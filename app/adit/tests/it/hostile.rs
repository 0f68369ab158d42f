//! Clients that send garbage, little, slowly, nothing, or too many requests at once.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::hostile::{self, Ending, Manner, Reaction, probe};
use adit_interop::origin::Origin;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks::{self, CONNECT, Dest};
use adit_interop::traffic::{self, dial};
use adit_interop::{Adit, PATIENCE, Pattern};

use crate::setup::{ALLOW, Proxy, Way, bin, resident, server};

fn served(proxy: SocketAddr, origin: &Origin) {
    let to = Dest::Addr(origin.addr());
    traffic::one_byte(socks::connect(proxy, None, &to).unwrap()).unwrap();
}

#[test]
fn garbage_ends_its_own_connection_only() {
    let (proxy, origin) = (Proxy::mixed(Way::Alone), Origin::start().unwrap());
    for seed in 0..60 {
        let mut garbage = Pattern::new(seed).take(1 + usize::try_from(seed).unwrap() * 37);
        // Some of it starts like the protocols of a mixed port.
        match seed % 5 {
            0 => garbage[0] = 5,
            1 => garbage[0] = 4,
            2 => garbage.splice(0..0, *b"GET http://").for_each(drop),
            3 => garbage.splice(0..0, *b"CONNECT ").for_each(drop),
            _ => {}
        }
        for ending in [Ending::HalfClose, Ending::Hold] {
            let patience = Duration::from_millis(if ending == Ending::Hold { 20 } else { 20_000 });
            let seen = probe(proxy.addr(), &garbage, Manner::AtOnce, ending, patience).unwrap();
            if ending == Ending::HalfClose {
                assert_ne!(seen, Reaction::Silence, "{seed}: the connection stays open");
            }
        }
    }
    served(proxy.addr(), &origin);
    proxy.stop();
}

#[test]
fn a_request_cut_anywhere_is_given_up() {
    let (proxy, origin) = (Proxy::mixed(Way::Alone), Origin::start().unwrap());
    let to = Dest::Addr(origin.addr());
    let socks5 = [&[5, 1, 0][..], &socks::request(CONNECT, &to)].concat();
    let http = format!("CONNECT {} HTTP/1.1\r\nHost: x\r\n\r\n", origin.addr()).into_bytes();
    let socks4 = b"\x04\x01\x00\x50\x00\x00\x00\x01user\0example.invalid\0".to_vec();
    for request in [socks5, http, socks4] {
        for cut in 0..request.len() {
            let mut stream = dial(proxy.addr()).unwrap();
            stream.write_all(&request[..cut]).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let ended = hostile::time_to_end(&mut stream, PATIENCE).unwrap();
            assert!(ended.is_some(), "{cut} bytes of {request:02x?}");
        }
    }
    assert_eq!(origin.connections(), 0, "half a request reached the target");
    served(proxy.addr(), &origin);
    proxy.stop();
}

/// One absolute deadline for the handshake: occasional bytes do not extend it.
#[test]
fn a_slow_handshake_meets_its_deadline() {
    let (proxy, origin) = (Proxy::mixed(Way::Alone), Origin::start().unwrap());
    let mut silent = dial(proxy.addr()).unwrap();
    let mut slow = dial(proxy.addr()).unwrap();
    let start = Instant::now();
    // A greeting that announces 255 methods, one every 2 s.
    slow.write_all(&[5, 255]).unwrap();
    let mut slow_end = None;
    while slow_end.is_none() && start.elapsed() < Duration::from_secs(30) {
        let _ = slow.write_all(&[0x80]);
        slow_end = hostile::time_to_end(&mut slow, Duration::from_secs(2)).unwrap();
    }
    let slow_end = start.elapsed();
    assert!(
        slow_end < Duration::from_secs(20),
        "the slow one lived {slow_end:?}"
    );
    assert!(
        slow_end > Duration::from_secs(4),
        "the slow one had only {slow_end:?}"
    );
    let left = Duration::from_secs(20).saturating_sub(start.elapsed());
    assert!(
        hostile::time_to_end(&mut silent, left).unwrap().is_some(),
        "the silent one lives"
    );
    served(proxy.addr(), &origin);
    proxy.stop();
}

#[test]
fn an_idle_crowd_does_not_keep_others_out() {
    for way in [Way::Alone, Way::Tunnel] {
        let (proxy, origin) = (Proxy::mixed(way), Origin::start().unwrap());
        let crowd = hostile::idle_crowd(proxy.addr(), 500);
        assert_eq!(crowd.len(), 500);
        let start = Instant::now();
        for _ in 0..5 {
            served(proxy.addr(), &origin);
        }
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?}",
            start.elapsed()
        );
        drop(crowd);
        proxy.stop();
    }
}

/// Starts `adit` with so few descriptors that many clients use them up.
fn with_few_descriptors(url: &str) -> Adit {
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
        .arg(bin())
        .args(["run", url]);
    Adit::launch(command, 1).unwrap()
}

/// REL-1: running out of descriptors neither ends the listener nor makes it spin.
#[test]
fn a_listener_outlives_a_lack_of_descriptors() {
    let origin = Origin::start().unwrap();
    let mut proxy = with_few_descriptors(&format!("mixed://127.0.0.1:0?{ALLOW}"));
    let crowd = hostile::idle_crowd(proxy.addr(), 200);
    sleep(Duration::from_millis(500));
    let before = proxy.process().cpu_ticks().unwrap();
    sleep(Duration::from_secs(2));
    let used = proxy.process().cpu_ticks().unwrap() - before;
    assert!(
        used < 40,
        "{used} of 200 ticks of CPU while out of descriptors"
    );
    drop(crowd);
    let start = Instant::now();
    let to = Dest::Addr(origin.addr());
    while socks::connect(proxy.addr(), None, &to)
        .and_then(traffic::one_byte)
        .is_err()
    {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "nobody is served any more"
        );
        sleep(Duration::from_millis(50));
    }
    served(proxy.addr(), &origin);
    proxy.stop().unwrap();
}

#[test]
fn a_keyed_listener_outlives_a_lack_of_descriptors() {
    let origin = Origin::start().unwrap();
    let url = format!(
        "{}?{ALLOW}",
        BLAKE3_AES_128.url("127.0.0.1:0".parse().unwrap())
    );
    let back = with_few_descriptors(&url);
    let crowd = hostile::idle_crowd(back.addr(), 200);
    sleep(Duration::from_secs(1));
    drop(crowd);
    let front = crate::setup::start(&[
        "run",
        "mixed://127.0.0.1:0",
        &BLAKE3_AES_128.url(back.addr()),
    ]);
    let start = Instant::now();
    let to = Dest::Addr(origin.addr());
    while socks::connect(front.addr(), None, &to)
        .and_then(traffic::one_byte)
        .is_err()
    {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "nobody is served any more"
        );
        sleep(Duration::from_millis(50));
    }
    front.stop().unwrap();
    back.stop().unwrap();
}

/// Back-pressure: a client that does not read makes the peer wait, and memory does not grow (REL-7).
#[test]
fn a_client_that_does_not_read_costs_no_memory() {
    let (mut back, origin) = (server(BLAKE3_AES_128), Origin::start().unwrap());
    let mut front = crate::setup::start(&[
        "run",
        "mixed://127.0.0.1:0",
        &BLAKE3_AES_128.url(back.addr()),
    ]);
    let to = Dest::Addr(origin.addr());
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = socks::connect(front.addr(), None, &to).unwrap();
        stream.write_all(b"GET 300000000 1\n").unwrap();
        streams.push(stream);
    }
    sleep(Duration::from_secs(2));
    for adit in [&mut front, &mut back] {
        let kib = resident(adit);
        assert!(kib < 100 * 1024, "{kib} KiB");
    }
    served(front.addr(), &origin);
    drop(streams);
    front.stop().unwrap();
    back.stop().unwrap();
}
