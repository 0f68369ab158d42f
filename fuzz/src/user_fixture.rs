//! Three users of one server, found by an identity header (SIP023) or by trial.

use std::sync::{Arc, LazyLock};

use adit_shadowsocks::udp::{ClientSession, HEADROOM, TAILROOM};
use adit_shadowsocks::{Key, KeyChain, Method, Users};
use adit_wire::Target;

use crate::{NOW, SeededRng, ZeroEntropy};

/// Their names.
pub const USER_NAMES: [&str; 3] = ["alice", "bob", "carol"];

/// A server with users, and its users' keys.
#[derive(Debug)]
pub struct UserFixture {
    /// The server's list with only the users of a mask: bit 0 is the first of [`NAMES`].
    pub lists: [Arc<Users>; 8],
    /// The key chain of each user's client.
    pub chains: [KeyChain; 3],
    /// The identity key, if there is one.
    pub identity: Option<Key>,
}

static HEADER_FIXTURE: LazyLock<UserFixture> =
    LazyLock::new(|| UserFixture::new(Method::Blake3Aes128Gcm));
static TRIAL_FIXTURE: LazyLock<UserFixture> = LazyLock::new(|| UserFixture::new(Method::Aes128Gcm));

/// Returns a key that differs for each `seed`, with its text.
#[must_use]
pub fn generate_key(method: Method, seed: u64) -> (Key, String) {
    Key::generate(method, &mut SeededRng(seed))
}

impl UserFixture {
    /// Returns users behind an identity header or, if the lowest bit is set, found by trial.
    #[must_use]
    pub fn from_lowest_bit(byte: u8) -> &'static Self {
        if byte & 1 == 0 {
            &HEADER_FIXTURE
        } else {
            &TRIAL_FIXTURE
        }
    }

    fn new(method: Method) -> Self {
        let identity = method.has_identities().then(|| generate_key(method, 99).0);
        let users: [(Key, String); 3] = [1, 2, 3].map(|seed| generate_key(method, seed));
        let lists = core::array::from_fn(|mask| {
            let there = (0..3).filter(|n| mask & (1 << n) != 0);
            let there = there.map(|n: usize| (USER_NAMES[n], users[n].1.as_str()));
            let made = match &identity {
                Some(identity) => Users::with_identity_key(identity, there),
                None => Users::with_trial_keys(method, there),
            };
            made.expect("right users")
        });
        let chains = users.map(|(key, _)| {
            let identities = identity.iter().cloned().collect();
            KeyChain::new(identities, key).expect("right keys")
        });
        Self {
            lists,
            chains,
            identity,
        }
    }

    /// Returns the list of all users.
    #[must_use]
    pub const fn all_users(&self) -> &Arc<Users> {
        &self.lists[7]
    }
}

/// Returns the only target.
///
/// # Panics
/// Never.
#[must_use]
pub fn test_target() -> Target {
    "example.test:443".parse().expect("a target")
}

/// Seals a client's packet.
///
/// # Panics
/// Panics if the client refuses to seal it.
pub fn seal_packet(client: &mut ClientSession, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; HEADROOM];
    packet.extend_from_slice(payload);
    packet.resize(HEADROOM + payload.len() + TAILROOM, 0);
    let body = HEADROOM..HEADROOM + payload.len();
    let range = client.seal(&mut packet, body, &test_target(), NOW, &mut ZeroEntropy);
    packet[range.expect("sealed")].to_vec()
}
