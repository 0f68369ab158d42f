//! Clients and servers of this crate with each other, and with bytes as other programs send them.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod client;
mod server;
mod support;
