//! SSH sessions between our two ends, and with others at either.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step is a failed test"
)]

mod apart;
mod entry;
mod matrix;
mod openssh_client;
mod openssh_server;
mod ours;
mod peers;
mod server;
mod world;
