//! The russh API: both ends on it, and russh's own examples.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step is a failed test"
)]

#[cfg(unix)]
mod agent;
#[cfg(target_os = "linux")]
mod computations;
#[cfg(target_os = "linux")]
mod examples;
mod forwards;
mod login;
mod programs;
mod world;
