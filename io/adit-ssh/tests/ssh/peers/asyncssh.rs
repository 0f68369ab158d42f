//! asyncssh: the only one besides OpenSSH with all four UMACs, and one with ML-KEM.

use adit_interop::ssh_peer::SshPeer;
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use super::Suite;

const SUITES: [Suite; 3] = [
    (Cipher::Aes128Ctr, Mac::Umac64Etm, Kex::MlKem768X25519),
    (Cipher::Aes256Ctr, Mac::Umac128, Kex::EcdhP384),
    (
        Cipher::ChaCha20Poly1305,
        Mac::HmacSha256,
        Kex::GroupExchange,
    ),
];

tests_of_both!(SshPeer::Asyncssh, "AsyncSSH_2.24", (33, 10), SUITES);
