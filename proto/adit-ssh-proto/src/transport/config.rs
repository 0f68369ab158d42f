//! What the application decides about a transport.

use core::time::Duration;

use crate::algorithm::{Cipher, KeyAlgorithm, Preferred};

/// Below this an exchange would be due by the bytes of the one before.
const LEAST_REKEY: u64 = 16 << 10;

/// When a peer without strict key exchange (the answer to prefix truncation, CVE-2023-48795) is
/// refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrictKex {
    /// When the cipher is one that the attack works on, ChaCha20-Poly1305. A server that sees the
    /// client's lists in time chooses another one instead.
    WhenExposed,
    /// Always.
    Always,
    /// Never, and it is not offered either: for peers that stumble over the marker.
    Never,
}

/// Settings of one transport. Sizes are octets.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is offered, and in which order.
    pub preferred: Preferred,
    /// Our name in the identification line, such as `adit_1.0`.
    pub software: String,
    /// Strict key exchange.
    pub strict: StrictKex,
    /// Bytes in one direction after which new keys are made; `None`: 32 GiB with AES, 1 GiB with
    /// ciphers of smaller blocks (RFC 4344 section 3.2). Never less than 16 KiB.
    pub rekey_bytes: Option<u64>,
    /// Packets in one direction after which new keys are made; at most 2³¹ is sensible, since a
    /// sequence number must not come twice under one key.
    pub rekey_packets: u64,
    /// Time after which new keys are made; `None`: never for that reason.
    pub rekey_after: Option<Duration>,
    /// How long an exchange may take, the answer about a host key not counted.
    pub kex_timeout: Duration,
    /// What may wait for the end of a key exchange, in payloads.
    pub max_queue: usize,
    /// Output that the peer has not taken, above which its pings are no longer answered but end
    /// the connection. The driver stops feeding own data long before.
    pub max_unsent: usize,
    /// The least modulus of an RSA host key that a client accepts, in bits.
    pub min_rsa_bits: usize,
    /// What a server accepts from users, for `server-sig-algs` (RFC 8308 section 3.1).
    pub user_algorithms: Vec<KeyAlgorithm>,
}

impl Config {
    /// The defaults, with `preferred`.
    #[must_use]
    pub fn new(preferred: Preferred) -> Self {
        Self {
            preferred,
            software: concat!("adit_", env!("CARGO_PKG_VERSION")).to_owned(),
            strict: StrictKex::WhenExposed,
            rekey_bytes: None,
            rekey_packets: 1 << 31,
            rekey_after: None,
            kex_timeout: Duration::from_mins(2),
            max_queue: 4 << 20,
            max_unsent: 16 << 20,
            min_rsa_bits: 2048,
            user_algorithms: KeyAlgorithm::ALL.to_vec(),
        }
    }

    /// After how many bytes under `cipher` new keys are made.
    pub(super) fn bytes_with(&self, cipher: Cipher) -> u64 {
        let usual = if cipher.block_len() < 16 {
            1 << 30
        } else {
            32 << 30
        };
        self.rekey_bytes.unwrap_or(usual).max(LEAST_REKEY)
    }
}
