//! `adit kcp` with Debian's kcptun of 2021 and with a peer of current kcp-go, each at either end.

use std::net::SocketAddr;

use adit_interop::origin::OriginServer;
use adit_interop::{kcp_go, kcptun, traffic};

use crate::kcp::{carries, client, server};
use crate::setup::start;

/// All ciphers of kcptun 2021.
const CIPHERS: [&str; 13] = [
    "aes", "aes-128", "aes-192", "salsa20", "blowfish", "twofish", "cast5", "3des", "tea", "xtea",
    "xor", "sm4", "none",
];

/// The other settings that must be the same at both ends, each value at least once.
const LIKE: [&str; 7] = [
    "--smuxver 1 --mode fast3",
    "--smuxver 2 --nocomp --mode fast2 --key another",
    "--smuxver 1 --nocomp --mode normal --ds 0 --ps 0",
    "--smuxver 2 --ds 3 --ps 1 --mtu 1000",
    "--smuxver 1 --ds 70 --ps 30 --acknodelay",
    "--smuxver 2 --nocomp --ds 1 --ps 1 --mtu 1400 --sndwnd 256 --rcvwnd 256",
    "--smuxver 2 --mode manual --nodelay 1 --interval 20 --resend 2 --nc 1",
];

fn some(entry: SocketAddr, what: &str) {
    let all = || -> anyhow::Result<()> {
        traffic::check_one_byte(traffic::connect_directly(entry)?)?;
        traffic::transfer_both_ways(traffic::connect_directly(entry)?, 100_000)
    };
    all().unwrap_or_else(|why| panic!("{what}: {why:#}"));
}

/// Tests Debian's client with adit's server if `debian` is in front, otherwise the reverse.
fn with_debian(front: bool, theirs: &[&str], ours: &[&str], check: fn(SocketAddr, &str)) {
    let origin = OriginServer::start().unwrap();
    let what = format!("Debian's {}, ours {}", theirs.join(" "), ours.join(" "));
    if front {
        let back = server(origin.addr(), ours);
        let front = kcptun::start_client(back.addr(), theirs).unwrap();
        check(front.addr(), &what);
        drop(front);
        back.stop().unwrap();
    } else {
        let back = kcptun::start_server(origin.addr(), theirs).unwrap();
        let front = client(back.addr(), ours);
        check(front.addr(), &what);
        front.stop().unwrap();
    }
}

#[test]
fn every_cipher_with_debians_client() {
    for cipher in CIPHERS {
        let crypt = ["--crypt", cipher];
        with_debian(true, &crypt, &crypt, some);
    }
}

#[test]
fn every_cipher_with_debians_server() {
    for cipher in CIPHERS {
        let crypt = ["--crypt", cipher];
        with_debian(false, &crypt, &crypt, some);
    }
}

#[test]
fn every_setting_with_debians_client() {
    for options in LIKE {
        let words: Vec<&str> = options.split(' ').collect();
        with_debian(true, &words, &words, carries);
    }
}

#[test]
fn every_setting_with_debians_server() {
    for options in LIKE {
        let words: Vec<&str> = options.split(' ').collect();
        with_debian(false, &words, &words, carries);
    }
}

/// smux and compression are not configured: they are learnt from the peer. Error correction need not
/// be the same.
#[test]
fn what_is_not_said_is_as_debian_has_it() {
    for theirs in [
        &[][..],
        &["--smuxver", "2"],
        &["--nocomp"],
        &["--nocomp", "--smuxver", "2"],
        &["--ds", "0", "--ps", "0"],
        &["--ds", "3", "--ps", "1"],
    ] {
        for front in [true, false] {
            with_debian(front, theirs, &[], carries);
        }
    }
}

#[test]
fn both_manners_with_kcp_go() {
    let origin = OriginServer::start().unwrap();
    for (version, crypt, comp) in [
        ("1", "aes", true),
        ("2", "aes-128-gcm", false),
        ("2", "salsa20", true),
        ("1", "null", false),
    ] {
        let theirs = [
            &["-smuxver", version, "-crypt", crypt][..],
            if comp { &[] } else { &["-nocomp"] },
        ]
        .concat();
        for said in [true, false] {
            let mut ours = vec!["--crypt", crypt, "--mode", "fast3"];
            if said {
                ours.extend(["--smuxver", version]);
                ours.push(if comp { "--nocomp=false" } else { "--nocomp" });
            }
            let what = format!("{theirs:?}, {ours:?}");
            let back = server(origin.addr(), &ours);
            let front = kcp_go::start_tunnel_client(back.addr(), &theirs).unwrap();
            carries(front.addr(), &what);
            drop(front);
            back.stop().unwrap();
            let back = kcp_go::start_tunnel_server(origin.addr(), &theirs).unwrap();
            let front = client(back.addr(), &ours);
            carries(front.addr(), &what);
            front.stop().unwrap();
        }
    }
}

/// A feature of current kcptun only: pads over each stream.
#[test]
fn pads_over_each_stream_with_qpps_own_library() {
    let origin = OriginServer::start().unwrap();
    for (count, key, comp) in [("61", "it's a secrect", true), ("7", "another", false)] {
        let theirs = [
            &["-qpp", count, "-key", key][..],
            if comp { &[] } else { &["-nocomp"] },
        ]
        .concat();
        let mut ours = vec!["--QPP", "--QPPCount", count, "--key", key];
        if !comp {
            ours.push("--nocomp");
        }
        let what = format!("{theirs:?}");
        let back = server(origin.addr(), &ours);
        let front = kcp_go::start_tunnel_client(back.addr(), &theirs).unwrap();
        carries(front.addr(), &what);
        // Both ends of adit, by URL.
        let near = format!(
            "kcptun://{}@{}?qpp=true&qppcount={count}&nocomp={}",
            key.replace(' ', "%20"),
            back.addr(),
            !comp
        );
        let near = start(&["run", "tcp://127.0.0.1:0", &near]);
        carries(near.addr(), &what);
        near.stop().unwrap();
        drop(front);
        back.stop().unwrap();
        let back = kcp_go::start_tunnel_server(origin.addr(), &theirs).unwrap();
        let front = client(back.addr(), &ours);
        carries(front.addr(), &what);
        front.stop().unwrap();
    }
}
