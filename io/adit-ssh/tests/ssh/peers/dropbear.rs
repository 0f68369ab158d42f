//! dropbear's server; its client is tested with the `adit` command.

use adit_interop::dropbear::Dropbear;
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use super::Suite;
use super::their_server::{self, Far};

const SUITES: [Suite; 2] = [
    (Cipher::ChaCha20Poly1305, Mac::HmacSha256, Kex::Curve25519),
    (Cipher::Aes128Ctr, Mac::HmacSha1, Kex::EcdhP256),
];

#[tokio::test]
async fn has_every_algorithm() {
    let theirs = Dropbear::algorithms();
    their_server::has_every_algorithm(Far::dropbear(), &theirs, (5, 6), "dropbear_").await;
}

#[tokio::test]
async fn takes_new_keys() {
    their_server::takes_new_keys(Far::dropbear(), &SUITES).await;
}

#[tokio::test]
async fn serves_programs_terminals_connections_and_old_clients() {
    let far = Far::dropbear();
    their_server::runs_programs(&far).await;
    their_server::gives_a_terminal(&far, false).await;
    their_server::connects(&far).await;
    their_server::serves_clients_that_are_not_strict(&far).await;
}
