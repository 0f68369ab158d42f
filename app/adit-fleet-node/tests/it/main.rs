//! Nodes in one process with a store in memory, whose faults are scripted.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod outages;
mod quotas;
mod replays;
mod scale;
mod users;
mod world;
