//! TCP Fast Open: a client that has connected to a server before sends the request with its SYN. In a
//! separate network namespace, because the system disables it for servers by default.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::{AditProcess, loopback_addr, traffic};

use crate::netns::{GATEWAY, command, enter, world};
use crate::setup::bin;

fn adit(args: &[&str]) -> AditProcess {
    let bin = bin();
    let words: Vec<&str> = [&[bin.to_str().unwrap(), "run"], args].concat();
    AditProcess::start_command(command(GATEWAY, &words), 1).unwrap()
}

/// Returns a counter of the network namespace of the calling thread.
fn counted(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|word| word == name).expect(name);
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// Returns the connections accepted with bytes in the SYN, once there are enough or the time is over.
fn accepted(wanted: u64) -> u64 {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let count = enter(GATEWAY, || counted("TCPFastOpenPassive"));
        if count >= wanted || Instant::now() > end {
            return count;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn requests_travel_with_the_syn_where_that_is_wanted() {
    if !world("fast_open::requests_travel_with_the_syn_where_that_is_wanted") {
        return;
    }
    let origin = enter(GATEWAY, || {
        fs::write("/proc/sys/net/ipv4/tcp_fastopen", "3").unwrap();
        OriginServer::start_at(loopback_addr(7000))
    })
    .unwrap();
    let url = |at, keys: &str| format!("{}?{keys}", BLAKE3_AES_128.url(at));
    in_dialect(&origin, url, 3);
    let url =
        |at, keys: &str| format!("ssr://aes-128-ctr:secret@{at}?protocol=auth_sha1_v4&{keys}");
    // The system now has the cookie of this address.
    in_dialect(&origin, url, 4);
}

fn in_dialect(origin: &OriginServer, url: impl Fn(SocketAddr, &str) -> String, with_syn: u64) {
    let before = accepted(0);
    let private = "allow_private=127.0.0.0/8";
    let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
    let carry = |server: &AditProcess, keys: &str| {
        let client = adit(&[&target, &url(server.addr(), keys)]);
        for _ in 0..4 {
            enter(GATEWAY, || {
                traffic::transfer_both_ways(
                    traffic::connect_directly(client.addr()).unwrap(),
                    300_000,
                )
            })
            .unwrap();
        }
        client.stop().unwrap();
    };
    let fast = adit(&[&url(loopback_addr(0), &format!("{private}&fast_open=true"))]);
    // Clients that do not request it are served normally.
    carry(&fast, "");
    assert_eq!(accepted(0), before);
    // The first connection fetches the cookie, the others use it.
    carry(&fast, "fast_open=true");
    assert_eq!(accepted(before + with_syn), before + with_syn);
    fast.stop().unwrap();
    // A server without it: the client falls back automatically.
    let plain = adit(&[&url(loopback_addr(0), private)]);
    carry(&plain, "fast_open=true");
    assert_eq!(accepted(before + with_syn), before + with_syn);
    plain.stop().unwrap();
    // The failure is reported as such, although the connection seemed to be established.
    let gone = adit(&[&target, &url(loopback_addr(1), "fast_open=true")]);
    enter(GATEWAY, || {
        assert!(traffic::check_one_byte(traffic::connect_directly(gone.addr()).unwrap()).is_err());
    });
    gone.stop().unwrap();
}
