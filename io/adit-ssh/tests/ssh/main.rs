//! SSH sessions between adit's client and server, and with other implementations at either end.

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

// Recording and replaying are shared with the tests of the protocol crate.
#[path = "../../../../proto/adit-ssh-proto/tests/sessions/plan.rs"]
mod plan;
#[path = "../../../../proto/adit-ssh-proto/tests/sessions/player.rs"]
mod player;
#[path = "../../../../proto/adit-ssh-proto/tests/sessions/recording.rs"]
mod recording;
