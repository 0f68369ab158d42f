//! Lookups with servers on loopback.

mod client;
mod servers;
mod transports;
