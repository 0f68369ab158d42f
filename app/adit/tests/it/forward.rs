//! Fixed forwarders, and iperf3 as a user of one.

use std::process::Command;
use std::time::Duration;

use adit_interop::origin::Origin;
use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_256, BLAKE3_CHACHA20};
use adit_interop::traffic::{self, Ends, Entry};
use adit_interop::{PATIENCE, Process, Transport, free_port, loopback, tool, wait_port};

use crate::setup::{ALLOW, server, start};

#[test]
fn one_port_for_tcp_and_udp() {
    let origin = Origin::start().unwrap();
    let entry = start(&["run", &format!("tcp+udp://127.0.0.1:0/{}", origin.addr())]);
    traffic::streams(Ends::Each, || traffic::dial(entry.addr())).unwrap();
    traffic::datagrams(&Entry::open(entry.addr()).unwrap()).unwrap();
    entry.stop().unwrap();
}

#[test]
fn a_tcp_forwarder_by_name_over_ipv6() {
    let origin = Origin::start().unwrap();
    let url = format!("tcp://[::1]:0/localhost:{}", origin.addr().port());
    let entry = start(&["run", &url]);
    traffic::one_byte(traffic::dial(entry.addr()).unwrap()).unwrap();
    entry.stop().unwrap();
}

#[test]
fn two_hops_one_after_the_other() {
    let origin = Origin::start().unwrap();
    let (near, far) = (server(BLAKE3_CHACHA20), server(AES_256));
    let entry = start(&[
        "run",
        &format!("tcp+udp://127.0.0.1:0/{}", origin.addr()),
        &BLAKE3_CHACHA20.url(near.addr()),
        &AES_256.url(far.addr()),
    ]);
    traffic::streams(Ends::Each, || traffic::dial(entry.addr())).unwrap();
    assert_eq!(origin.connections(), 5);
    for adit in [entry, near, far] {
        adit.stop().unwrap();
    }
}

#[test]
fn a_socks_and_an_http_proxy_as_hops() {
    let origin = Origin::start().unwrap();
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
        traffic::streams(Ends::Each, || traffic::dial(entry.addr())).unwrap();
        entry.stop().unwrap();
    }
    // Datagrams pass a SOCKS5 hop by an association of ours.
    let entry = start(&[
        "run",
        &format!("udp://127.0.0.1:0/{}", origin.addr()),
        &first,
    ]);
    traffic::datagrams(&Entry::open(entry.addr()).unwrap()).unwrap();
    entry.stop().unwrap();
    socks.stop().unwrap();
    http.stop().unwrap();
}

#[test]
fn iperf3_both_ways_over_tcp_and_udp() {
    let port = free_port();
    let mut command = Command::new("iperf3");
    command.args(["-s", "-B", "127.0.0.1", "-p", &port.to_string()]);
    let _iperf = Process::spawn(command).unwrap();
    wait_port(Transport::Tcp, port, PATIENCE).unwrap();

    let back = server(BLAKE3_AES_256);
    let target = format!("tcp+udp://127.0.0.1:0/{}", loopback(port));
    let entry = start(&["run", &target, &BLAKE3_AES_256.url(back.addr())]);
    for mode in [
        &[][..],
        &["-R"],
        &["-u", "-b", "20M", "-l", "1390"],
        &["-u", "-R", "-b", "20M", "-l", "1382"],
    ] {
        let mut client = Command::new("iperf3");
        client.args([
            "-c",
            "127.0.0.1",
            "-t",
            "1",
            "-p",
            &entry.addr().port().to_string(),
        ]);
        client.args(mode);
        let told = tool::run(client, Duration::from_secs(40)).unwrap();
        let told = told
            .success()
            .unwrap_or_else(|why| panic!("{mode:?}: {why:#}"));
        let moved = told
            .lines()
            .rev()
            .find(|line| line.contains("receiver"))
            .expect(&told);
        assert!(
            !moved.contains("0.00 Bytes"),
            "{mode:?}: nothing arrived: {moved}"
        );
    }
    entry.stop().unwrap();
    back.stop().unwrap();
}
