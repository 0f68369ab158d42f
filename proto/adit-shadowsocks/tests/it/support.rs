//! Keys, random numbers and whole conversations for the tests.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use adit_shadowsocks::tcp::{
    AcceptedRequest, ClientOpen, ClientSeal, ServerHandshake, client_codecs,
};
use adit_shadowsocks::udp::{ClientSession, ServerOpener};
use adit_shadowsocks::{Edition, Key, Method, RestartPolicy, SaltPool, Users};
use adit_wire::codec_laws::{open_all, run_handshake};
use adit_wire::{Entropy, HandshakeProgress, Open, ProtocolError, Target, UnixTime};

pub(crate) const NOW: UnixTime = UnixTime(1_700_000_000);
pub(crate) const ALL_AT_ONCE: &[usize] = &[usize::MAX];

/// Returns bytes that look random and are the same in every run.
pub(crate) struct Seeded(pub(crate) u64);

impl Entropy for Seeded {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            *byte = (mixed >> 56) as u8;
        }
    }
}

/// Returns the keys of the tests; some take milliseconds to expand.
static KEYS: LazyLock<HashMap<Method, Key>> = LazyLock::new(|| {
    let key = |method: Method| Key::generate(method, &mut Seeded(method.key_len() as u64)).0;
    Method::ALL.map(|method| (method, key(method))).into()
});

pub(crate) fn key(method: Method) -> Key {
    KEYS[&method].clone()
}

/// True if the method detects a changed byte.
pub(crate) fn authentic(method: Method) -> bool {
    matches!(method.edition(), Edition::Aead | Edition::Aead2022)
}

/// Returns the methods that detect a changed byte.
pub(crate) fn keyed() -> impl Iterator<Item = Method> {
    Method::ALL.into_iter().filter(|m| authentic(*m))
}

/// Returns these methods, `none`, and one legacy method for each length of IV.
pub(crate) fn some() -> Vec<Method> {
    let mut lengths = Vec::new();
    let mut first = |len| {
        (!lengths.contains(&len))
            .then(|| lengths.push(len))
            .is_some()
    };
    Method::ALL
        .into_iter()
        .filter(|m| !m.is_legacy() || first(m.salt_len()))
        .collect()
}

pub(crate) fn target() -> Target {
    "example.com:443".parse().unwrap()
}

pub(crate) fn pool() -> Arc<SaltPool> {
    Arc::new(SaltPool::new([5; 16], UnixTime(0), RestartPolicy::Strict))
}

pub(crate) fn new_client(key: &Key, seed: u64) -> (ClientSeal, ClientOpen) {
    client_codecs(
        &key.clone().into(),
        &target(),
        Arc::new(NOW),
        &mut Seeded(seed),
    )
    .unwrap()
}

pub(crate) fn new_server(
    key: &Key,
    salts: &Arc<SaltPool>,
    now: UnixTime,
    seed: u64,
) -> ServerHandshake {
    let users = Users::with_single_key(key.clone());
    ServerHandshake::new(&users, Arc::new(now), salts.clone(), &mut Seeded(seed))
}

pub(crate) fn new_session(key: &Key, entropy: &mut dyn Entropy) -> ClientSession {
    ClientSession::new(&key.clone().into(), entropy)
}

pub(crate) fn new_opener(key: &Key) -> ServerOpener {
    ServerOpener::new(&Users::with_single_key(key.clone()))
}

/// The outcome of a request stream.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The handshake waits for more bytes.
    Waiting,
    /// Accepted; the plaintext so far, the number of unread wire bytes, and true if the stream may
    /// end here.
    Open {
        accepted: Box<AcceptedRequest>,
        plain: Vec<u8>,
        unread: usize,
        clean: bool,
    },
    /// Accepted, then an error after the request.
    Late(Target),
    /// Refused.
    Refused(ProtocolError),
}

/// Feeds `wire` to a server in chunks of the given sizes.
pub(crate) fn serve(mut server: ServerHandshake, wire: &[u8], pieces: &[usize]) -> Outcome {
    let (step, sent, rest) = match run_handshake(&mut server, wire, pieces) {
        Ok(dialogue) => dialogue,
        Err((why, sent)) => {
            assert!(sent.is_empty());
            return Outcome::Refused(why);
        }
    };
    assert!(sent.is_empty());
    let HandshakeProgress::Done(mut accepted) = step else {
        return Outcome::Waiting;
    };
    match open_all(&mut accepted.open, &rest, pieces) {
        Err(_) => Outcome::Late(accepted.target),
        Ok((more, unread)) => {
            let plain = [&accepted.first[..], &more].concat();
            Outcome::Open {
                clean: accepted.open.is_at_boundary(unread),
                accepted: Box::new(accepted),
                plain,
                unread,
            }
        }
    }
}
