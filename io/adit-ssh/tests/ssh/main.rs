//! SSH sessions between our two ends, and with others at either.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step is a failed test"
)]

mod apart;
mod computations;
mod entry;
mod host_keys;
mod matrix;
mod messages;
mod openssh_client;
mod openssh_server;
mod ours;
mod own;
mod peers;
mod recorder;
mod server;
mod world;

// What is recorded and replayed stands beside the machines that it is a test of.
#[path = "../../../../proto/adit-ssh-proto/tests/sessions/plan.rs"]
mod plan;
#[path = "../../../../proto/adit-ssh-proto/tests/sessions/player.rs"]
mod player;
#[path = "../../../../proto/adit-ssh-proto/tests/sessions/recording.rs"]
mod recording;
