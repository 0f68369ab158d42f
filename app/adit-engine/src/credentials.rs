//! User names and passwords, compared in constant time.

use adit_config::Login;
use adit_crypto::{ct_eq, keyed_hash};
use adit_net::ambient::SystemChance;
use adit_wire::Entropy;

/// The users of a proxy listener.
///
/// Only keyed digests are kept. Every attempt is compared with every user: neither the time nor
/// the order of look-ups tells whether a name exists.
pub(crate) struct Credentials {
    key: [u8; 32],
    digests: Vec<[u8; 32]>,
}

impl Credentials {
    pub(crate) fn new(users: &[Login]) -> Self {
        let mut key = [0; 32];
        SystemChance.fill(&mut key);
        let digests = users
            .iter()
            .map(|l| digest(&key, l.user.as_bytes(), l.password.expose().as_bytes()))
            .collect();
        Self { key, digests }
    }

    fn known(&self, user: &[u8], password: &[u8]) -> bool {
        let attempt = digest(&self.key, user, password);
        self.digests
            .iter()
            .fold(false, |found, d| found | ct_eq(d, &attempt))
    }
}

fn digest(key: &[u8; 32], user: &[u8], password: &[u8]) -> [u8; 32] {
    let mut pair = Vec::with_capacity(16 + user.len() + password.len());
    for part in [user, password] {
        pair.extend_from_slice(&(part.len() as u64).to_le_bytes());
        pair.extend_from_slice(part);
    }
    keyed_hash(key, &pair)
}

impl adit_socks::Credentials for Credentials {
    fn required(&self) -> bool {
        !self.digests.is_empty()
    }
    fn check(&self, user: &[u8], password: &[u8]) -> bool {
        !adit_socks::Credentials::required(self) || self.known(user, password)
    }
}

impl adit_http::BasicAuth for Credentials {
    fn required(&self) -> bool {
        !self.digests.is_empty()
    }
    fn check(&self, user: &[u8], password: &[u8]) -> bool {
        self.known(user, password)
    }
}
