//! The sessions that are recorded.

use adit_ssh_proto::Role;
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

/// A session with OpenSSH.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Name of the recording.
    pub(crate) name: &'static str,
    /// Role of the local side.
    pub(crate) role: Role,
    pub(crate) kex: Kex,
    pub(crate) cipher: Cipher,
    /// MACs to offer, even with ciphers that have their own tag.
    pub(crate) mac: Mac,
    /// Side that starts the re-key.
    pub(crate) rekey: Rekey,
}

/// Side that starts a re-key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rekey {
    /// The local side.
    Ours,
    /// OpenSSH, after [`Plan::LIMIT`] bytes.
    Theirs,
}

impl Plan {
    /// Number of bytes under one key that OpenSSH allows.
    #[allow(dead_code, reason = "for the recorder alone")]
    pub(crate) const LIMIT: usize = 2048;

    /// All plans.
    pub(crate) const ALL: [Self; 6] = [
        Self::of(
            "client-gcm",
            Role::Client,
            Kex::Curve25519,
            Cipher::Aes128Gcm,
            Rekey::Ours,
        ),
        Self::of(
            "client-chacha",
            Role::Client,
            Kex::Sntrup761X25519OpenSsh,
            Cipher::ChaCha20Poly1305,
            Rekey::Theirs,
        ),
        Self::of(
            "client-ctr-umac",
            Role::Client,
            Kex::EcdhP256,
            Cipher::Aes128Ctr,
            Rekey::Ours,
        ),
        Self::of(
            "server-gcm",
            Role::Server,
            Kex::Curve25519,
            Cipher::Aes128Gcm,
            Rekey::Theirs,
        ),
        Self::of(
            "server-chacha",
            Role::Server,
            Kex::Sntrup761X25519OpenSsh,
            Cipher::ChaCha20Poly1305,
            Rekey::Ours,
        ),
        Self::of(
            "server-ctr-umac",
            Role::Server,
            Kex::EcdhP521,
            Cipher::Aes128Ctr,
            Rekey::Theirs,
        ),
    ];

    const fn of(name: &'static str, role: Role, kex: Kex, cipher: Cipher, rekey: Rekey) -> Self {
        Self {
            name,
            role,
            kex,
            cipher,
            mac: Mac::Umac64Etm,
            rekey,
        }
    }
}
