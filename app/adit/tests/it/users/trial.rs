//! The AEAD edition cannot tell users apart by a header: a server tries their passwords.

use adit_interop::AditProcess;
use adit_interop::hostile_clients::Reaction;
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{
    AES_128, CHACHA20, ClientSetup, MethodKey, ShadowsocksPeer, XCHACHA20,
};
use adit_interop::traffic::{self, CloseBehavior, ForwarderEntry};

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
        let (origin, users) = (OriginServer::start().unwrap(), crowd(100));
        let users = lent(&users);
        let back = UsersFile::new(&users).serve(method);
        let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
        for (_, password) in [users[0], users[57], users[99]] {
            let hop = ClientSetup::new(method, &[password], back.addr()).url();
            let front = start(&["run", &target, &hop]);
            traffic::check_streams(CloseBehavior::Independent, || {
                traffic::connect_directly(front.addr())
            })
            .unwrap();
            traffic::check_datagrams(&ForwarderEntry::open(front.addr()).unwrap()).unwrap();
            front.stop().unwrap();
        }
        let before = origin.connection_count();
        let hop = ClientSetup::new(method, &["pass 100"], back.addr()).url();
        let front = start(&["run", &target, &hop]);
        assert_eq!(reaction(&front), Reaction::Silence);
        assert!(!echoes(&front));
        assert_eq!(origin.connection_count(), before);
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// Unmodified clients.
#[test]
fn from_their_clients() {
    for (peer, method) in [
        (ShadowsocksPeer::Libev, AES_128),
        (ShadowsocksPeer::SingBox, CHACHA20),
        (ShadowsocksPeer::Xray, XCHACHA20),
    ] {
        let (origin, users) = (OriginServer::start().unwrap(), crowd(100));
        let users = lent(&users);
        let back = UsersFile::new(&users).serve(method);
        let clients: Vec<_> = [users[31], users[98]]
            .iter()
            .map(|(_, password)| {
                let keys = [*password];
                let client = ClientSetup::new(method, &keys, back.addr());
                peer.start_forwarder_for(&client, origin.addr()).unwrap()
            })
            .collect();
        // In turn, so that each address has another user than before.
        for client in clients.iter().chain(&clients) {
            let ends = peer.client_close_behavior(method);
            traffic::check_streams(ends, || traffic::connect_directly(client.addr())).unwrap();
            traffic::check_datagrams(&ForwarderEntry::open(client.addr()).unwrap()).unwrap();
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
    let (origin, users) = (OriginServer::start().unwrap(), crowd(1024));
    let users = lent(&users);
    let method: MethodKey = AES_128;
    let mut back = UsersFile::new(&users).serve(method);
    let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
    let front = |password| {
        let hop = ClientSetup::new(method, &[password], back.addr()).url();
        start(&["run", &target, &hop])
    };
    let (one, another) = (front(users[700].1), front(users[1023].1));
    let mut cost = |fronts: [&AditProcess; 2]| {
        let before = back.process().cpu_ticks().unwrap();
        for turn in 0..CONNECTIONS {
            traffic::check_one_byte(traffic::connect_directly(fronts[turn % 2].addr()).unwrap())
                .unwrap();
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
