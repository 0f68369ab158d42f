//! SOCKS5 with a strict client: reply codes, early data, BIND, ends of streams.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use adit_interop::hostile_clients::{Reaction, watch_reaction};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, ASSOCIATE, BIND, CONNECT, Destination};
use adit_interop::traffic::{self, CloseBehavior, connect_directly};
use adit_interop::{TEST_TIMEOUT, free_port, loopback_addr};

use crate::setup::{ALLOW, Proxy, Way, start};

fn code_of(proxy: &Proxy, command: u8, to: &Destination) -> u8 {
    let (mut stream, reply) =
        socks_client::perform_request(proxy.addr(), None, command, to).unwrap();
    if reply.code != 0 {
        assert_eq!(
            reply.bound,
            "0.0.0.0:0".parse().unwrap(),
            "a failure binds nothing"
        );
        traffic::expect_end(&mut stream).unwrap();
    }
    reply.code
}

#[test]
fn streams_pass_whole_and_end_each_way_by_itself() {
    for way in [Way::Alone, Way::Tunnel] {
        let (proxy, origin) = (Proxy::mixed(way), OriginServer::start().unwrap());
        let to = Destination::Addr(origin.addr());
        traffic::check_streams(CloseBehavior::Independent, || {
            socks_client::connect_through(proxy.addr(), None, &to)
        })
        .unwrap();
        let by_name = Destination::from_name("localhost", origin.addr().port());
        traffic::check_one_byte(
            socks_client::connect_through(proxy.addr(), None, &by_name).unwrap(),
        )
        .unwrap();
        proxy.stop();
    }
}

#[test]
fn a_stream_of_the_ipv6_origin() {
    for way in [Way::Alone, Way::Tunnel] {
        let (proxy, origin) = (Proxy::mixed(way), OriginServer::start_v6().unwrap());
        let to = Destination::Addr(origin.addr());
        traffic::check_one_byte(socks_client::connect_through(proxy.addr(), None, &to).unwrap())
            .unwrap();
        proxy.stop();
    }
}

#[test]
fn failures_have_their_codes() {
    let proxy = Proxy::mixed(Way::Alone);
    let dead = Destination::Addr(loopback_addr(free_port()));
    assert_eq!(code_of(&proxy, CONNECT, &dead), 5, "connection refused");
    let nobody = Destination::from_name("no-such-name.invalid", 80);
    assert_eq!(
        code_of(&proxy, CONNECT, &nobody),
        4,
        "a name without an address"
    );
    let private = Destination::Addr("10.1.2.3:80".parse().unwrap());
    assert_eq!(code_of(&proxy, CONNECT, &private), 2, "not allowed");
    let mapped = Destination::Addr("[::ffff:10.1.2.3]:80".parse().unwrap());
    assert_eq!(
        code_of(&proxy, CONNECT, &mapped),
        2,
        "not allowed in another spelling"
    );
    let spelled = Destination::from_name("0x0a010203", 80);
    assert_ne!(
        code_of(&proxy, CONNECT, &spelled),
        0,
        "an odd spelling of a private address"
    );
    let nowhere = Destination::Addr(loopback_addr(0));
    assert_eq!(code_of(&proxy, CONNECT, &nowhere), 1, "port 0");
    let origin = OriginServer::start().unwrap();
    let there = Destination::Addr(origin.addr());
    assert_eq!(code_of(&proxy, BIND, &there), 7, "BIND is off by default");
    assert_eq!(code_of(&proxy, 0xf0, &there), 7, "unknown command");
    assert_eq!(code_of(&proxy, CONNECT, &there), 0);
    proxy.stop();
}

#[test]
fn an_unreachable_network_has_its_code() {
    let proxy = start(&["run", "mixed://127.0.0.1:0?allow_private=all"]);
    // No stream can reach the broadcast address: the system fails immediately.
    let to = Destination::Addr("255.255.255.255:80".parse().unwrap());
    let (_, reply) = socks_client::perform_request(proxy.addr(), None, CONNECT, &to).unwrap();
    assert_eq!(reply.code, 3);
    proxy.stop().unwrap();
}

#[test]
fn strange_requests_are_refused_by_the_book() {
    let proxy = Proxy::mixed(Way::Alone);
    // (what is sent, the whole answer; then the stream ends)
    for (sent, wanted) in [
        (&[5, 0][..], &[5, 0xff][..]),
        (&[5, 1, 1], &[5, 0xff]),
        (
            &[5, 1, 0, 5, 1, 0, 9, 1, 2, 3, 4, 0, 80],
            &[5, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (
            &[5, 1, 0, 5, 1, 0, 3, 0, 0, 80],
            &[5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (
            &[5, 1, 0, 5, 1, 0, 3, 2, b'a', 0, 0, 80],
            &[5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (&[4, 1, 0, 80, 0, 0, 0, 0, 0], &[0, 0x5b, 0, 0, 0, 0, 0, 0]),
    ] {
        let mut stream = connect_directly(proxy.addr()).unwrap();
        stream.write_all(sent).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, wanted, "{sent:02x?}");
    }
    proxy.stop();
}

#[test]
fn all_at_once_and_byte_by_byte_are_the_same() {
    let origin = OriginServer::start().unwrap();
    for way in [Way::Alone, Way::Tunnel] {
        let proxy = Proxy::mixed(way);
        let request = socks_client::encode_request(CONNECT, &Destination::Addr(origin.addr()));
        let hello = [&[5, 2, 0, 2][..], &request, b"PUT 4\nabcd"].concat();
        for piece in [hello.len(), 1] {
            let mut stream = connect_directly(proxy.addr()).unwrap();
            for bytes in hello.chunks(piece) {
                stream.write_all(bytes).unwrap();
                if piece == 1 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            assert!(answer.starts_with(&[5, 0, 5, 0, 0]), "{answer:02x?}");
            let sum = adit_interop::Checksum::EMPTY.extend_with(b"abcd").0;
            assert!(
                answer.ends_with(format!("{sum:016x}\n").as_bytes()),
                "{answer:02x?}"
            );
        }
        proxy.stop();
    }
}

#[test]
fn a_reset_of_the_target_is_never_a_clean_end() {
    for way in [Way::Alone, Way::Tunnel] {
        let (proxy, origin) = (Proxy::mixed(way), OriginServer::start().unwrap());
        let to = Destination::Addr(origin.addr());
        let mut stream = socks_client::connect_through(proxy.addr(), None, &to).unwrap();
        stream.write_all(b"RESET\n").unwrap();
        assert_eq!(
            watch_reaction(&mut stream, TEST_TIMEOUT).unwrap(),
            Reaction::Reset,
            "{way:?}"
        );
        proxy.stop();
    }
}

#[test]
fn bind_waits_for_one_peer_and_joins_it() {
    let listen = format!("mixed://127.0.0.1:0?{ALLOW}&bind=true");
    let proxy = start(&["run", &listen]);
    let any = Destination::Addr("0.0.0.0:0".parse().unwrap());
    let (mut near, first) = socks_client::perform_request(proxy.addr(), None, BIND, &any).unwrap();
    assert_eq!((first.code, first.bound.ip()), (0, loopback_addr(0).ip()));
    let mut peer = connect_directly(first.bound).unwrap();
    let second = socks_client::read_reply(&mut near).unwrap();
    assert_eq!((second.code, second.bound), (0, peer.local_addr().unwrap()));
    peer.write_all(b"from the peer").unwrap();
    let mut got = [0; 13];
    near.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"from the peer");
    near.write_all(b"and back").unwrap();
    let mut got = [0; 8];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"and back");
    drop(near);
    traffic::expect_end(&mut peer).unwrap();
    proxy.stop().unwrap();
}

#[test]
fn bind_and_associate_end_with_the_control_connection() {
    let listen = format!("mixed://127.0.0.1:0?{ALLOW}&bind=true");
    let proxy = start(&["run", &listen]);
    let any = Destination::Addr("0.0.0.0:0".parse().unwrap());
    for (command, transport) in [
        (BIND, adit_interop::Transport::Tcp),
        (ASSOCIATE, adit_interop::Transport::Udp),
    ] {
        let (control, reply) =
            socks_client::perform_request(proxy.addr(), None, command, &any).unwrap();
        assert_eq!(reply.code, 0, "command {command}");
        let port = reply.bound.port();
        adit_interop::wait_port(transport, port, TEST_TIMEOUT).unwrap();
        drop(control);
        let start = Instant::now();
        while adit_interop::wait_port(transport, port, Duration::ZERO).is_ok() {
            assert!(
                start.elapsed() < Duration::from_secs(3),
                "command {command} still listens"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    proxy.stop().unwrap();
}
