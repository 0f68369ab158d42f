//! The handshakes of both sides, with the bytes that real peers send.

#![allow(clippy::unwrap_used, reason = "tests")]

mod client;
mod proxied;
mod server4;
mod server5;
mod split;
mod udp;
