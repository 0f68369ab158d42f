//! golang.org/x/crypto/ssh.

use adit_interop::ssh_peer::SshPeer;
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use super::Suite;

const SUITES: [Suite; 3] = [
    (
        Cipher::ChaCha20Poly1305,
        Mac::HmacSha256,
        Kex::MlKem768X25519,
    ),
    (Cipher::Aes256Gcm, Mac::HmacSha256, Kex::GroupExchange),
    (Cipher::Aes128Ctr, Mac::HmacSha1, Kex::EcdhP521),
];

tests_of_both!(SshPeer::Go, "SSH-2.0-Go", (18, 9), SUITES);

/// x/crypto supports them in each direction at both ends.
mod own_types {
    use super::*;
    use crate::peers::own_types;

    #[tokio::test]
    async fn with_its_client() {
        own_types::with_their_client(SshPeer::Go).await;
    }

    #[tokio::test]
    async fn with_its_server() {
        own_types::with_their_server(SshPeer::Go, true).await;
    }
}
