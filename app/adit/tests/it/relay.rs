//! Relays with identity headers (SIP023): adit's in front of other servers, others in front of adit's,
//! chains of relays, and how bytes pass through adit's.

mod splice;

use std::env;
use std::net::SocketAddr;

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{
    ClientSetup, IDENTITY_KEYS, IdentityKeys, MethodKey, RunningPeer, ServedUsers, ShadowsocksPeer,
    percent_encode,
};
use adit_interop::traffic::{self, CloseBehavior, ForwarderEntry};
use adit_interop::{AditProcess, TempFolder};

use crate::setup::{UsersFile, relay, server, start};

/// One position of a path; `None` is adit.
type Who = Option<ShadowsocksPeer>;

/// The process at a position.
#[derive(Debug)]
enum Place {
    Ours(AditProcess),
    Theirs(RunningPeer),
}

impl Place {
    fn addr(&self) -> SocketAddr {
        match self {
            Self::Ours(adit) => adit.addr(),
            Self::Theirs(peer) => peer.addr(),
        }
    }

    fn stop(self) {
        if let Self::Ours(adit) = self {
            adit.stop().unwrap();
        }
    }
}

/// Returns the method with the key of the relay at this position of a path.
fn relay_at(ring: &IdentityKeys, place: usize) -> MethodKey {
    let key = ring.relays[place];
    MethodKey { key, ..ring.method }
}

/// Tests a user of a server behind relays, with streams and datagrams.
fn bytes_pass(ring: &IdentityKeys, client: Who, relays: &[Who], at_end: Who) {
    let (origin, method) = (OriginServer::start().unwrap(), ring.method);
    let mut running = vec![match at_end {
        None => Place::Ours(UsersFile::new(&ring.users).serve(method)),
        Some(peer) => Place::Theirs(
            peer.start_server_for(method, ServedUsers::Users(&ring.users))
                .unwrap(),
        ),
    }];
    let mut keys = vec![ring.users[1].1, method.key];
    for (place, who) in relays.iter().enumerate().rev() {
        let own = relay_at(ring, place);
        let last = running.last().map(Place::addr);
        let next = [(last.unwrap(), *keys.last().unwrap())];
        running.push(match who {
            None => Place::Ours(relay(own, &next)),
            Some(peer) => Place::Theirs(
                peer.start_server_for(own, ServedUsers::Relay(&next))
                    .unwrap(),
            ),
        });
        keys.push(own.key);
    }
    keys.reverse();
    let first = running.last().map(Place::addr);
    let entry = ClientSetup::new(method, &keys, first.unwrap());
    running.push(match client {
        None => {
            let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
            Place::Ours(start(&["run", &target, &entry.url()]))
        }
        Some(peer) => Place::Theirs(peer.start_forwarder_for(&entry, origin.addr()).unwrap()),
    });
    let ends = [relays, &[at_end]].concat().into_iter().flatten();
    let ends = ends.map(|peer| peer.server_close_behavior(method));
    let ends = ends.chain(client.map(|peer| peer.client_close_behavior(method)));
    let (at, ends) = (
        running.last().map(Place::addr),
        ends.fold(CloseBehavior::Independent, CloseBehavior::combine_with),
    );
    traffic::check_streams(ends, || traffic::connect_directly(at.unwrap())).unwrap();
    traffic::check_datagrams(&ForwarderEntry::open(at.unwrap()).unwrap()).unwrap();
    running.into_iter().rev().for_each(Place::stop);
}

const OURS: Who = None;
const SING_BOX: Who = Some(ShadowsocksPeer::SingBox);
const GO: Who = Some(ShadowsocksPeer::Go);
const XRAY: Who = Some(ShadowsocksPeer::Xray);
const RUST: Who = Some(ShadowsocksPeer::Rust);

macro_rules! relay_tests {
    ($($name:ident: $client:ident, [$($relay:ident),+], $server:ident;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn aes_128() {
                bytes_pass(&IDENTITY_KEYS[0], $client, &[$($relay),+], $server);
            }

            #[test]
            fn aes_256() {
                bytes_pass(&IDENTITY_KEYS[1], $client, &[$($relay),+], $server);
            }
        })+
    };
}

relay_tests! {
    ours: OURS, [OURS], OURS;
    two_of_ours: OURS, [OURS, OURS], OURS;
    to_sing_box: OURS, [OURS], SING_BOX;
    to_go: OURS, [OURS], GO;
    to_xray: OURS, [OURS], XRAY;
    from_sing_box: SING_BOX, [OURS], OURS;
    from_go: GO, [OURS], OURS;
    from_xray: XRAY, [OURS], OURS;
    through_sing_box: OURS, [SING_BOX], OURS;
    through_xray: OURS, [XRAY], OURS;
    through_sing_box_then_ours: OURS, [SING_BOX, OURS], OURS;
    through_ours_then_sing_box: OURS, [OURS, SING_BOX], OURS;
    between_sing_boxes: SING_BOX, [OURS, OURS], SING_BOX;
}

/// shadowsocks-rust takes long to build: `cargo xtask test --all` builds and tests it.
#[test]
fn shadowsocks_rust() {
    if env::var_os("ADIT_ALL_PEERS").is_none() {
        return;
    }
    for ring in &IDENTITY_KEYS {
        bytes_pass(ring, OURS, &[OURS], RUST);
        // It writes one identity header before its key, so the server behind it has one key.
        let (origin, own) = (OriginServer::start().unwrap(), ring.method);
        let back = server(own);
        let front = relay(relay_at(ring, 0), &[(back.addr(), own.key)]);
        let keys = [ring.relays[0], own.key];
        let client = ClientSetup::new(own, &keys, front.addr());
        let theirs = ShadowsocksPeer::Rust
            .start_forwarder_for(&client, origin.addr())
            .unwrap();
        traffic::check_streams(CloseBehavior::Independent, || {
            traffic::connect_directly(theirs.addr())
        })
        .unwrap();
        traffic::check_datagrams(&ForwarderEntry::open(theirs.addr()).unwrap()).unwrap();
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// Several servers behind one relay: the key selects one. The documented form.
#[test]
fn the_key_chooses_the_server() {
    for ring in &IDENTITY_KEYS {
        let folder = TempFolder::new("relay").unwrap();
        let (name, own) = (ring.method.name, ring.relays[0]);
        let key = |key| MethodKey { key, ..ring.method };
        let ends: Vec<(OriginServer, AditProcess, &str)> = ring
            .users
            .iter()
            .map(|(_, secret)| (OriginServer::start().unwrap(), server(key(secret)), *secret))
            .collect();
        let next: Vec<String> = ends
            .iter()
            .map(|(_, back, psk)| {
                let port = back.addr().port();
                format!(r#"{{"server":"127.0.0.1","port":{port},"psk":"{psk}","name":"n{port}"}}"#)
            })
            .collect();
        let file = folder
            .write_file("relay.json", format!("[{}]", next.join(",")))
            .unwrap();
        let front = format!("ss://{name}:{own}@127.0.0.1:0?relay=@{}", file.display());
        let front = start(&["run", &front]);
        for (origin, _, secret) in &ends {
            let hop = format!("ss://{name}:{own}:{secret}@{}", front.addr());
            let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
            let entry = start(&["run", &target, &hop]);
            traffic::check_one_byte(traffic::connect_directly(entry.addr()).unwrap()).unwrap();
            traffic::check_datagrams(&ForwarderEntry::open(entry.addr()).unwrap()).unwrap();
            entry.stop().unwrap();
        }
        // The servers do not depend on the relay: each also serves directly.
        let (origin, back, secret) = &ends[0];
        let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
        let hop = format!("ss://{name}:{}@{}", percent_encode(secret), back.addr());
        let entry = start(&["run", &target, &hop]);
        traffic::check_one_byte(traffic::connect_directly(entry.addr()).unwrap()).unwrap();
        entry.stop().unwrap();
        front.stop().unwrap();
        for (_, back, _) in ends {
            back.stop().unwrap();
        }
    }
}
