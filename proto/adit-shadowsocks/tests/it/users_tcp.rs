//! Many users over TCP: found by an identity header, or by trial.

use std::sync::Arc;

use adit_shadowsocks::relay::{RelayTable, TcpRelay};
use adit_shadowsocks::tcp::{ServerHandshake, client_codecs};
use adit_shadowsocks::{Edition, Key, KeyChain, MAX_IDENTITIES, Method, SaltPool, UserId, Users};
use adit_wire::codec_laws::{open_all, run_handshake, seal_all};
use adit_wire::{
    Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Open, ProtocolError,
};

use crate::support::{ALL_AT_ONCE, NOW, Outcome, Seeded, key, pool, serve, target};

const AES: [Method; 2] = [Method::Blake3Aes128Gcm, Method::Blake3Aes256Gcm];
const NAMES: [&str; 3] = ["alice", "bob", "carol"];
const MESSAGE: &[u8] = b"a first payload, then another";

pub(crate) fn secret(method: Method, n: u64) -> String {
    Key::generate(method, &mut Seeded(1000 + n)).1
}

/// Returns a server with three users behind [`key`], and the chain of each.
pub(crate) fn identified(method: Method) -> (Arc<Users>, Vec<KeyChain>) {
    let list = NAMES
        .iter()
        .zip(0..)
        .map(|(name, n)| (*name, secret(method, n)));
    let users = Users::with_identity_key(&key(method), list).unwrap();
    let chain = |n| {
        let own = Key::parse(method, &secret(method, n)).unwrap();
        KeyChain::new(vec![key(method)], own).unwrap()
    };
    (users, (0..3).map(chain).collect())
}

/// Returns the same for users who are found by trial.
pub(crate) fn trial(method: Method) -> (Arc<Users>, Vec<KeyChain>) {
    let list = NAMES
        .iter()
        .zip(0..)
        .map(|(name, n)| (*name, secret(method, n)));
    let users = Users::with_trial_keys(method, list).unwrap();
    let chain = |n| KeyChain::parse(method, &secret(method, n)).unwrap();
    (users, (0..3).map(chain).collect())
}

pub(crate) fn many() -> impl Iterator<Item = (Method, Arc<Users>, Vec<KeyChain>)> {
    Method::ALL.into_iter().filter_map(|method| {
        let (users, chains) = match method.edition() {
            Edition::Aead2022 if method.has_identities() => identified(method),
            Edition::Aead => trial(method),
            _ => return None,
        };
        Some((method, users, chains))
    })
}

fn server(users: &Arc<Users>, salts: &Arc<SaltPool>, seed: u64) -> ServerHandshake {
    ServerHandshake::new(users, Arc::new(NOW), salts.clone(), &mut Seeded(seed))
}

fn request(chain: &KeyChain, seed: u64) -> (Vec<u8>, impl Open + use<>) {
    let (mut seal, open) =
        client_codecs(chain, &target(), Arc::new(NOW), &mut Seeded(seed)).unwrap();
    (seal_all(&mut seal, MESSAGE, 15).unwrap(), open)
}

fn refusal(outcome: Outcome) -> ProtocolError {
    match outcome {
        Outcome::Refused(why) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn everyone_is_known_and_answered_with_the_own_key() {
    for (method, users, chains) in many() {
        let salts = pool();
        for (n, chain) in chains.iter().enumerate() {
            let (wire, mut open) = request(chain, n as u64);
            let outcome = serve(server(&users, &salts, 90 + n as u64), &wire, ALL_AT_ONCE);
            let Outcome::Open {
                mut accepted,
                plain,
                unread: 0,
                clean: true,
            } = outcome
            else {
                panic!("{method}: {outcome:?}");
            };
            assert_eq!((accepted.target.clone(), &plain[..]), (target(), MESSAGE));
            let user = accepted.user.clone().unwrap();
            assert_eq!(user.name(), NAMES[n]);
            assert!(users.still_has(user.id()));
            let down = seal_all(&mut accepted.seal, MESSAGE, 15).unwrap();
            assert_eq!(open_all(&mut open, &down, &[7]), Ok((MESSAGE.to_vec(), 0)));
            let (_, mut other) = request(&chains[(n + 1) % 3], n as u64);
            let stolen = open_all(&mut other, &down, ALL_AT_ONCE);
            assert_eq!(stolen, Err(ProtocolError::Unauthentic), "{method}");
        }
    }
}

#[test]
fn every_split_gives_the_same_and_every_cut_waits() {
    for (method, users, chains) in many() {
        let (wire, _) = request(&chains[1], 1);
        let two = (1..wire.len()).map(|at| vec![at, wire.len() - at]);
        for pieces in two.chain([vec![1], vec![2, 3], vec![17]]) {
            match serve(server(&users, &pool(), 2), &wire, &pieces) {
                Outcome::Open {
                    accepted,
                    plain,
                    unread: 0,
                    clean: true,
                } => {
                    let user = accepted.user.unwrap();
                    assert_eq!((user.name(), &plain[..]), ("bob", MESSAGE), "{method}");
                }
                other => panic!("{method} {pieces:?}: {other:?}"),
            }
        }
        for cut in 0..wire.len() {
            let outcome = serve(server(&users, &pool(), 2), &wire[..cut], ALL_AT_ONCE);
            assert!(
                matches!(outcome, Outcome::Waiting | Outcome::Open { .. }),
                "{method} {cut}"
            );
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    for (method, users, chains) in many() {
        let (wire, _) = request(&chains[2], 1);
        for bit in 0..wire.len() * 8 {
            let mut bad = wire.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            match serve(server(&users, &pool(), 2), &bad, ALL_AT_ONCE) {
                Outcome::Refused(_) => {}
                Outcome::Late(to) => assert_eq!(to, target()),
                other => panic!("{method} bit {bit}: {other:?}"),
            }
        }
    }
}

/// The handshake first waits for salt, identity header and fixed header together: one read
/// (SIP022).
#[test]
fn the_first_wait_is_for_all_that_is_judged() {
    for (method, users, _) in many() {
        let expected = match method.edition() {
            Edition::Aead2022 => method.key_len() + 16 + 27,
            _ => method.key_len() + 18,
        };
        for held in [0, 1, 16, expected - 1] {
            let mut bytes = vec![7; held];
            let mut core = server(&users, &pool(), 1);
            let step = core.step(
                &mut HandshakeInput::new(&mut bytes),
                &mut HandshakeOutput::new(&mut Vec::new()),
            );
            match step {
                Ok(HandshakeProgress::NeedMore { total }) => {
                    assert_eq!(total, expected, "{method} {held}");
                }
                other => panic!("{method} {held}: {other:?}"),
            }
        }
        // With that many bytes the handshake decides.
        let all = vec![7; expected];
        let outcome = serve(server(&users, &pool(), 1), &all, ALL_AT_ONCE);
        assert_eq!(refusal(outcome), ProtocolError::Unauthentic, "{method}");
    }
}

#[test]
fn strangers_are_unauthentic_and_burn_no_salt() {
    for (method, users, chains) in many() {
        let salts = pool();
        let stranger = Key::parse(method, &secret(method, 77)).unwrap();
        let mut strange = vec![KeyChain::from(stranger.clone())];
        if method.has_identities() {
            // An unknown key behind the right identity key; a user's key behind a wrong one; a
            // user's key without identity headers, and with one too many; the identity key itself.
            let user = chains[0].user_key().clone();
            let with = |identities, key| KeyChain::new(identities, key).unwrap();
            strange.push(with(vec![key(method)], stranger.clone()));
            strange.push(with(vec![stranger.clone()], user.clone()));
            strange.push(user.clone().into());
            strange.push(with(vec![key(method), user.clone()], user));
            strange.push(key(method).into());
            strange.push(with(vec![key(method)], key(method)));
        }
        for chain in &strange {
            let (wire, _) = request(chain, 1);
            let refused = serve(server(&users, &salts, 2), &wire, ALL_AT_ONCE);
            assert_eq!(refusal(refused), ProtocolError::Unauthentic, "{method}");
        }
        let (wire, _) = request(&chains[0], 1);
        let good = serve(server(&users, &salts, 3), &wire, ALL_AT_ONCE);
        assert!(matches!(good, Outcome::Open { .. }), "{method}");
        let again = serve(server(&users, &salts, 4), &wire, ALL_AT_ONCE);
        assert_eq!(refusal(again), ProtocolError::Replayed, "{method}");
        let nobody = match method.edition() {
            Edition::Aead => Users::with_trial_keys(method, [("", ""); 0]),
            _ => Users::with_identity_key(&key(method), [("", ""); 0]),
        };
        let refused = serve(server(&nobody.unwrap(), &pool(), 5), &wire, ALL_AT_ONCE);
        assert_eq!(refusal(refused), ProtocolError::Unauthentic, "{method}");
    }
}

#[test]
fn a_hint_changes_nothing_but_the_order() {
    for (method, users, chains) in many() {
        let ids: Vec<UserId> = users.iter().map(|user| user.id()).collect();
        let gone = trial(Method::XChaCha20IetfPoly1305)
            .0
            .iter()
            .next()
            .unwrap()
            .id();
        for hint in ids.into_iter().chain([gone]).map(Some).chain([None]) {
            let (wire, _) = request(&chains[1], 1);
            let core = server(&users, &pool(), 2).with_hint(hint);
            match serve(core, &wire, ALL_AT_ONCE) {
                Outcome::Open { accepted, .. } => {
                    assert_eq!(accepted.user.unwrap().name(), "bob", "{method}");
                }
                other => panic!("{method}: {other:?}"),
            }
        }
    }
}

/// SEC-R6 with one pool for all users.
#[test]
fn reflections_are_refused() {
    for (method, users, chains) in many() {
        let salts = pool();
        let (up, mut open) = request(&chains[1], 1);
        let Outcome::Open { mut accepted, .. } = serve(server(&users, &salts, 2), &up, ALL_AT_ONCE)
        else {
            panic!("{method}");
        };
        let down = seal_all(&mut accepted.seal, b"\x01\x7f\0\0\x01\0\x50 hello", 100).unwrap();
        let back = serve(server(&users, &salts, 3), &down, ALL_AT_ONCE);
        assert!(
            matches!(back, Outcome::Refused(_) | Outcome::Waiting),
            "{method}"
        );
        assert!(open_all(&mut open, &up, ALL_AT_ONCE).is_err(), "{method}");
    }
}

/// The maximum number of identity headers: three relays, then a server with users.
#[test]
fn the_longest_chain() {
    for method in AES {
        let hop = |n| Key::generate(method, &mut Seeded(50 + n)).0;
        let hops: Vec<Key> = (0..MAX_IDENTITIES as u64).map(hop).collect();
        let own = Key::parse(method, &secret(method, 1)).unwrap();
        let chain = KeyChain::new(hops.clone(), own).unwrap();
        let (mut wire, mut open) = request(&chain, 1);
        for pair in hops.windows(2) {
            let table = RelayTable::new(&pair[0], [pair[1].clone()]).unwrap();
            let relayed = run_handshake(&mut TcpRelay::new(&table), &wire, &[5]).unwrap();
            let (HandshakeProgress::Done(relayed), _, rest) = relayed else {
                panic!("{method}: not relayed");
            };
            wire = [relayed.head, rest].concat();
        }
        let list = [("bob", secret(method, 1))];
        let users = Users::with_identity_key(hops.last().unwrap(), list).unwrap();
        match serve(server(&users, &pool(), 2), &wire, ALL_AT_ONCE) {
            Outcome::Open {
                mut accepted,
                plain,
                ..
            } => {
                assert_eq!(plain, MESSAGE);
                let down = seal_all(&mut accepted.seal, MESSAGE, 9).unwrap();
                assert_eq!(open_all(&mut open, &down, &[3]), Ok((MESSAGE.to_vec(), 0)));
            }
            other => panic!("{method}: {other:?}"),
        }
    }
}
