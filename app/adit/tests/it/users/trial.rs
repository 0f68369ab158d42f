//! The AEAD edition cannot tell users apart by a header: a server tries their passwords.

use adit_interop::Adit;
use adit_interop::hostile::Reaction;
use adit_interop::origin::Origin;
use adit_interop::shadowsocks::{AES_128, CHACHA20, Client, Method, Peer, XCHACHA20};
use adit_interop::traffic::{self, Ends, Entry};

use super::{echoes, reaction};
use crate::setup::{UsersFile, start};

/// Returns the names and passwords of this many users.
fn crowd(count: usize) -> Vec<(String, String)> {
    (0..count)
        .map(|n| (format!("user {n}"), format!("pass {n} @:/%?#é")))
        .collect()
}

fn lent(users: &[(String, String)]) -> Vec<(&str, &str)> {
    users
        .iter()
        .map(|(name, password)| (&**name, &**password))
        .collect()
}

#[test]
fn three_of_a_hundred_pass() {
    for method in [AES_128, CHACHA20] {
        let (origin, users) = (Origin::start().unwrap(), crowd(100));
        let users = lent(&users);
        let back = UsersFile::new(&users).serve(method);
        let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
        for (_, password) in [users[0], users[57], users[99]] {
            let hop = Client::new(method, &[password], back.addr()).url();
            let front = start(&["run", &target, &hop]);
            traffic::streams(Ends::Each, || traffic::dial(front.addr())).unwrap();
            traffic::datagrams(&Entry::open(front.addr()).unwrap()).unwrap();
            front.stop().unwrap();
        }
        let before = origin.connections();
        let hop = Client::new(method, &["pass 100"], back.addr()).url();
        let front = start(&["run", &target, &hop]);
        assert_eq!(reaction(&front), Reaction::Silence);
        assert!(!echoes(&front));
        assert_eq!(origin.connections(), before);
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// Unmodified clients.
#[test]
fn from_their_clients() {
    for (peer, method) in [
        (Peer::Libev, AES_128),
        (Peer::SingBox, CHACHA20),
        (Peer::Xray, XCHACHA20),
    ] {
        let (origin, users) = (Origin::start().unwrap(), crowd(100));
        let users = lent(&users);
        let back = UsersFile::new(&users).serve(method);
        let clients: Vec<_> = [users[31], users[98]]
            .iter()
            .map(|(_, password)| {
                let keys = [*password];
                let client = Client::new(method, &keys, back.addr());
                peer.forward(&client, origin.addr()).unwrap()
            })
            .collect();
        // In turn, so that each address has another user than before.
        for client in clients.iter().chain(&clients) {
            let ends = peer.client_ends(method);
            traffic::streams(ends, || traffic::dial(client.addr())).unwrap();
            traffic::datagrams(&Entry::open(client.addr()).unwrap()).unwrap();
        }
        back.stop().unwrap();
    }
}

/// Number of connections in each of the two cases that are compared.
const CONNECTIONS: usize = 200;

/// The user who was last seen at an address is tried first for it, which costs as much as with one
/// key, where other users cost a thousand trials.
#[test]
fn an_address_is_remembered() {
    let (origin, users) = (Origin::start().unwrap(), crowd(1024));
    let users = lent(&users);
    let method: Method = AES_128;
    let mut back = UsersFile::new(&users).serve(method);
    let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
    let front = |password| {
        let hop = Client::new(method, &[password], back.addr()).url();
        start(&["run", &target, &hop])
    };
    let (one, another) = (front(users[700].1), front(users[1023].1));
    let mut cost = |fronts: [&Adit; 2]| {
        let before = back.process().cpu_ticks().unwrap();
        for turn in 0..CONNECTIONS {
            traffic::one_byte(traffic::dial(fronts[turn % 2].addr()).unwrap()).unwrap();
        }
        back.process().cpu_ticks().unwrap() - before
    };
    let in_turn = cost([&one, &another]);
    let alone = cost([&another, &another]);
    assert!(
        alone * 2 < in_turn,
        "{alone} ticks with, {in_turn} without a memory"
    );
    one.stop().unwrap();
    another.stop().unwrap();
    back.stop().unwrap();
}
