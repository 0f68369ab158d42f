//! UDP over TCP (versions 1 and 2, as in sing-box): no datagram reaches the server.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::shadowsocks::{
    AES_256, BLAKE3_AES_128, BLAKE3_CHACHA20, CHACHA20, ClientSetup, IDENTITY_KEYS, MethodKey,
    ShadowsocksPeer,
};
use adit_interop::socks_client::{Destination, UdpAssociation, UdpFlow};
use adit_interop::traffic::{self, DatagramLink, ForwarderEntry};
use adit_interop::{AditProcess, BytePattern, free_port, loopback_addr};

use crate::setup::{ALLOW, UsersFile, relay, server, start};

/// Starts a client of adit for a server behind a tap, which does not carry datagrams.
fn ours(client: &ClientSetup<'_>, origin: &OriginServer) -> AditProcess {
    let entry = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    start(&["run", &entry, &client.url()])
}

fn over_tcp<'a>(
    method: MethodKey,
    keys: &'a [&'a str],
    server: SocketAddr,
    version: u8,
) -> ClientSetup<'a> {
    ClientSetup {
        over_tcp: Some(version),
        ..ClientSetup::new(method, keys, server)
    }
}

/// Each socket is a separate association, and therefore a separate stream.
fn datagrams(entry: SocketAddr) {
    let entries: Vec<ForwarderEntry> = (0..3)
        .map(|_| ForwarderEntry::open(entry).unwrap())
        .collect();
    for entry in entries.iter().chain(&entries) {
        traffic::check_datagrams(entry).unwrap();
    }
}

#[test]
fn to_their_servers() {
    for (peer, method) in [
        (ShadowsocksPeer::SingBox, BLAKE3_AES_128),
        (ShadowsocksPeer::SingBox, CHACHA20),
        (ShadowsocksPeer::Xray, BLAKE3_CHACHA20),
        (ShadowsocksPeer::Xray, AES_256),
    ] {
        let origin = OriginServer::start().unwrap();
        let theirs = peer.start_server(method).unwrap();
        let tap = RecordingRelay::start(theirs.addr()).unwrap();
        let front = ours(&over_tcp(method, &[method.key], tap.addr(), 2), &origin);
        datagrams(front.addr());
        assert!(tap.requests().len() >= 3, "{peer:?}: not through the tap");
        front.stop().unwrap();
    }
}

#[test]
fn from_their_clients() {
    for (peer, method) in [
        (ShadowsocksPeer::SingBox, BLAKE3_AES_128),
        (ShadowsocksPeer::SingBox, CHACHA20),
        (ShadowsocksPeer::Xray, BLAKE3_CHACHA20),
    ] {
        for version in [1, 2] {
            let origin = OriginServer::start().unwrap();
            let back = server(method);
            let tap = RecordingRelay::start_delayed(back.addr()).unwrap();
            let keys = [method.key];
            let client = over_tcp(method, &keys, tap.addr(), version);
            let theirs = peer.start_forwarder_for(&client, origin.addr()).unwrap();
            datagrams(theirs.addr());
            assert!(
                tap.requests().len() >= 3,
                "{peer:?} {version}: not through the tap"
            );
            back.stop().unwrap();
        }
    }
}

/// Several targets in one association, by address and by name; sizes up to the maximum.
#[test]
fn ours_to_ours() {
    for method in [BLAKE3_AES_128, AES_256] {
        let (one, two) = (
            OriginServer::start().unwrap(),
            OriginServer::start().unwrap(),
        );
        let back = server(method);
        let tap = RecordingRelay::start(back.addr()).unwrap();
        let hop = over_tcp(method, &[method.key], tap.addr(), 2).url();
        let front = start(&["run", "mixed://127.0.0.1:0", &hop]);
        let association = UdpAssociation::open(front.addr(), None).unwrap();
        for origin in [&one, &two, &one] {
            let to = Destination::Addr(origin.addr());
            traffic::check_datagrams(&UdpFlow::new(&association, to, origin.addr())).unwrap();
        }
        let name = Destination::from_name("localhost", two.addr().port());
        let flow = UdpFlow::new(&association, name, two.addr());
        traffic::check_datagrams(&flow).unwrap();
        for len in [0, 1472, 9000, 60_000] {
            let data = BytePattern::new(len as u64).next_bytes(len);
            flow.send(&data).unwrap();
            assert_eq!(flow.recv().unwrap(), data, "{len} bytes");
        }
        assert_eq!(tap.requests().len(), 1, "one association, one stream");
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// A user behind a relay.
#[test]
fn behind_a_relay() {
    for ring in &IDENTITY_KEYS {
        let origin = OriginServer::start().unwrap();
        let (method, key) = (ring.method, ring.relays[0]);
        let back = UsersFile::new(&ring.users).serve(method);
        let between = relay(MethodKey { key, ..method }, &[(back.addr(), method.key)]);
        let tap = RecordingRelay::start(between.addr()).unwrap();
        let keys = [key, method.key, ring.users[0].1];
        let front = ours(&over_tcp(method, &keys, tap.addr(), 2), &origin);
        datagrams(front.addr());
        front.stop().unwrap();
        between.stop().unwrap();
        back.stop().unwrap();
    }
}

/// A plugin that only carries connections then carries everything.
#[test]
fn through_plugins() {
    let method = AES_256;
    let origin = OriginServer::start().unwrap();
    let public = loopback_addr(free_port());
    let plugin = "plugin=obfs-server%3Bobfs%3Dhttp";
    let back = start(&["run", &format!("{}?{plugin}&{ALLOW}", method.url(public))]);
    let tap = RecordingRelay::start(public).unwrap();
    let keys = [method.key];
    let client = ClientSetup {
        plugin: Some(("obfs-local", "obfs=http;obfs-host=a.example")),
        ..over_tcp(method, &keys, tap.addr(), 2)
    };
    let front = ours(&client, &origin);
    datagrams(front.addr());
    front.stop().unwrap();
    let theirs = ShadowsocksPeer::SingBox
        .start_forwarder_for(&client, origin.addr())
        .unwrap();
    datagrams(theirs.addr());
    drop(theirs);
    for first in tap.requests() {
        let text = String::from_utf8_lossy(&first[..first.len().min(200)]);
        assert!(text.starts_with("GET / HTTP/1.1"), "{text:?}");
    }
    back.stop().unwrap();
}

/// The rules for datagrams also apply to datagrams in a stream.
#[test]
fn a_server_that_has_no_way_for_them() {
    let origin = OriginServer::start().unwrap();
    let method = BLAKE3_AES_128;
    let nowhere = "127.0.0.1:0".parse().unwrap();
    let query = "allow_private=none";
    let back = start(&["run", &format!("{}?{query}", method.url(nowhere))]);
    let hop = over_tcp(method, &[method.key], back.addr(), 2).url();
    let front = start(&["run", "mixed://127.0.0.1:0", &hop]);
    let association = UdpAssociation::open(front.addr(), None).unwrap();
    let to = Destination::Addr(origin.addr());
    association.send_to(&to, b"x").unwrap();
    let back_soon = association.recv_within(Duration::from_secs(1));
    assert!(back_soon.is_err(), "{query}: {back_soon:?}");
    front.stop().unwrap();
    back.stop().unwrap();
}

/// Returns true if the program has a datagram socket at that port, from its descriptors: binding the
/// port would also fail if another program had it.
fn has_udp_port(adit: &mut AditProcess, port: u16) -> bool {
    let process = adit.process().id();
    let sockets: Vec<String> = fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
        .filter_map(|to| {
            Some(
                to.to_str()?
                    .strip_prefix("socket:[")?
                    .trim_end_matches(']')
                    .into(),
            )
        })
        .collect();
    assert!(!sockets.is_empty(), "a server has sockets");
    let port = format!(":{port:04X}");
    ["udp", "udp6"].into_iter().any(|family| {
        let table = fs::read_to_string(format!("/proc/{process}/net/{family}")).unwrap();
        table.lines().skip(1).any(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let local = columns.next().unwrap();
            let inode = columns.nth(7).unwrap();
            local.ends_with(&port) && sockets.iter().any(|socket| socket == inode)
        })
    })
}

/// Datagrams in streams need no datagram socket, so none is opened.
#[test]
fn a_server_without_a_socket_for_datagrams() {
    let origin = OriginServer::start().unwrap();
    let entry = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    let nowhere = "127.0.0.1:0".parse().unwrap();
    let mut both = start(&["run", &format!("{}?{ALLOW}", BLAKE3_AES_128.url(nowhere))]);
    let port = both.addr().port();
    assert!(has_udp_port(&mut both, port), "one that is seen");
    both.stop().unwrap();
    let ssr = |at: SocketAddr, query: &str| {
        format!("ssr://aes-256-cfb:secret@{at}?protocol=auth_aes128_md5&obfs=plain&{query}")
    };
    for udp in ["false", "over-tcp"] {
        let query = format!("udp={udp}&{ALLOW}");
        let shadowsocks = format!("{}?{query}", BLAKE3_AES_128.url(nowhere));
        for listen in [shadowsocks, ssr(nowhere, &query)] {
            let mut back = start(&["run", &listen]);
            let at = back.addr();
            assert!(!has_udp_port(&mut back, at.port()), "{listen}: has it");
            let hop = match listen.starts_with("ssr") {
                true => ssr(at, "udp=over-tcp"),
                false => over_tcp(BLAKE3_AES_128, &[BLAKE3_AES_128.key], at, 2).url(),
            };
            let front = start(&["run", &entry, &hop]);
            datagrams(front.addr());
            front.stop().unwrap();
            back.stop().unwrap();
        }
    }
}
