//! Every method with every implementation, each in both roles, with streams and datagrams.

use std::env;
use std::process::Command;
use std::time::Duration;

use adit_interop::iperf::IperfServer;
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{
    AES_128, AES_192, AES_256, BLAKE3_AES_128, BLAKE3_AES_256, BLAKE3_CHACHA20, CHACHA20, METHODS,
    MethodKey, ShadowsocksPeer, XCHACHA20,
};
use adit_interop::socks_client::{self, Destination, UdpAssociation, UdpFlow};
use adit_interop::traffic::{self, CloseBehavior, ForwarderEntry};
use adit_interop::{AditProcess, external_tools};

use crate::setup::{ALLOW, bin, server, start};

/// A client of adit with a peer's server.
pub(crate) fn to_their_server(peer: ShadowsocksPeer, method: MethodKey) {
    let (origin, mut iperf) = (
        OriginServer::start().unwrap(),
        IperfServer::start().unwrap(),
    );
    let theirs = peer.start_server(method).unwrap();
    let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    let measured = format!("tcp://127.0.0.1:0/{}", iperf.addr());
    let url = method.url(theirs.addr());
    let args = [
        "run", "-L", &target, "-F", &url, "-L", &measured, "-F", &url,
    ];
    let ours = AditProcess::start_with(&bin(), &args, 2).unwrap();
    traffic::check_streams(peer.server_close_behavior(method), || {
        traffic::connect_directly(ours.addr())
    })
    .unwrap();
    traffic::check_datagrams(&ForwarderEntry::open(ours.addr()).unwrap()).unwrap();
    iperf.download_megabyte(ours.addrs()[1]).unwrap();
    ours.stop().unwrap();
}

/// A peer's client with a server of adit.
pub(crate) fn from_their_client(peer: ShadowsocksPeer, method: MethodKey) {
    let origin = OriginServer::start().unwrap();
    let ours = server(method);
    let theirs = peer
        .start_forwarder(method, ours.addr(), origin.addr())
        .unwrap();
    traffic::check_streams(peer.client_close_behavior(method), || {
        traffic::connect_directly(theirs.addr())
    })
    .unwrap();
    traffic::check_datagrams(&ForwarderEntry::open(theirs.addr()).unwrap()).unwrap();
    let mut iperf = IperfServer::start().unwrap();
    let theirs = peer
        .start_forwarder(method, ours.addr(), iperf.addr())
        .unwrap();
    iperf.download_megabyte(theirs.addr()).unwrap();
    ours.stop().unwrap();
}

macro_rules! matrix {
    ($($name:ident: $peer:ident, $method:ident;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn to_their_server() {
                super::to_their_server(ShadowsocksPeer::$peer, $method);
            }

            #[test]
            fn from_their_client() {
                super::from_their_client(ShadowsocksPeer::$peer, $method);
            }
        })+

        /// Every pair of a peer and a supported method is tested.
        #[test]
        fn the_matrix_is_complete() {
            let tried = [$((ShadowsocksPeer::$peer, $method)),+];
            for peer in [ShadowsocksPeer::SingBox, ShadowsocksPeer::Libev, ShadowsocksPeer::Go, ShadowsocksPeer::Xray] {
                for method in METHODS {
                    assert_eq!(tried.contains(&(peer, method)), peer.supports(method), "{peer:?} {method:?}");
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
        .filter(|method| ShadowsocksPeer::Rust.supports(*method))
    {
        to_their_server(ShadowsocksPeer::Rust, method);
        from_their_client(ShadowsocksPeer::Rust, method);
    }
}

#[test]
fn ours_to_ours_every_method() {
    for method in METHODS {
        let origin = OriginServer::start().unwrap();
        let back = server(method);
        let front = start(&["run", "mixed://127.0.0.1:0", &method.url(back.addr())]);
        let to = Destination::Addr(origin.addr());
        traffic::check_streams(CloseBehavior::Independent, || {
            socks_client::connect_through(front.addr(), None, &to)
        })
        .unwrap();
        let association = UdpAssociation::open(front.addr(), None).unwrap();
        traffic::check_datagrams(&UdpFlow::new(&association, to, origin.addr())).unwrap();
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// The peer's SOCKS port sends names unresolved: adit's server resolves them.
#[test]
fn a_name_from_their_client() {
    let origin = OriginServer::start().unwrap();
    let ours = server(CHACHA20);
    let theirs = ShadowsocksPeer::Libev
        .start_socks_client(CHACHA20, ours.addr())
        .unwrap();
    let name = Destination::from_name("localhost", origin.addr().port());
    traffic::check_one_byte(socks_client::connect_through(theirs.addr(), None, &name).unwrap())
        .unwrap();
    ours.stop().unwrap();
}

/// The spellings of one URL: a raw key, a percent-encoded one, the SIP002 link.
#[test]
fn every_spelling_of_a_url_is_understood() {
    let origin = OriginServer::start().unwrap();
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
        traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).unwrap();
        front.stop().unwrap();
    }
    back.stop().unwrap();
    // aes-256-gcm:barfoo!
    let link = "YWVzLTI1Ni1nY206YmFyZm9vIQ";
    let back = start(&["run", &format!("ss://{link}@127.0.0.1:0?{ALLOW}")]);
    let plain = MethodKey {
        name: "aes-256-gcm",
        key: "barfoo!",
    };
    let theirs = ShadowsocksPeer::Libev
        .start_forwarder(plain, back.addr(), origin.addr())
        .unwrap();
    traffic::check_one_byte(traffic::connect_directly(theirs.addr()).unwrap()).unwrap();
    let front = start(&["run", &target, &format!("ss://{link}@{}#name", back.addr())]);
    traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).unwrap();
    front.stop().unwrap();
    back.stop().unwrap();
}

/// Returns true if one byte is echoed soon: a refused client gets no answer.
fn echoes(front: &AditProcess) -> bool {
    let stream = traffic::connect_directly(front.addr()).unwrap();
    let soon = Duration::from_secs(4);
    stream.set_read_timeout(Some(soon)).unwrap();
    traffic::check_one_byte(stream).is_ok()
}

#[test]
fn a_wrong_key_opens_nothing() {
    let origin = OriginServer::start().unwrap();
    let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    for (method, key) in [
        (BLAKE3_AES_128, "AAECAwQFBgcICQoLDA0ODw=="),
        (AES_256, "another"),
    ] {
        let back = server(method);
        let wrong = MethodKey { key, ..method };
        let front = start(&["run", &target, &wrong.url(back.addr())]);
        assert!(!echoes(&front));
        assert_eq!(origin.connection_count(), 0);
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// A server refuses private targets unless it is configured otherwise (SEC-E2).
#[test]
fn a_server_keeps_its_clients_out_of_private_networks() {
    let origin = OriginServer::start().unwrap();
    let back = start(&["run", &BLAKE3_AES_128.url("127.0.0.1:0".parse().unwrap())]);
    let front = start(&[
        "run",
        "mixed://127.0.0.1:0",
        &BLAKE3_AES_128.url(back.addr()),
    ]);
    for to in [
        Destination::Addr(origin.addr()),
        Destination::from_name("localhost", origin.addr().port()),
    ] {
        let tried = socks_client::connect_through(front.addr(), None, &to)
            .and_then(traffic::check_one_byte);
        assert!(tried.is_err(), "{to:?}");
    }
    let association = UdpAssociation::open(front.addr(), None).unwrap();
    association
        .send_to(&Destination::Addr(origin.addr()), b"x")
        .unwrap();
    assert!(association.recv_within(Duration::from_millis(500)).is_err());
    assert_eq!(origin.connection_count(), 0);
    front.stop().unwrap();
    back.stop().unwrap();
}

/// The 2022 edition has a time stamp: up to 30 s in either direction are accepted, more is refused (SEC-R1).
#[test]
fn a_wrong_clock_is_refused_beyond_thirty_seconds() {
    let origin = OriginServer::start().unwrap();
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
        external_tools::shift_clock(&mut command, offset).unwrap();
        let front = AditProcess::start_command(command, 1).unwrap();
        assert_eq!(echoes(&front), fine, "{} {offset}", method.name);
        front.stop().unwrap();
        back.stop().unwrap();
    }
}
