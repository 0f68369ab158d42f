//! Lookups with servers on loopback.

#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod client;
mod servers;
mod transports;
mod unbound;
