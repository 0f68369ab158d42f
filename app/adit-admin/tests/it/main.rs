//! Tests of `adit-admin` with other programs as peers.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod https;
mod webhook;
