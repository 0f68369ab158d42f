//! What each side wants.

use super::message::Method;
use crate::algorithm::KeyAlgorithm;
use crate::key::{AnyKey, RSA_MIN_BITS};

/// A key that a client may sign with, wherever its private half is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The key, or its certificate.
    pub key: AnyKey,
    /// Ask whether the server takes the key before it is asked to sign: for keys in agents,
    /// tokens and encrypted files, where a signature costs more than a round trip.
    pub query: bool,
}

/// A client's side.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The user.
    pub user: String,
    /// The methods that may be used, the first wanted one first.
    pub methods: Vec<Method>,
    /// The keys, in the order in which they are tried.
    pub identities: Vec<Identity>,
    /// How often a password is asked for, and as often for other questions.
    pub prompts: u32,
}

impl ClientConfig {
    /// As OpenSSH: keys, then questions, then a password; three times each.
    #[must_use]
    pub fn new(user: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            methods: vec![
                Method::PublicKey,
                Method::KeyboardInteractive,
                Method::Password,
            ],
            identities: Vec::new(),
            prompts: 3,
        }
    }
}

/// A server's side.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The methods that are offered.
    pub methods: Vec<Method>,
    /// Methods that have to succeed one after the other, of which one list is enough; without
    /// lists any offered method is.
    pub require: Vec<Vec<Method>>,
    /// Ask whether a user needs no authentication at all.
    pub ask_none: bool,
    /// Tries that may fail before the connection ends.
    pub tries: u32,
    /// Words for the user before anything else.
    pub banner: Option<String>,
    /// The algorithms of keys that are taken: the `server-sig-algs` of EXT_INFO.
    pub algorithms: Vec<KeyAlgorithm>,
    /// Bits of the shortest RSA modulus.
    pub rsa_min_bits: usize,
    /// Take `publickey-hostbound-v00@openssh.com`, which EXT_INFO has to announce.
    pub hostbound: bool,
}

impl Default for ServerConfig {
    /// Keys of every kind alone, six tries.
    fn default() -> Self {
        Self {
            methods: vec![Method::PublicKey],
            require: Vec::new(),
            ask_none: false,
            tries: 6,
            banner: None,
            algorithms: KeyAlgorithm::ALL.to_vec(),
            rsa_min_bits: RSA_MIN_BITS,
            hostbound: true,
        }
    }
}
