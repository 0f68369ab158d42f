//! Settings of both sides.

use super::message::AuthMethod;
use crate::algorithm::KeyAlgorithm;
use crate::key::{AnyKey, RSA_MIN_BITS};

/// A key that a client may sign with; its private half may be in a file, an agent or a security
/// key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientIdentity {
    /// Key or certificate.
    pub key: AnyKey,
    /// Query whether the server accepts the key before signing: for keys in agents, security keys
    /// and encrypted files, where a signature costs more than a round trip.
    pub query: bool,
}

impl ClientIdentity {
    /// Creates an identity that signs without a query.
    #[must_use]
    pub const fn new(key: AnyKey) -> Self {
        Self { key, query: false }
    }

    /// Sets whether the server is asked before a signature is made.
    #[must_use]
    pub const fn with_query(mut self, query: bool) -> Self {
        self.query = query;
        self
    }
}

/// Default of [`ServerAuthConfig::tries`], which is that of OpenSSH's `MaxAuthTries`.
pub const DEFAULT_TRIES: u32 = 6;

/// Settings of a client.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientAuthConfig {
    /// User name.
    pub user: String,
    /// Methods that may be used, most preferred first.
    pub methods: Vec<AuthMethod>,
    /// Keys, in the order in which they are tried.
    pub identities: Vec<ClientIdentity>,
    /// Maximum number of password prompts, and the same number of keyboard-interactive attempts.
    pub prompts: u32,
}

impl ClientAuthConfig {
    /// Creates OpenSSH's defaults: keys, then keyboard-interactive, then a password; three attempts
    /// each.
    #[must_use]
    pub fn new(user: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            methods: vec![
                AuthMethod::PublicKey,
                AuthMethod::KeyboardInteractive,
                AuthMethod::Password,
            ],
            identities: Vec::new(),
            prompts: 3,
        }
    }
}

/// Settings of a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerAuthConfig {
    /// Methods to offer.
    pub methods: Vec<AuthMethod>,
    /// Lists of methods that have to succeed in order; completing one list suffices. Without lists,
    /// any offered method suffices.
    pub require: Vec<Vec<AuthMethod>>,
    /// Ask the driver whether a user needs no authentication at all.
    pub ask_none: bool,
    /// Number of failed attempts that end the connection.
    pub tries: u32,
    /// Text for the user before anything else.
    pub banner: Option<String>,
    /// Accepted key algorithms: the `server-sig-algs` of EXT_INFO.
    pub algorithms: Vec<KeyAlgorithm>,
    /// Minimum size of an RSA modulus, in bits.
    pub rsa_min_bits: usize,
    /// Accept `publickey-hostbound-v00@openssh.com`, which EXT_INFO has to announce.
    pub hostbound: bool,
}

impl Default for ServerAuthConfig {
    /// Public keys of every type only, six attempts.
    fn default() -> Self {
        Self {
            methods: vec![AuthMethod::PublicKey],
            require: Vec::new(),
            ask_none: false,
            tries: DEFAULT_TRIES,
            banner: None,
            algorithms: KeyAlgorithm::ALL.to_vec(),
            rsa_min_bits: RSA_MIN_BITS,
            hostbound: true,
        }
    }
}
