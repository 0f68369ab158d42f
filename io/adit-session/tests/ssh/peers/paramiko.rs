//! paramiko, which has no ChaCha20.

use adit_interop::sshpeer::SshPeer;
use adit_ssh::algorithm::{Cipher, Kex, Mac};

use super::Suite;

const SUITES: [Suite; 2] = [
    (Cipher::Aes128Gcm, Mac::HmacSha256, Kex::MlKem768X25519),
    (Cipher::Aes192Ctr, Mac::HmacSha512Etm, Kex::GroupExchange),
];

tests_of_both!(SshPeer::Paramiko, "paramiko_5.1", (17, 8), SUITES);
