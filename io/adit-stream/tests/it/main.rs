//! Layers, handshakes and the relay over real sockets.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod layers;
mod relay;
mod tokio_stream;
mod toy;
mod turns;
