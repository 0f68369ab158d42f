//! libssh2 1.10, the peer without strict key exchange: its ciphers are not those that need it.

use adit_interop::sshpeer::SshPeer;
use adit_ssh::algorithm::{Cipher, Kex, Mac};

use super::Suite;

const SUITES: [Suite; 2] = [
    (Cipher::Aes128Ctr, Mac::HmacSha256, Kex::Curve25519),
    (Cipher::Aes256Ctr, Mac::HmacSha512, Kex::GroupExchange),
];

client_tests!(SshPeer::Libssh2, "libssh2_1.", strict: false, (9, 9), SUITES);
