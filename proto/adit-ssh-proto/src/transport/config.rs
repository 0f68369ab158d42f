//! Transport settings chosen by the application.

use core::time::Duration;

use crate::algorithm::{AlgorithmPreferences, Cipher, KeyAlgorithm};

/// Minimum re-key interval in bytes: below it, one exchange's own bytes would trigger the next.
const LEAST_REKEY: u64 = 16 << 10;

/// Policy for peers without strict key exchange, the countermeasure to prefix truncation
/// (CVE-2023-48795).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StrictKex {
    /// Refuse them if the cipher is vulnerable to the attack, which is ChaCha20-Poly1305. A server
    /// that receives the client's KEXINIT in time chooses another cipher instead.
    WhenExposed,
    /// Always refuse them.
    Always,
    /// Never refuse them, and do not offer strict key exchange: for peers that cannot handle the
    /// marker.
    Never,
}

/// Settings of one transport. Sizes are in bytes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TransportConfig {
    /// Algorithms to offer, in order of preference.
    pub preferred: AlgorithmPreferences,
    /// Software name in the identification line, such as `adit_1.0`.
    pub software: String,
    /// Policy for strict key exchange.
    pub strict: StrictKex,
    /// Number of bytes in one direction after which a re-key starts. `None`: 32 GiB with AES, 1 GiB
    /// with ciphers of smaller blocks (RFC 4344 section 3.2). The minimum is 16 KiB.
    pub rekey_bytes: Option<u64>,
    /// Number of packets in one direction after which a re-key starts. Use at most 2³¹, since a
    /// sequence number must not repeat under one key.
    pub rekey_packets: u64,
    /// Time after which a re-key starts; `None` disables re-keys by time.
    pub rekey_after: Option<Duration>,
    /// Maximum duration of an exchange, not counting the decision about a host key.
    pub kex_timeout: Duration,
    /// Maximum size of the payloads queued until a key exchange ends.
    pub max_queue: usize,
    /// Size of unread output above which a PING ends the connection instead of being answered. The
    /// driver stops adding its own data long before.
    pub max_unsent: usize,
    /// Minimum modulus of an RSA host key that a client accepts, in bits.
    pub min_rsa_bits: usize,
    /// Algorithms that a server accepts from users, for `server-sig-algs` (RFC 8308 section 3.1).
    pub user_algorithms: Vec<KeyAlgorithm>,
}

impl TransportConfig {
    /// Creates the default settings, with `preferred`.
    #[must_use]
    pub fn new(preferred: AlgorithmPreferences) -> Self {
        Self {
            preferred,
            software: concat!("adit_", env!("CARGO_PKG_VERSION")).to_owned(),
            strict: StrictKex::WhenExposed,
            rekey_bytes: None,
            rekey_packets: 1 << 31,
            rekey_after: None,
            kex_timeout: Duration::from_secs(120),
            max_queue: 4 << 20,
            max_unsent: 16 << 20,
            min_rsa_bits: 2048,
            user_algorithms: KeyAlgorithm::ALL.to_vec(),
        }
    }

    /// Returns the number of bytes under `cipher` after which a re-key starts.
    pub(super) fn rekey_bytes_for(&self, cipher: Cipher) -> u64 {
        let usual = if cipher.block_len() < 16 {
            1 << 30
        } else {
            32 << 30
        };
        self.rekey_bytes.unwrap_or(usual).max(LEAST_REKEY)
    }
}
