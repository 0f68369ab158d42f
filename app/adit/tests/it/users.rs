//! Several users on one port: with identity headers (SIP023), by trial, and changed at run time.

mod change;
mod trial;

use std::io::Write;
use std::time::Duration;
use std::{env, thread};

use adit_interop::hostile_clients::{self, Reaction};
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{
    ClientSetup, IDENTITY_KEYS, IdentityKeys, ServedUsers, ShadowsocksPeer,
};
use adit_interop::socks_client::{self, Destination, UdpAssociation, UdpFlow};
use adit_interop::traffic::{self, CloseBehavior, DatagramLink, ForwarderEntry};
use adit_interop::{AditProcess, TempFolder};

use crate::setup::{ALLOW, UsersFile, start};

/// A client of adit as one of the users of a peer's server.
fn to_their_server(peer: ShadowsocksPeer, ring: &IdentityKeys) {
    let origin = OriginServer::start().unwrap();
    let method = ring.method;
    let theirs = peer
        .start_server_for(method, ServedUsers::Users(&ring.users))
        .unwrap();
    let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    let keys = [method.key, ring.users[2].1];
    let ours = start(&[
        "run",
        &target,
        &ClientSetup::new(method, &keys, theirs.addr()).url(),
    ]);
    traffic::check_streams(peer.server_close_behavior(method), || {
        traffic::connect_directly(ours.addr())
    })
    .unwrap();
    traffic::check_datagrams(&ForwarderEntry::open(ours.addr()).unwrap()).unwrap();
    ours.stop().unwrap();
}

/// A peer's client as one of the users of a server of adit.
fn from_their_client(peer: ShadowsocksPeer, ring: &IdentityKeys) {
    let origin = OriginServer::start().unwrap();
    let method = ring.method;
    let ours = UsersFile::new(&ring.users).serve(method);
    let keys = [method.key, ring.users[1].1];
    let client = ClientSetup::new(method, &keys, ours.addr());
    let theirs = peer.start_forwarder_for(&client, origin.addr()).unwrap();
    traffic::check_streams(peer.client_close_behavior(method), || {
        traffic::connect_directly(theirs.addr())
    })
    .unwrap();
    traffic::check_datagrams(&ForwarderEntry::open(theirs.addr()).unwrap()).unwrap();
    ours.stop().unwrap();
}

macro_rules! identity_headers {
    ($($name:ident: $peer:ident, $ring:literal;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn to_their_server() {
                super::to_their_server(ShadowsocksPeer::$peer, &IDENTITY_KEYS[$ring]);
            }

            #[test]
            fn from_their_client() {
                super::from_their_client(ShadowsocksPeer::$peer, &IDENTITY_KEYS[$ring]);
            }
        })+
    };
}

identity_headers! {
    sing_box_aes_128: SingBox, 0;
    sing_box_aes_256: SingBox, 1;
    go_aes_128: Go, 0;
    go_aes_256: Go, 1;
    xray_aes_128: Xray, 0;
    xray_aes_256: Xray, 1;
}

/// shadowsocks-rust takes long to build: `cargo xtask test --all` builds and tests it.
#[test]
fn shadowsocks_rust() {
    if env::var_os("ADIT_ALL_PEERS").is_none() {
        return;
    }
    for ring in &IDENTITY_KEYS {
        to_their_server(ShadowsocksPeer::Rust, ring);
        from_their_client(ShadowsocksPeer::Rust, ring);
    }
}

/// Returns the reaction to a client that writes through this entry. A refused client only sees silence,
/// which would last for half a minute.
fn reaction(entry: &AditProcess) -> Reaction {
    let mut stream = traffic::connect_directly(entry.addr()).unwrap();
    stream.write_all(b"ECHO\nx").unwrap();
    hostile_clients::watch_reaction(&mut stream, Duration::from_secs(1)).unwrap()
}

/// Returns true if a datagram through this entry is echoed.
fn echoes(entry: &AditProcess) -> bool {
    let entry = ForwarderEntry::open(entry.addr()).unwrap();
    entry.send(b"x").unwrap();
    entry.recv_within(Duration::from_secs(1)).is_ok()
}

/// The documented forms, with keys that are not percent-encoded.
#[test]
fn the_documented_forms() {
    for ring in &IDENTITY_KEYS {
        let folder = TempFolder::new("users").unwrap();
        let (name, own) = (ring.method.name, ring.method.key);
        let [(_, alice), (_, bob), (_, carol)] = ring.users;
        let [stranger, _] = ring.relays;
        let object = format!(r#"{{"alice":"{alice}","bob":"{bob}"}}"#);
        let array = format!(
            r#"[{{"name": "alice", "password": "{alice}"}}, {{"name": "bob", "password": "{bob}"}}]"#
        );
        let lines = format!("# two\nalice:{alice}\n\nbob:{bob}\n");
        for text in [object, array, lines] {
            let file = folder.write_file("users.json", text).unwrap();
            let users = format!("users=@{}", file.display());
            let back = format!("ss://{name}:{own}@127.0.0.1:0?{users}&{ALLOW}");
            let back = start(&["run", &back]);
            let at = back.addr();
            thread::scope(|scope| {
                for (keys, passes) in [
                    (format!("{own}:{alice}"), true),
                    (format!("{own}:{bob}"), true),
                    (format!("{own}:{carol}"), false),
                    (format!("{stranger}:{alice}"), false),
                    // Neither of the two keys alone belongs to a user.
                    (own.to_owned(), false),
                    (alice.to_owned(), false),
                ] {
                    scope.spawn(move || {
                        let origin = OriginServer::start().unwrap();
                        let hop = format!("ss://{name}:{keys}@{at}");
                        let entry = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
                        let front = start(&["run", &entry, &hop]);
                        let wanted = match passes {
                            true => Reaction::Answer(1),
                            false => Reaction::Silence,
                        };
                        assert_eq!(reaction(&front), wanted, "{hop}");
                        assert_eq!(echoes(&front), passes, "{hop}");
                        assert_eq!(origin.connection_count(), usize::from(passes), "{hop}");
                        front.stop().unwrap();
                    });
                }
            });
            back.stop().unwrap();
        }
    }
}

/// adit at both ends, with names and half closes, and several users at the same time.
#[test]
fn ours_to_ours() {
    for ring in &IDENTITY_KEYS {
        let (origin, method) = (OriginServer::start().unwrap(), ring.method);
        let back = UsersFile::new(&ring.users).serve(method);
        thread::scope(|scope| {
            for (_, key) in ring.users {
                let (origin, back) = (&origin, &back);
                scope.spawn(move || {
                    let hop = ClientSetup::new(method, &[method.key, key], back.addr()).url();
                    let front = start(&["run", "mixed://127.0.0.1:0", &hop]);
                    let to = Destination::from_name("localhost", origin.addr().port());
                    traffic::check_streams(CloseBehavior::Independent, || {
                        socks_client::connect_through(front.addr(), None, &to)
                    })
                    .unwrap();
                    let association = UdpAssociation::open(front.addr(), None).unwrap();
                    traffic::check_datagrams(&UdpFlow::new(&association, to, origin.addr()))
                        .unwrap();
                    front.stop().unwrap();
                });
            }
        });
        back.stop().unwrap();
    }
}
