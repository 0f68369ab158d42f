//! Every program with a real counterpart on loopback, and the promises of the README.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod codes;
mod kcp;
mod proxies;
mod readme;
mod ssh;
mod support;
