//! russh.

use adit_interop::ssh_peer::SshPeer;
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use super::Suite;

// With other methods its server does not report its key exchanges.
const SUITES: [Suite; 2] = [
    (
        Cipher::ChaCha20Poly1305,
        Mac::HmacSha256,
        Kex::GroupExchange,
    ),
    (Cipher::Aes256Ctr, Mac::HmacSha512Etm, Kex::GroupExchange),
];

tests_of_both!(SshPeer::Russh, "russh_0.65", (21, 10), SUITES);
