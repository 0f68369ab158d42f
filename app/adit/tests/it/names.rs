//! Name lookups, with a DNS server of the test, in a separate network namespace with its own `/etc`.

use std::fs;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use adit_interop::dns_server::{DnsReply, DnsServer};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{
    CONNECT, Destination, UdpAssociation, authenticate, connect_through, encode_request,
    perform_request,
};
use adit_interop::traffic::check_one_byte;
use adit_interop::{AditProcess, TempFolder, loopback_addr};
use rustix::net::{AddressFamily, SocketType, bind, connect as connect_to, socket};

use crate::netns::{GATEWAY, command, enter, use_local_dns_server, world};
use crate::setup::{ALLOW, bin};

fn adit(args: &[&str]) -> AditProcess {
    let bin = bin();
    let words: Vec<&str> = [&[bin.to_str().unwrap(), "run"], args].concat();
    AditProcess::start_command(command(GATEWAY, &words), 1).unwrap()
}

/// Opens a connection to `proxy` from `source`.
fn dial_from(source: Ipv4Addr, proxy: SocketAddr) -> TcpStream {
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&fd, &SocketAddr::new(source.into(), 0)).unwrap();
    connect_to(&fd, &proxy).unwrap();
    TcpStream::from(fd)
}

fn script(name: &str) -> DnsReply {
    match name {
        "none.test" => DnsReply::NoSuchName,
        "short.test" => DnsReply::Address(Ipv4Addr::LOCALHOST, 0),
        name if name.starts_with("dead") => DnsReply::NoReply,
        _ => DnsReply::Address(Ipv4Addr::LOCALHOST, 60),
    }
}

#[test]
fn dead_names_of_one_client_stop_no_other() {
    if !world("names::dead_names_of_one_client_stop_no_other") {
        return;
    }
    let folder = TempFolder::new("names").unwrap();
    use_local_dns_server(&folder);
    let dns_at = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), 53);
    let (dns, origin) = enter(GATEWAY, || {
        (
            DnsServer::start_at(dns_at, script).unwrap(),
            OriginServer::start_at(loopback_addr(7000)).unwrap(),
        )
    });
    let port = origin.addr().port();
    let proxy = adit(&[&format!("mixed://127.0.0.1:0?{ALLOW}")]);
    let at = proxy.addr();
    let reply = |name: &str| {
        let name = Destination::from_name(name, port);
        let (_stream, reply) =
            enter(GATEWAY, || perform_request(at, None, CONNECT, &name)).unwrap();
        reply.code
    };

    // 50 a second for 5 s.
    let begin = Instant::now();
    let greedy: Vec<TcpStream> = enter(GATEWAY, || {
        let from = Ipv4Addr::new(127, 0, 0, 2);
        let dead = (0..250).map(|n| {
            let mut stream = dial_from(from, at);
            authenticate(&mut stream, None).unwrap();
            let name = Destination::from_name(&format!("dead{n}.test"), port);
            stream.write_all(&encode_request(CONNECT, &name)).unwrap();
            stream
        });
        dead.collect()
    });
    enter(GATEWAY, || {
        for n in 0..10 {
            let name = Destination::from_name(&format!("good{n}.test"), port);
            check_one_byte(connect_through(at, None, &name).unwrap()).unwrap();
        }
        let association = UdpAssociation::open(at, None).unwrap();
        let name = Destination::from_name("datagram.test", 53);
        let query = adit_interop::dns_server::encode_query(7, "short.test");
        association.send_to(&name, &query).unwrap();
        let (_, answer) = association.recv().expect("a datagram to a name");
        assert!(answer.starts_with(&[0, 7]));
    });
    let took = begin.elapsed();
    assert!(
        took < Duration::from_secs(4),
        "others waited for dead names: {took:?}"
    );
    drop(greedy);

    // The missing name is cached from then on; a change of the hosts file is noticed immediately.
    let before = dns.query_count();
    for _ in 0..3 {
        assert_eq!(reply("none.test"), 4);
    }
    let asked = dns.query_count() - before;
    assert!(asked <= 2, "asked {asked} times, of two families");
    // The file is written in place, because the mount is of the file, not of its name.
    fs::write("/etc/hosts", "127.0.0.1 none.test\n").unwrap();
    assert_eq!(reply("none.test"), 0);
    proxy.stop().unwrap();
}
