//! Engines in one process, over real sockets.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod datagrams;
mod keyed;
#[cfg(unix)]
mod limits;
mod nodes;
mod private;
mod probes;
mod reload;
mod removal;
mod routes;
mod world;
