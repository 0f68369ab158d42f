//! libssh2 1.10, the peer without strict key exchange: its ciphers do not need it.

use adit_interop::ssh_peer::SshPeer;
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use super::{Suite, their_client};

const SUITES: [Suite; 2] = [
    (Cipher::Aes128Ctr, Mac::HmacSha256, Kex::Curve25519),
    (Cipher::Aes256Ctr, Mac::HmacSha512, Kex::GroupExchange),
];

client_tests!(SshPeer::Libssh2, "libssh2_1.", strict: false, (9, 9), SUITES);

#[tokio::test]
async fn it_is_refused_where_strict_key_exchange_is_a_must() {
    their_client::is_refused_as_not_strict(SshPeer::Libssh2).await;
}
