//! Datagrams: UDP ASSOCIATE with a strict client, and dig through a forwarder.

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::dns_server::{self, DnsServer};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination, UdpAssociation, UdpFlow};
use adit_interop::{BytePattern, Transport, external_tools, traffic, wait_port};

use crate::setup::{Proxy, Way, server, start};

const SOON: Duration = Duration::from_millis(500);

#[test]
fn an_association_carries_datagrams_to_several_targets() {
    for way in [Way::Alone, Way::Tunnel] {
        let proxy = Proxy::mixed(way);
        let (one, two) = (
            OriginServer::start().unwrap(),
            OriginServer::start().unwrap(),
        );
        let association = UdpAssociation::open(proxy.addr(), None).unwrap();
        assert_eq!(
            association.relay().ip(),
            proxy.addr().ip(),
            "an address the client can reach"
        );
        for origin in [&one, &two] {
            let flow = UdpFlow::new(
                &association,
                Destination::Addr(origin.addr()),
                origin.addr(),
            );
            traffic::check_datagrams(&flow).unwrap();
        }
        // By name: the answer contains the address, not the name.
        let name = Destination::from_name("localhost", one.addr().port());
        traffic::check_datagrams(&UdpFlow::new(&association, name, one.addr())).unwrap();
        proxy.stop();
    }
}

#[test]
fn an_association_over_ipv6() {
    let proxy = Proxy::start("mixed://[::1]:0", Way::Alone);
    let (four, six) = (
        OriginServer::start().unwrap(),
        OriginServer::start_v6().unwrap(),
    );
    let association = UdpAssociation::open(proxy.addr(), None).unwrap();
    for origin in [four, six] {
        let flow = UdpFlow::new(
            &association,
            Destination::Addr(origin.addr()),
            origin.addr(),
        );
        traffic::check_datagrams(&flow).unwrap();
    }
    proxy.stop();
}

#[test]
fn an_association_needs_the_login() {
    let proxy = Proxy::start("socks5://ann:secret@127.0.0.1:0", Way::Tunnel);
    assert!(UdpAssociation::open(proxy.addr(), None).is_err());
    assert!(UdpAssociation::open(proxy.addr(), Some(("ann", "wrong"))).is_err());
    let origin = OriginServer::start().unwrap();
    let association = UdpAssociation::open(proxy.addr(), Some(("ann", "secret"))).unwrap();
    let flow = UdpFlow::new(
        &association,
        Destination::Addr(origin.addr()),
        origin.addr(),
    );
    traffic::check_datagrams(&flow).unwrap();
    proxy.stop();
}

#[test]
fn an_empty_datagram_passes() {
    for way in [Way::Alone, Way::Tunnel] {
        let (proxy, origin) = (Proxy::mixed(way), OriginServer::start().unwrap());
        let association = UdpAssociation::open(proxy.addr(), None).unwrap();
        association
            .send_to(&Destination::Addr(origin.addr()), b"")
            .unwrap();
        assert_eq!(
            association.recv().unwrap(),
            (origin.addr(), Vec::new()),
            "{way:?}"
        );
        proxy.stop();
    }
}

#[test]
fn bad_datagrams_are_dropped_and_good_ones_still_pass() {
    let (proxy, origin) = (Proxy::mixed(Way::Alone), OriginServer::start().unwrap());
    let association = UdpAssociation::open(proxy.addr(), None).unwrap();
    let to = Destination::Addr(origin.addr());
    let good = socks_client::encode_datagram(0, &to, b"good");
    let mut reserved = good.clone();
    reserved[0] = 1;
    let private = Destination::Addr("10.1.2.3:9".parse().unwrap());
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("one byte", vec![0]),
        ("a cut header", good[..9].to_vec()),
        ("a reserved byte", reserved),
        ("a fragment", socks_client::encode_datagram(1, &to, b"part")),
        (
            "an unknown address type",
            vec![0, 0, 0, 9, 1, 2, 3, 4, 0, 80, 1],
        ),
        (
            "a forbidden target",
            socks_client::encode_datagram(0, &private, b"x"),
        ),
    ] {
        association.send_raw(&bytes).unwrap();
        assert!(
            association.recv_within(Duration::from_millis(150)).is_err(),
            "{what} was answered"
        );
        association.send_raw(&good).unwrap();
        assert_eq!(
            association.recv().unwrap(),
            (origin.addr(), b"good".to_vec()),
            "after {what}"
        );
    }
    proxy.stop();
}

#[test]
fn an_association_belongs_to_the_port_that_used_it_first() {
    let (proxy, origin) = (Proxy::mixed(Way::Alone), OriginServer::start().unwrap());
    let association = UdpAssociation::open(proxy.addr(), None).unwrap();
    let to = Destination::Addr(origin.addr());
    association.send_to(&to, b"mine").unwrap();
    assert_eq!(association.recv().unwrap().1, b"mine");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(SOON)).unwrap();
    stranger
        .send_to(
            &socks_client::encode_datagram(0, &to, b"theirs"),
            association.relay(),
        )
        .unwrap();
    assert!(
        stranger.recv_from(&mut [0; 64]).is_err(),
        "a stranger was served"
    );
    assert!(
        association.recv_within(SOON).is_err(),
        "a stranger's answer came to us"
    );
    association.send_to(&to, b"still mine").unwrap();
    assert_eq!(association.recv().unwrap().1, b"still mine");
    proxy.stop();
}

#[test]
fn an_association_ends_within_a_second_of_its_control_connection() {
    for way in [Way::Alone, Way::Tunnel] {
        let (proxy, origin) = (Proxy::mixed(way), OriginServer::start().unwrap());
        let mut association = UdpAssociation::open(proxy.addr(), None).unwrap();
        association
            .send_to(&Destination::Addr(origin.addr()), b"x")
            .unwrap();
        association.recv().unwrap();
        let port = association.relay().port();
        association
            .control()
            .shutdown(std::net::Shutdown::Both)
            .unwrap();
        let start = Instant::now();
        while wait_port(Transport::Udp, port, Duration::ZERO).is_ok() {
            assert!(
                start.elapsed() < Duration::from_secs(1),
                "{way:?}: the relay is still there"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        proxy.stop();
    }
}

#[test]
fn many_associations_at_once_do_not_mix() {
    let (proxy, origin) = (Proxy::mixed(Way::Tunnel), OriginServer::start().unwrap());
    let to = Destination::Addr(origin.addr());
    let open = |_| UdpAssociation::open(proxy.addr(), None).unwrap();
    let all: Vec<UdpAssociation> = (0..40).map(open).collect();
    for (seed, association) in (0u64..).zip(&all) {
        association
            .send_to(&to, &BytePattern::new(seed).next_bytes(300))
            .unwrap();
    }
    for (seed, association) in (0u64..).zip(&all) {
        assert_eq!(
            association.recv().unwrap().1,
            BytePattern::new(seed).next_bytes(300),
            "{seed}"
        );
    }
    proxy.stop();
}

#[test]
fn a_question_by_association() {
    let (proxy, dns) = (Proxy::mixed(Way::Tunnel), DnsServer::start().unwrap());
    let association = UdpAssociation::open(proxy.addr(), None).unwrap();
    association
        .send_to(
            &Destination::Addr(dns.addr()),
            &dns_server::encode_query(7, "example.test"),
        )
        .unwrap();
    let (from, answer) = association.recv().unwrap();
    assert_eq!(from, dns.addr());
    assert!(answer.starts_with(&[0, 7]) && answer.ends_with(&dns_server::ANSWER.octets()));
    proxy.stop();
}

#[test]
fn dig_through_a_forwarder() {
    let dns = DnsServer::start().unwrap();
    let target = dns.addr();
    let back = server(adit_interop::shadowsocks::CHACHA20);
    let hop = adit_interop::shadowsocks::CHACHA20.url(back.addr());
    let entry = format!("udp://127.0.0.1:0/{target}");
    for (count, args) in [(1, &["run", &entry][..]), (2, &["run", &entry, &hop])] {
        let entry = start(args);
        let mut dig = Command::new("dig");
        dig.args([
            "+notcp",
            "+tries=1",
            "+time=10",
            "+short",
            "@127.0.0.1",
            "example.test",
            "A",
        ]);
        dig.args(["-p", &entry.addr().port().to_string()]);
        let told = external_tools::run_to_end(dig, Duration::from_secs(20))
            .unwrap()
            .expect_success()
            .unwrap();
        assert_eq!(told.trim(), dns_server::ANSWER.to_string());
        assert_eq!(dns.query_count(), count, "the question went through");
        entry.stop().unwrap();
    }
    back.stop().unwrap();
}
