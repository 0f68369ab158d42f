//! Datagrams: UDP ASSOCIATE with a strict client, and dig through a forwarder.

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::dns::{self, Dns};
use adit_interop::origin::Origin;
use adit_interop::socks::{self, Association, Dest, Flow};
use adit_interop::{Pattern, Transport, tool, traffic, wait_port};

use crate::setup::{Proxy, Way, server, start};

const SOON: Duration = Duration::from_millis(500);

#[test]
fn an_association_carries_datagrams_to_several_targets() {
    for way in [Way::Alone, Way::Tunnel] {
        let proxy = Proxy::mixed(way);
        let (one, two) = (Origin::start().unwrap(), Origin::start().unwrap());
        let association = Association::open(proxy.addr(), None).unwrap();
        assert_eq!(
            association.relay().ip(),
            proxy.addr().ip(),
            "an address the client can reach"
        );
        for origin in [&one, &two] {
            let flow = Flow::new(&association, Dest::Addr(origin.addr()), origin.addr());
            traffic::datagrams(&flow).unwrap();
        }
        // By name: the answer contains the address, not the name.
        let name = Dest::name("localhost", one.addr().port());
        traffic::datagrams(&Flow::new(&association, name, one.addr())).unwrap();
        proxy.stop();
    }
}

#[test]
fn an_association_over_ipv6() {
    let proxy = Proxy::start("mixed://[::1]:0", Way::Alone);
    let (four, six) = (Origin::start().unwrap(), Origin::start_v6().unwrap());
    let association = Association::open(proxy.addr(), None).unwrap();
    for origin in [four, six] {
        let flow = Flow::new(&association, Dest::Addr(origin.addr()), origin.addr());
        traffic::datagrams(&flow).unwrap();
    }
    proxy.stop();
}

#[test]
fn an_association_needs_the_login() {
    let proxy = Proxy::start("socks5://ann:secret@127.0.0.1:0", Way::Tunnel);
    assert!(Association::open(proxy.addr(), None).is_err());
    assert!(Association::open(proxy.addr(), Some(("ann", "wrong"))).is_err());
    let origin = Origin::start().unwrap();
    let association = Association::open(proxy.addr(), Some(("ann", "secret"))).unwrap();
    let flow = Flow::new(&association, Dest::Addr(origin.addr()), origin.addr());
    traffic::datagrams(&flow).unwrap();
    proxy.stop();
}

#[test]
fn an_empty_datagram_passes() {
    for way in [Way::Alone, Way::Tunnel] {
        let (proxy, origin) = (Proxy::mixed(way), Origin::start().unwrap());
        let association = Association::open(proxy.addr(), None).unwrap();
        association
            .send_to(&Dest::Addr(origin.addr()), b"")
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
    let (proxy, origin) = (Proxy::mixed(Way::Alone), Origin::start().unwrap());
    let association = Association::open(proxy.addr(), None).unwrap();
    let to = Dest::Addr(origin.addr());
    let good = socks::datagram(0, &to, b"good");
    let mut reserved = good.clone();
    reserved[0] = 1;
    let private = Dest::Addr("10.1.2.3:9".parse().unwrap());
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("one byte", vec![0]),
        ("a cut header", good[..9].to_vec()),
        ("a reserved byte", reserved),
        ("a fragment", socks::datagram(1, &to, b"part")),
        (
            "an unknown address type",
            vec![0, 0, 0, 9, 1, 2, 3, 4, 0, 80, 1],
        ),
        ("a forbidden target", socks::datagram(0, &private, b"x")),
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
    let (proxy, origin) = (Proxy::mixed(Way::Alone), Origin::start().unwrap());
    let association = Association::open(proxy.addr(), None).unwrap();
    let to = Dest::Addr(origin.addr());
    association.send_to(&to, b"mine").unwrap();
    assert_eq!(association.recv().unwrap().1, b"mine");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(SOON)).unwrap();
    stranger
        .send_to(&socks::datagram(0, &to, b"theirs"), association.relay())
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
        let (proxy, origin) = (Proxy::mixed(way), Origin::start().unwrap());
        let mut association = Association::open(proxy.addr(), None).unwrap();
        association
            .send_to(&Dest::Addr(origin.addr()), b"x")
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
    let (proxy, origin) = (Proxy::mixed(Way::Tunnel), Origin::start().unwrap());
    let to = Dest::Addr(origin.addr());
    let open = |_| Association::open(proxy.addr(), None).unwrap();
    let all: Vec<Association> = (0..40).map(open).collect();
    for (seed, association) in (0u64..).zip(&all) {
        association
            .send_to(&to, &Pattern::new(seed).take(300))
            .unwrap();
    }
    for (seed, association) in (0u64..).zip(&all) {
        assert_eq!(
            association.recv().unwrap().1,
            Pattern::new(seed).take(300),
            "{seed}"
        );
    }
    proxy.stop();
}

#[test]
fn a_question_by_association() {
    let (proxy, dns) = (Proxy::mixed(Way::Tunnel), Dns::start().unwrap());
    let association = Association::open(proxy.addr(), None).unwrap();
    association
        .send_to(&Dest::Addr(dns.addr()), &dns::query(7, "example.test"))
        .unwrap();
    let (from, answer) = association.recv().unwrap();
    assert_eq!(from, dns.addr());
    assert!(answer.starts_with(&[0, 7]) && answer.ends_with(&dns::ANSWER.octets()));
    proxy.stop();
}

#[test]
fn dig_through_a_forwarder() {
    let dns = Dns::start().unwrap();
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
        let told = tool::run(dig, Duration::from_secs(20))
            .unwrap()
            .success()
            .unwrap();
        assert_eq!(told.trim(), dns::ANSWER.to_string());
        assert_eq!(dns.asked(), count, "the question went through");
        entry.stop().unwrap();
    }
    back.stop().unwrap();
}
