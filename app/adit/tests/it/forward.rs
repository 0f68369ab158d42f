//! Fixed forwarders, and iperf3 as a user of one.

use adit_interop::iperf::IperfServer;
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_256, BLAKE3_CHACHA20};
use adit_interop::traffic::{self, CloseBehavior, ForwarderEntry};

use crate::setup::{ALLOW, server, start};

#[test]
fn one_port_for_tcp_and_udp() {
    let origin = OriginServer::start().unwrap();
    let entry = start(&["run", &format!("tcp+udp://127.0.0.1:0/{}", origin.addr())]);
    traffic::check_streams(CloseBehavior::Independent, || {
        traffic::connect_directly(entry.addr())
    })
    .unwrap();
    traffic::check_datagrams(&ForwarderEntry::open(entry.addr()).unwrap()).unwrap();
    entry.stop().unwrap();
}

#[test]
fn a_tcp_forwarder_by_name_over_ipv6() {
    let origin = OriginServer::start().unwrap();
    let url = format!("tcp://[::1]:0/localhost:{}", origin.addr().port());
    let entry = start(&["run", &url]);
    traffic::check_one_byte(traffic::connect_directly(entry.addr()).unwrap()).unwrap();
    entry.stop().unwrap();
}

#[test]
fn two_hops_one_after_the_other() {
    let origin = OriginServer::start().unwrap();
    let (near, far) = (server(BLAKE3_CHACHA20), server(AES_256));
    let entry = start(&[
        "run",
        &format!("tcp+udp://127.0.0.1:0/{}", origin.addr()),
        &BLAKE3_CHACHA20.url(near.addr()),
        &AES_256.url(far.addr()),
    ]);
    traffic::check_streams(CloseBehavior::Independent, || {
        traffic::connect_directly(entry.addr())
    })
    .unwrap();
    assert_eq!(origin.connection_count(), 5);
    for adit in [entry, near, far] {
        adit.stop().unwrap();
    }
}

#[test]
fn a_socks_and_an_http_proxy_as_hops() {
    let origin = OriginServer::start().unwrap();
    let socks = start(&["run", &format!("socks5://ann:secret@127.0.0.1:0?{ALLOW}")]);
    let http = start(&["run", &format!("http://bob:secret@127.0.0.1:0?{ALLOW}")]);
    let (first, second) = (
        format!("socks5://ann:secret@{}", socks.addr()),
        format!("http://bob:secret@{}", http.addr()),
    );
    let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
    for chain in [
        &[&first][..],
        &[&second],
        &[&first, &second],
        &[&second, &first],
    ] {
        let mut args = vec!["run", &target];
        args.extend(chain.iter().map(|hop| hop.as_str()));
        let entry = start(&args);
        traffic::check_streams(CloseBehavior::Independent, || {
            traffic::connect_directly(entry.addr())
        })
        .unwrap();
        entry.stop().unwrap();
    }
    // Datagrams pass a SOCKS5 hop through an association.
    let entry = start(&[
        "run",
        &format!("udp://127.0.0.1:0/{}", origin.addr()),
        &first,
    ]);
    traffic::check_datagrams(&ForwarderEntry::open(entry.addr()).unwrap()).unwrap();
    entry.stop().unwrap();
    socks.stop().unwrap();
    http.stop().unwrap();
}

#[test]
fn iperf3_both_ways_over_tcp_and_udp() {
    let mut iperf = IperfServer::start().unwrap();
    let back = server(BLAKE3_AES_256);
    let target = format!("tcp+udp://127.0.0.1:0/{}", iperf.addr());
    let entry = start(&["run", &target, &BLAKE3_AES_256.url(back.addr())]);
    for mode in [
        &["-t", "1"][..],
        &["-t", "1", "-R"],
        &["-t", "1", "-u", "-b", "20M", "-l", "1390"],
        &["-t", "1", "-u", "-R", "-b", "20M", "-l", "1382"],
    ] {
        iperf.run_client(entry.addr(), mode).unwrap();
    }
    entry.stop().unwrap();
    back.stop().unwrap();
}
