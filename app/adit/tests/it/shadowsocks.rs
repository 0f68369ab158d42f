//! Every method with every implementation, each in both roles, with streams and datagrams.

use std::env;
use std::process::Command;
use std::time::Duration;

use adit_interop::iperf::{self, Iperf};
use adit_interop::origin::Origin;
use adit_interop::shadowsocks::{
    AES_128, AES_192, AES_256, BLAKE3_AES_128, BLAKE3_AES_256, BLAKE3_CHACHA20, CHACHA20, METHODS,
    Method, Peer, XCHACHA20,
};
use adit_interop::socks::{self, Association, Dest, Flow};
use adit_interop::traffic::{self, Ends, Entry};
use adit_interop::{Adit, tool};

use crate::setup::{ALLOW, bin, server, start};

/// A client of adit with a peer's server.
pub(crate) fn to_their_server(peer: Peer, method: Method) {
    let (origin, iperf) = (Origin::start().unwrap(), Iperf::start().unwrap());
    let theirs = peer.server(method).unwrap();
    let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    let measured = format!("tcp://127.0.0.1:0/{}", iperf.addr());
    let url = method.url(theirs.addr());
    let args = [
        "run", "-L", &target, "-F", &url, "-L", &measured, "-F", &url,
    ];
    let ours = Adit::start_with(&bin(), &args, 2).unwrap();
    traffic::streams(peer.server_ends(method), || traffic::dial(ours.addr())).unwrap();
    traffic::datagrams(&Entry::open(ours.addr()).unwrap()).unwrap();
    iperf::down(ours.addrs()[1]).unwrap();
    ours.stop().unwrap();
}

/// A peer's client with a server of adit.
pub(crate) fn from_their_client(peer: Peer, method: Method) {
    let origin = Origin::start().unwrap();
    let ours = server(method);
    let theirs = peer.forwarder(method, ours.addr(), origin.addr()).unwrap();
    traffic::streams(peer.client_ends(method), || traffic::dial(theirs.addr())).unwrap();
    traffic::datagrams(&Entry::open(theirs.addr()).unwrap()).unwrap();
    let iperf = Iperf::start().unwrap();
    let theirs = peer.forwarder(method, ours.addr(), iperf.addr()).unwrap();
    iperf::down(theirs.addr()).unwrap();
    ours.stop().unwrap();
}

macro_rules! matrix {
    ($($name:ident: $peer:ident, $method:ident;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn to_their_server() {
                super::to_their_server(Peer::$peer, $method);
            }

            #[test]
            fn from_their_client() {
                super::from_their_client(Peer::$peer, $method);
            }
        })+

        /// Every pair of a peer and a supported method is tested.
        #[test]
        fn the_matrix_is_complete() {
            let tried = [$((Peer::$peer, $method)),+];
            for peer in [Peer::SingBox, Peer::Libev, Peer::Go, Peer::Xray] {
                for method in METHODS {
                    assert_eq!(tried.contains(&(peer, method)), peer.speaks(method), "{peer:?} {method:?}");
                }
            }
        }
    };
}

matrix! {
    sing_box_2022_aes_128: SingBox, BLAKE3_AES_128;
    sing_box_2022_aes_256: SingBox, BLAKE3_AES_256;
    sing_box_2022_chacha20: SingBox, BLAKE3_CHACHA20;
    sing_box_aes_128: SingBox, AES_128;
    sing_box_aes_192: SingBox, AES_192;
    sing_box_aes_256: SingBox, AES_256;
    sing_box_chacha20: SingBox, CHACHA20;
    sing_box_xchacha20: SingBox, XCHACHA20;
    libev_aes_128: Libev, AES_128;
    libev_aes_192: Libev, AES_192;
    libev_aes_256: Libev, AES_256;
    libev_chacha20: Libev, CHACHA20;
    libev_xchacha20: Libev, XCHACHA20;
    go_2022_aes_128: Go, BLAKE3_AES_128;
    go_2022_aes_256: Go, BLAKE3_AES_256;
    xray_2022_aes_128: Xray, BLAKE3_AES_128;
    xray_2022_aes_256: Xray, BLAKE3_AES_256;
    xray_2022_chacha20: Xray, BLAKE3_CHACHA20;
    xray_aes_128: Xray, AES_128;
    xray_aes_256: Xray, AES_256;
    xray_chacha20: Xray, CHACHA20;
    xray_xchacha20: Xray, XCHACHA20;
}

/// shadowsocks-rust takes long to build: `cargo xtask test --all` builds and tests it.
#[test]
fn shadowsocks_rust_every_method() {
    if env::var_os("ADIT_ALL_PEERS").is_none() {
        return;
    }
    for method in METHODS
        .into_iter()
        .filter(|method| Peer::Rust.speaks(*method))
    {
        to_their_server(Peer::Rust, method);
        from_their_client(Peer::Rust, method);
    }
}

#[test]
fn ours_to_ours_every_method() {
    for method in METHODS {
        let origin = Origin::start().unwrap();
        let back = server(method);
        let front = start(&["run", "mixed://127.0.0.1:0", &method.url(back.addr())]);
        let to = Dest::Addr(origin.addr());
        traffic::streams(Ends::Each, || socks::connect(front.addr(), None, &to)).unwrap();
        let association = Association::open(front.addr(), None).unwrap();
        traffic::datagrams(&Flow::new(&association, to, origin.addr())).unwrap();
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// The peer's SOCKS port sends names unresolved: adit's server resolves them.
#[test]
fn a_name_from_their_client() {
    let origin = Origin::start().unwrap();
    let ours = server(CHACHA20);
    let theirs = Peer::Libev.socks(CHACHA20, ours.addr()).unwrap();
    let name = Dest::name("localhost", origin.addr().port());
    traffic::one_byte(socks::connect(theirs.addr(), None, &name).unwrap()).unwrap();
    ours.stop().unwrap();
}

/// The spellings of one URL: a raw key, a percent-encoded one, the SIP002 link.
#[test]
fn every_spelling_of_a_url_is_understood() {
    let origin = Origin::start().unwrap();
    let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
    let back = server(BLAKE3_AES_128);
    let raw = format!(
        "ss://{}:{}@{}",
        BLAKE3_AES_128.name,
        BLAKE3_AES_128.key,
        back.addr()
    );
    for hop in [
        raw,
        format!("{}#my%20server", BLAKE3_AES_128.url(back.addr())),
    ] {
        let front = start(&["run", &target, &hop]);
        traffic::one_byte(traffic::dial(front.addr()).unwrap()).unwrap();
        front.stop().unwrap();
    }
    back.stop().unwrap();
    // aes-256-gcm:barfoo!
    let link = "YWVzLTI1Ni1nY206YmFyZm9vIQ";
    let back = start(&["run", &format!("ss://{link}@127.0.0.1:0?{ALLOW}")]);
    let plain = Method {
        name: "aes-256-gcm",
        key: "barfoo!",
    };
    let theirs = Peer::Libev
        .forwarder(plain, back.addr(), origin.addr())
        .unwrap();
    traffic::one_byte(traffic::dial(theirs.addr()).unwrap()).unwrap();
    let front = start(&["run", &target, &format!("ss://{link}@{}#name", back.addr())]);
    traffic::one_byte(traffic::dial(front.addr()).unwrap()).unwrap();
    front.stop().unwrap();
    back.stop().unwrap();
}

/// Returns true if one byte is echoed soon: a refused client gets no answer.
fn echoes(front: &Adit) -> bool {
    let stream = traffic::dial(front.addr()).unwrap();
    let soon = Duration::from_secs(4);
    stream.set_read_timeout(Some(soon)).unwrap();
    traffic::one_byte(stream).is_ok()
}

#[test]
fn a_wrong_key_opens_nothing() {
    let origin = Origin::start().unwrap();
    let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    for (method, key) in [
        (BLAKE3_AES_128, "AAECAwQFBgcICQoLDA0ODw=="),
        (AES_256, "another"),
    ] {
        let back = server(method);
        let wrong = Method { key, ..method };
        let front = start(&["run", &target, &wrong.url(back.addr())]);
        assert!(!echoes(&front));
        assert_eq!(origin.connections(), 0);
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// A server refuses private targets unless it is configured otherwise (SEC-E2).
#[test]
fn a_server_keeps_its_clients_out_of_private_networks() {
    let origin = Origin::start().unwrap();
    let back = start(&["run", &BLAKE3_AES_128.url("127.0.0.1:0".parse().unwrap())]);
    let front = start(&[
        "run",
        "mixed://127.0.0.1:0",
        &BLAKE3_AES_128.url(back.addr()),
    ]);
    for to in [
        Dest::Addr(origin.addr()),
        Dest::name("localhost", origin.addr().port()),
    ] {
        let tried = socks::connect(front.addr(), None, &to).and_then(traffic::one_byte);
        assert!(tried.is_err(), "{to:?}");
    }
    let association = Association::open(front.addr(), None).unwrap();
    association
        .send_to(&Dest::Addr(origin.addr()), b"x")
        .unwrap();
    assert!(association.recv_within(Duration::from_millis(500)).is_err());
    assert_eq!(origin.connections(), 0);
    front.stop().unwrap();
    back.stop().unwrap();
}

/// The 2022 edition has a time stamp: up to 30 s in either direction are accepted, more is refused (SEC-R1).
#[test]
fn a_wrong_clock_is_refused_beyond_thirty_seconds() {
    let origin = Origin::start().unwrap();
    let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    // Nothing between -45 s and now: a server that has just started refuses requests from before its
    // start (SEC-R3).
    for (method, offset, fine) in [
        (BLAKE3_AES_128, "+20s", true),
        (BLAKE3_AES_128, "+45s", false),
        (BLAKE3_AES_128, "-45s", false),
        (AES_128, "-3600s", true),
    ] {
        let back = server(method);
        let mut command = Command::new(bin());
        command.args(["run", &target, &method.url(back.addr())]);
        tool::shift_clock(&mut command, offset).unwrap();
        let front = Adit::launch(command, 1).unwrap();
        assert_eq!(echoes(&front), fine, "{} {offset}", method.name);
        front.stop().unwrap();
        back.stop().unwrap();
    }
}
