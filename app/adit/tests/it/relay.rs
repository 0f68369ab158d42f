//! Relays with identity headers (SIP023): adit's in front of other servers, others in front of adit's,
//! chains of relays, and how bytes pass through adit's.

mod splice;

use std::env;
use std::net::SocketAddr;

use adit_interop::origin::Origin;
use adit_interop::shadowsocks::{Client, KEYRINGS, Keyring, Method, Peer, Running, Serves, encode};
use adit_interop::traffic::{self, Ends, Entry};
use adit_interop::{Adit, Folder};

use crate::setup::{UsersFile, relay, server, start};

/// One position of a path; `None` is adit.
type Who = Option<Peer>;

/// The process at a position.
#[derive(Debug)]
enum Place {
    Ours(Adit),
    Theirs(Running),
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
fn relay_at(ring: &Keyring, place: usize) -> Method {
    let key = ring.relays[place];
    Method { key, ..ring.method }
}

/// Tests a user of a server behind relays, with streams and datagrams.
fn a_way(ring: &Keyring, client: Who, relays: &[Who], at_end: Who) {
    let (origin, method) = (Origin::start().unwrap(), ring.method);
    let mut running = vec![match at_end {
        None => Place::Ours(UsersFile::new(&ring.users).serve(method)),
        Some(peer) => Place::Theirs(peer.serve(method, Serves::Users(&ring.users)).unwrap()),
    }];
    let mut keys = vec![ring.users[1].1, method.key];
    for (place, who) in relays.iter().enumerate().rev() {
        let own = relay_at(ring, place);
        let last = running.last().map(Place::addr);
        let next = [(last.unwrap(), *keys.last().unwrap())];
        running.push(match who {
            None => Place::Ours(relay(own, &next)),
            Some(peer) => Place::Theirs(peer.serve(own, Serves::Relay(&next)).unwrap()),
        });
        keys.push(own.key);
    }
    keys.reverse();
    let first = running.last().map(Place::addr);
    let entry = Client::new(method, &keys, first.unwrap());
    running.push(match client {
        None => {
            let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
            Place::Ours(start(&["run", &target, &entry.url()]))
        }
        Some(peer) => Place::Theirs(peer.forward(&entry, origin.addr()).unwrap()),
    });
    let ends = [relays, &[at_end]].concat().into_iter().flatten();
    let ends = ends.map(|peer| peer.server_ends(method));
    let ends = ends.chain(client.map(|peer| peer.client_ends(method)));
    let (at, ends) = (
        running.last().map(Place::addr),
        ends.fold(Ends::Each, Ends::and),
    );
    traffic::streams(ends, || traffic::dial(at.unwrap())).unwrap();
    traffic::datagrams(&Entry::open(at.unwrap()).unwrap()).unwrap();
    running.into_iter().rev().for_each(Place::stop);
}

const OURS: Who = None;
const SING_BOX: Who = Some(Peer::SingBox);
const GO: Who = Some(Peer::Go);
const XRAY: Who = Some(Peer::Xray);
const RUST: Who = Some(Peer::Rust);

macro_rules! ways {
    ($($name:ident: $client:ident, [$($relay:ident),+], $server:ident;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn aes_128() {
                a_way(&KEYRINGS[0], $client, &[$($relay),+], $server);
            }

            #[test]
            fn aes_256() {
                a_way(&KEYRINGS[1], $client, &[$($relay),+], $server);
            }
        })+
    };
}

ways! {
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
    for ring in &KEYRINGS {
        a_way(ring, OURS, &[OURS], RUST);
        // It writes one identity header before its key, so the server behind it has one key.
        let (origin, own) = (Origin::start().unwrap(), ring.method);
        let back = server(own);
        let front = relay(relay_at(ring, 0), &[(back.addr(), own.key)]);
        let keys = [ring.relays[0], own.key];
        let client = Client::new(own, &keys, front.addr());
        let theirs = Peer::Rust.forward(&client, origin.addr()).unwrap();
        traffic::streams(Ends::Each, || traffic::dial(theirs.addr())).unwrap();
        traffic::datagrams(&Entry::open(theirs.addr()).unwrap()).unwrap();
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// Several servers behind one relay: the key selects one. The documented form.
#[test]
fn the_key_chooses_the_server() {
    for ring in &KEYRINGS {
        let folder = Folder::new("relay").unwrap();
        let (name, own) = (ring.method.name, ring.relays[0]);
        let key = |key| Method { key, ..ring.method };
        let ends: Vec<(Origin, Adit, &str)> = ring
            .users
            .iter()
            .map(|(_, secret)| (Origin::start().unwrap(), server(key(secret)), *secret))
            .collect();
        let next: Vec<String> = ends
            .iter()
            .map(|(_, back, psk)| {
                let port = back.addr().port();
                format!(r#"{{"server":"127.0.0.1","port":{port},"psk":"{psk}","name":"n{port}"}}"#)
            })
            .collect();
        let file = folder
            .write("relay.json", format!("[{}]", next.join(",")))
            .unwrap();
        let front = format!("ss://{name}:{own}@127.0.0.1:0?relay=@{}", file.display());
        let front = start(&["run", &front]);
        for (origin, _, secret) in &ends {
            let hop = format!("ss://{name}:{own}:{secret}@{}", front.addr());
            let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
            let entry = start(&["run", &target, &hop]);
            traffic::one_byte(traffic::dial(entry.addr()).unwrap()).unwrap();
            traffic::datagrams(&Entry::open(entry.addr()).unwrap()).unwrap();
            entry.stop().unwrap();
        }
        // The servers do not depend on the relay: each also serves directly.
        let (origin, back, secret) = &ends[0];
        let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
        let hop = format!("ss://{name}:{}@{}", encode(secret), back.addr());
        let entry = start(&["run", &target, &hop]);
        traffic::one_byte(traffic::dial(entry.addr()).unwrap()).unwrap();
        entry.stop().unwrap();
        front.stop().unwrap();
        for (_, back, _) in ends {
            back.stop().unwrap();
        }
    }
}
