//! The face of russh: our two ends through it, and russh's own examples on it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step is a failed test"
)]

#[cfg(target_os = "linux")]
mod computations;
#[cfg(target_os = "linux")]
mod examples;
mod forwards;
mod login;
mod programs;
mod world;
