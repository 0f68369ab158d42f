//! The store against real servers, and the rules of a node against stores that lose, forge and forget.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod access;
mod embedded;
mod faults;
mod feed;
mod laws;
mod measure;
mod outage;
mod servers;
mod topologies;
mod valkey;
mod world;
