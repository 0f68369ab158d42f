//! paramiko, which has no ChaCha20.

use adit_interop::ssh_peer::SshPeer;
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use super::Suite;

const SUITES: [Suite; 2] = [
    (Cipher::Aes128Gcm, Mac::HmacSha256, Kex::MlKem768X25519),
    (Cipher::Aes192Ctr, Mac::HmacSha512Etm, Kex::GroupExchange),
];

tests_of_both!(SshPeer::Paramiko, "paramiko_5.1", (17, 8), SUITES);

mod own_types {
    use super::*;
    use crate::peers::own_types;

    #[tokio::test]
    async fn with_its_client() {
        own_types::with_their_client(SshPeer::Paramiko).await;
    }

    #[tokio::test]
    async fn with_its_server() {
        own_types::with_their_server(SshPeer::Paramiko, false).await;
    }
}
