//! Many users over UDP: ownership of sessions, and changes of users.

use std::sync::Arc;

use adit_shadowsocks::relay::{RelayTable, relay_packet};
use adit_shadowsocks::udp::{ClientSession, HEADROOM, IncomingPacket, ServerOpener, TAILROOM};
use adit_shadowsocks::{Edition, Key, KeyChain, MAX_IDENTITIES, Method, Users};
use adit_wire::{FixedEntropy, ProtocolError, Target};

use crate::support::{NOW, Seeded, key, target};
use crate::users_tcp::{identified, many, secret, trial};

/// Returns a session with the id `id`, in editions with sessions.
fn session(chain: &KeyChain, id: u64) -> ClientSession {
    ClientSession::new(chain, &mut FixedEntropy::new(id.to_be_bytes()))
}

fn request(client: &mut ClientSession, to: &Target) -> Vec<u8> {
    let mut buf = [0; HEADROOM + 4 + TAILROOM];
    buf[HEADROOM..HEADROOM + 4].copy_from_slice(b"data");
    let at = HEADROOM..HEADROOM + 4;
    let range = client.seal(&mut buf, at, to, NOW, &mut Seeded(8)).unwrap();
    buf[range].to_vec()
}

fn open(server: &mut ServerOpener, wire: &[u8]) -> Result<IncomingPacket, ProtocolError> {
    let mut wire = wire.to_vec();
    let incoming = server.open_packet(&mut wire, NOW)?;
    assert_eq!(&wire[incoming.payload.clone()], b"data");
    Ok(incoming)
}

fn name(users: &Users, incoming: &IncomingPacket) -> String {
    users.find_user(incoming.user.unwrap()).unwrap().to_string()
}

#[test]
fn everyone_is_known_and_answered_with_the_own_key() {
    for (method, users, chains) in many() {
        let mut server = ServerOpener::new(&users);
        for (n, chain) in chains.iter().enumerate() {
            let mut client = session(chain, 10 + n as u64);
            for first in [true, false] {
                let incoming = open(&mut server, &request(&mut client, &target())).unwrap();
                assert_eq!(name(&users, &incoming), ["alice", "bob", "carol"][n]);
                let user = incoming.user.unwrap();
                let mut sealer = match method.edition() {
                    Edition::Aead2022 => {
                        assert_eq!(incoming.new, first);
                        assert!(server.create_sealer_for(user, &mut Seeded(1)).is_none());
                        server
                            .create_sealer(incoming.session, &mut Seeded(1))
                            .unwrap()
                    }
                    _ => {
                        assert!(server.create_sealer(None, &mut Seeded(1)).is_none());
                        server.create_sealer_for(user, &mut Seeded(1)).unwrap()
                    }
                };
                let mut buf = [7; HEADROOM + 4 + TAILROOM];
                let at = HEADROOM..HEADROOM + 4;
                let range = sealer
                    .seal(&mut buf, at, &target(), NOW, &mut Seeded(8))
                    .unwrap();
                let mut answer = buf[range].to_vec();
                let mut other = session(&chains[(n + 1) % 3], 10 + n as u64);
                assert!(other.open(&mut answer.clone(), NOW).is_err(), "{method}");
                if first {
                    assert!(client.open(&mut answer, NOW).is_ok(), "{method}");
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused() {
    for (method, users, chains) in many() {
        let mut server = ServerOpener::new(&users);
        let wire = request(&mut session(&chains[1], 5), &target());
        for bit in 0..wire.len() * 8 {
            let mut bad = wire.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let refused = server.open_packet(&mut bad, NOW);
            assert_eq!(
                refused,
                Err(ProtocolError::Unauthentic),
                "{method} bit {bit}"
            );
        }
        for cut in 0..wire.len() {
            let mut short = wire[..cut].to_vec();
            assert!(
                server.open_packet(&mut short, NOW).is_err(),
                "{method} {cut}"
            );
        }
        assert_eq!(server.session_count(), 0);
        assert!(open(&mut server, &wire).is_ok(), "{method}");
    }
}

/// Packets of another user with a session's id: valid by themselves, and without effect on the
/// session.
#[test]
fn a_session_belongs_to_who_opened_it() {
    for method in [Method::Blake3Aes128Gcm, Method::Blake3Aes256Gcm] {
        let (users, chains) = identified(method);
        let mut server = ServerOpener::new(&users);
        let mut alice = session(&chains[0], 42);
        let mut bob = session(&chains[1], 42);
        let opened = open(&mut server, &request(&mut alice, &target())).unwrap();
        assert_eq!(opened.session, Some(42));
        for _ in 0..3 {
            let refused = open(&mut server, &request(&mut bob, &target()));
            let why = ProtocolError::Malformed("packet: session belongs to another user");
            assert_eq!(refused, Err(why));
        }
        // Alice may still use the packet ids that bob used.
        for _ in 0..3 {
            let incoming = open(&mut server, &request(&mut alice, &target())).unwrap();
            assert_eq!(
                (name(&users, &incoming).as_str(), incoming.new),
                ("alice", false)
            );
        }
        assert_eq!(server.session_count(), 1);
        server.forget_session(42, NOW);
        let incoming = open(&mut server, &request(&mut bob, &target())).unwrap();
        assert_eq!(
            (name(&users, &incoming).as_str(), incoming.new),
            ("bob", true)
        );
    }
}

#[test]
fn users_come_and_go() {
    let method = Method::Blake3Aes128Gcm;
    let (users, chains) = identified(method);
    let mut server = ServerOpener::new(&users);
    let mut clients: Vec<_> = (0..3).map(|n| session(&chains[n], 7 + n as u64)).collect();
    let first: Vec<_> = clients.iter_mut().map(|c| request(c, &target())).collect();
    for wire in &first {
        open(&mut server, wire).unwrap();
    }
    // Alice stays, bob has another key, carol is gone, dave is new.
    let list = [("dave", 3), ("bob", 4), ("alice", 0)];
    let list = list.map(|(name, n)| (name, secret(method, n)));
    let later = Users::with_identity_key(&key(method), list).unwrap();
    let mut gone = server.set_users(later.clone());
    gone.sort_unstable();
    assert_eq!(gone, [8, 9]);
    assert_eq!(
        open(&mut server, &first[0]),
        Err(ProtocolError::Replayed),
        "alice's window is kept"
    );
    let incoming = open(&mut server, &request(&mut clients[0], &target())).unwrap();
    assert_eq!(
        (name(&later, &incoming).as_str(), incoming.new),
        ("alice", false)
    );
    for client in &mut clients[1..] {
        let refused = open(&mut server, &request(client, &target()));
        assert_eq!(refused, Err(ProtocolError::Unauthentic));
    }
    let own = Key::parse(method, &secret(method, 4)).unwrap();
    let chain = KeyChain::new(vec![key(method)], own).unwrap();
    let incoming = open(&mut server, &request(&mut session(&chain, 8), &target())).unwrap();
    assert_eq!(
        (name(&later, &incoming).as_str(), incoming.new),
        ("bob", true)
    );
    // From many users to the single key, and to another key.
    let single = |n| Users::with_single_key(Key::parse(method, &secret(method, n)).unwrap());
    let mut gone = server.set_users(single(0));
    gone.sort_unstable();
    assert_eq!(gone, [7, 8]);
    let plain = KeyChain::from(chains[0].user_key().clone());
    let incoming = open(&mut server, &request(&mut session(&plain, 11), &target())).unwrap();
    assert_eq!((incoming.user, incoming.session), (None, Some(11)));
    assert!(server.set_users(single(0)).is_empty(), "the same key");
    assert_eq!(server.set_users(single(1)), [11]);
}

#[test]
fn a_hint_changes_nothing_but_the_order() {
    for method in [Method::Aes128Gcm, Method::ChaCha20IetfPoly1305] {
        let (users, chains) = trial(method);
        let mut server = ServerOpener::new(&users);
        for (chain, expected) in chains.iter().zip(users.iter()) {
            let hints = users.iter().map(|user| Some(user.id())).chain([None]);
            for hint in hints {
                let mut wire = request(&mut session(chain, 1), &target());
                let incoming = server.open_hinted(&mut wire, hint, NOW).unwrap();
                assert_eq!(incoming.user, Some(expected.id()));
                assert_eq!(&wire[incoming.payload], b"data");
            }
        }
    }
}

/// Four identity headers and the longest address: the headroom suffices, and one byte less does
/// not.
#[test]
fn the_longest_chain() {
    let longest: Target = format!("{}:443", "n".repeat(255)).parse().unwrap();
    for method in [Method::Blake3Aes128Gcm, Method::Blake3Aes256Gcm] {
        let hop = |n| Key::generate(method, &mut Seeded(50 + n)).0;
        let hops: Vec<Key> = (0..MAX_IDENTITIES as u64).map(hop).collect();
        let own = Key::parse(method, &secret(method, 1)).unwrap();
        let chain = KeyChain::new(hops.clone(), own).unwrap();
        let mut client = session(&chain, 3);
        let mut wire = request(&mut client, &longest);
        assert_eq!(wire.len(), 16 + 64 + 11 + longest.addr_len() + 4 + 16);
        let front = wire.len() - 20;
        let mut tight = vec![0; front + 20];
        let mut seal = |at| client.seal(&mut tight, at, &longest, NOW, &mut Seeded(8));
        assert!(seal(front - 1..front + 3).is_err());
        assert_eq!(seal(front..front + 4), Ok(0..front + 20));
        for pair in hops.windows(2) {
            let table = RelayTable::new(&pair[0], [pair[1].clone()]).unwrap();
            let to = relay_packet(&table, &mut wire).unwrap();
            assert_eq!(to.session, 3);
            wire = wire[to.packet].to_vec();
        }
        let list = [("bob", secret(method, 1))];
        let users: Arc<Users> = Users::with_identity_key(hops.last().unwrap(), list).unwrap();
        let incoming = open(&mut ServerOpener::new(&users), &wire).unwrap();
        assert_eq!(
            (name(&users, &incoming).as_str(), incoming.target),
            ("bob", longest.clone())
        );
    }
}
