//! The handshakes of both sides and the codecs of a forwarded exchange.

#![allow(clippy::unwrap_used, reason = "tests")]

mod body;
mod client;
mod forward;
mod hostile;
mod response;
mod server;
mod split;
