//! Clients that send garbage, little, slowly, nothing, or too many requests at once.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::hostile_clients::{self, AfterWrite, Reaction, WriteMode, probe_server};
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks_client::{self, CONNECT, Destination};
use adit_interop::traffic::{self, connect_directly};
use adit_interop::{AditProcess, BytePattern, TEST_TIMEOUT};

use crate::setup::{ALLOW, Proxy, Way, bin, resident, server};

fn served(proxy: SocketAddr, origin: &OriginServer) {
    let to = Destination::Addr(origin.addr());
    traffic::check_one_byte(socks_client::connect_through(proxy, None, &to).unwrap()).unwrap();
}

#[test]
fn garbage_ends_its_own_connection_only() {
    let (proxy, origin) = (Proxy::mixed(Way::Alone), OriginServer::start().unwrap());
    for seed in 0..60 {
        let mut garbage =
            BytePattern::new(seed).next_bytes(1 + usize::try_from(seed).unwrap() * 37);
        // Some of it starts like the protocols of a mixed port.
        match seed % 5 {
            0 => garbage[0] = 5,
            1 => garbage[0] = 4,
            2 => garbage.splice(0..0, *b"GET http://").for_each(drop),
            3 => garbage.splice(0..0, *b"CONNECT ").for_each(drop),
            _ => {}
        }
        for ending in [AfterWrite::HalfClose, AfterWrite::Hold] {
            let patience = Duration::from_millis(if ending == AfterWrite::Hold {
                20
            } else {
                20_000
            });
            let seen = probe_server(
                proxy.addr(),
                &garbage,
                WriteMode::OneWrite,
                ending,
                patience,
            )
            .unwrap();
            if ending == AfterWrite::HalfClose {
                assert_ne!(seen, Reaction::Silence, "{seed}: the connection stays open");
            }
        }
    }
    served(proxy.addr(), &origin);
    proxy.stop();
}

#[test]
fn a_request_cut_anywhere_is_given_up() {
    let (proxy, origin) = (Proxy::mixed(Way::Alone), OriginServer::start().unwrap());
    let to = Destination::Addr(origin.addr());
    let socks5 = [&[5, 1, 0][..], &socks_client::encode_request(CONNECT, &to)].concat();
    let http = format!("CONNECT {} HTTP/1.1\r\nHost: x\r\n\r\n", origin.addr()).into_bytes();
    let socks4 = b"\x04\x01\x00\x50\x00\x00\x00\x01user\0example.invalid\0".to_vec();
    for request in [socks5, http, socks4] {
        for cut in 0..request.len() {
            let mut stream = connect_directly(proxy.addr()).unwrap();
            stream.write_all(&request[..cut]).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let ended = hostile_clients::time_to_end(&mut stream, TEST_TIMEOUT).unwrap();
            assert!(ended.is_some(), "{cut} bytes of {request:02x?}");
        }
    }
    assert_eq!(
        origin.connection_count(),
        0,
        "half a request reached the target"
    );
    served(proxy.addr(), &origin);
    proxy.stop();
}

/// One absolute deadline for the handshake: occasional bytes do not extend it.
#[test]
fn a_slow_handshake_meets_its_deadline() {
    let (proxy, origin) = (Proxy::mixed(Way::Alone), OriginServer::start().unwrap());
    let mut silent = connect_directly(proxy.addr()).unwrap();
    let mut slow = connect_directly(proxy.addr()).unwrap();
    let start = Instant::now();
    // A greeting that announces 255 methods, one every 2 s.
    slow.write_all(&[5, 255]).unwrap();
    let mut slow_end = None;
    while slow_end.is_none() && start.elapsed() < Duration::from_secs(30) {
        let _ = slow.write_all(&[0x80]);
        slow_end = hostile_clients::time_to_end(&mut slow, Duration::from_secs(2)).unwrap();
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
        hostile_clients::time_to_end(&mut silent, left)
            .unwrap()
            .is_some(),
        "the silent one lives"
    );
    served(proxy.addr(), &origin);
    proxy.stop();
}

#[test]
fn an_idle_crowd_does_not_keep_others_out() {
    for way in [Way::Alone, Way::Tunnel] {
        let (proxy, origin) = (Proxy::mixed(way), OriginServer::start().unwrap());
        let crowd = hostile_clients::open_idle_connections(proxy.addr(), 500);
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
fn with_few_descriptors(url: &str) -> AditProcess {
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
        .arg(bin())
        .args(["run", url]);
    AditProcess::start_command(command, 1).unwrap()
}

/// REL-1: running out of descriptors neither ends the listener nor makes it spin.
#[test]
fn a_listener_outlives_a_lack_of_descriptors() {
    let origin = OriginServer::start().unwrap();
    let mut proxy = with_few_descriptors(&format!("mixed://127.0.0.1:0?{ALLOW}"));
    let crowd = hostile_clients::open_idle_connections(proxy.addr(), 200);
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
    let to = Destination::Addr(origin.addr());
    while socks_client::connect_through(proxy.addr(), None, &to)
        .and_then(traffic::check_one_byte)
        .is_err()
    {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "connections are not served any more"
        );
        sleep(Duration::from_millis(50));
    }
    served(proxy.addr(), &origin);
    proxy.stop().unwrap();
}

#[test]
fn a_keyed_listener_outlives_a_lack_of_descriptors() {
    let origin = OriginServer::start().unwrap();
    let url = format!(
        "{}?{ALLOW}",
        BLAKE3_AES_128.url("127.0.0.1:0".parse().unwrap())
    );
    let back = with_few_descriptors(&url);
    let crowd = hostile_clients::open_idle_connections(back.addr(), 200);
    sleep(Duration::from_secs(1));
    drop(crowd);
    let front = crate::setup::start(&[
        "run",
        "mixed://127.0.0.1:0",
        &BLAKE3_AES_128.url(back.addr()),
    ]);
    let start = Instant::now();
    let to = Destination::Addr(origin.addr());
    while socks_client::connect_through(front.addr(), None, &to)
        .and_then(traffic::check_one_byte)
        .is_err()
    {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "connections are not served any more"
        );
        sleep(Duration::from_millis(50));
    }
    front.stop().unwrap();
    back.stop().unwrap();
}

/// Back-pressure: a client that does not read makes the peer wait, and memory does not grow (REL-7).
#[test]
fn a_client_that_does_not_read_costs_no_memory() {
    let (mut back, origin) = (server(BLAKE3_AES_128), OriginServer::start().unwrap());
    let mut front = crate::setup::start(&[
        "run",
        "mixed://127.0.0.1:0",
        &BLAKE3_AES_128.url(back.addr()),
    ]);
    let to = Destination::Addr(origin.addr());
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = socks_client::connect_through(front.addr(), None, &to).unwrap();
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
