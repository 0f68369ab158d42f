//! Implementations other than OpenSSH, at either end: one module for each, and the shared tests here.

use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

/// Tests of another client with adit's server.
macro_rules! client_tests {
    ($peer:expr, $name:literal, strict: $strict:literal, $counts:expr, $suites:expr) => {
        mod its_client {
            use super::*;
            use crate::peers::their_client;

            #[tokio::test]
            async fn has_every_algorithm() {
                their_client::has_every_algorithm($peer, $counts, ($name, $strict)).await;
            }

            #[tokio::test]
            async fn takes_new_keys() {
                their_client::takes_new_keys($peer, &$suites).await;
            }

            #[tokio::test]
            async fn has_a_terminal_and_a_connection() {
                their_client::has_a_terminal_and_a_connection($peer).await;
            }
        }
    };
}

/// Tests of another server with adit's client, and of its client.
macro_rules! tests_of_both {
    ($peer:expr, $name:literal, $counts:expr, $suites:expr) => {
        client_tests!($peer, $name, strict: true, $counts, $suites);

        #[tokio::test]
        async fn its_client_makes_new_keys() {
            crate::peers::their_client::makes_new_keys($peer, &$suites).await;
        }

        mod its_server {
            use super::*;
            use crate::peers::their_server::{self, Far};

            #[tokio::test]
            async fn has_every_algorithm() {
                let (far, theirs) = (Far::start($peer, None), $peer.algorithms().unwrap());
                their_server::has_every_algorithm(far, &theirs, $counts, $name).await;
            }

            #[tokio::test]
            async fn takes_new_keys() {
                their_server::takes_new_keys(Far::start($peer, None), &$suites).await;
            }

            #[tokio::test]
            async fn makes_new_keys() {
                their_server::makes_new_keys($peer, &$suites).await;
            }

            #[tokio::test]
            async fn serves_programs_terminals_connections_and_old_clients() {
                let far = Far::start($peer, None);
                their_server::runs_programs(&far).await;
                their_server::gives_a_terminal(&far, true).await;
                their_server::connects(&far).await;
    their_server::serves_clients_that_are_not_strict(&far).await;
            }
        }
    };
}

mod asyncssh;
mod dropbear;
mod libssh2;
pub(crate) mod own_types;
mod paramiko;
mod russh;
mod their_client;
mod their_server;
mod xcrypto;

/// The algorithms of a bulk transfer.
type Suite = (Cipher, Mac, Kex);

/// Size of a bulk transfer, in bytes, in each direction at once.
const MUCH: usize = 8 << 20;
/// Number of bytes after which keys are renewed during the transfer.
const RENEWED: u64 = 1 << 20;
/// Minimum number of key exchanges in such a transfer, including the first. While a slow machine
/// computes keys, much data is in flight that counts for the same keys.
const EXCHANGES: usize = 3;
