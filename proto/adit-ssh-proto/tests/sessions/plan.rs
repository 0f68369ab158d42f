//! Which sessions are recorded.

use adit_ssh_proto::Role;
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

/// A session with OpenSSH.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The recording's name.
    pub(crate) name: &'static str,
    /// Which side is ours.
    pub(crate) role: Role,
    pub(crate) kex: Kex,
    pub(crate) cipher: Cipher,
    /// Offered beside ciphers with a tag of their own too.
    pub(crate) mac: Mac,
    /// Who wants new keys in the middle.
    pub(crate) rekey: Rekey,
}

/// Who wants new keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rekey {
    /// We do.
    Ours,
    /// OpenSSH does, after [`Plan::LIMIT`] octets.
    Theirs,
}

impl Plan {
    /// Octets under one key that OpenSSH allows.
    #[allow(dead_code, reason = "for the recorder alone")]
    pub(crate) const LIMIT: usize = 2048;

    /// All of them.
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
