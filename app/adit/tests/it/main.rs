//! The whole binary against real clients, servers and other implementations.
//!
//! What these tests need is installed by `cargo xtask install`; a peer that is missing is a
//! failure, not a gap. `ADIT_BIN` names another binary to be tested, `ADIT_ALL_PEERS` adds the
//! peers that take long to build.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod browser;
mod cli;
mod convert;
mod curl;
mod forward;
mod hostile;
mod kcp;
#[cfg(target_os = "linux")]
mod netns;
mod plugin;
mod probes;
mod replies;
mod setup;
mod shadowsocks;
#[cfg(target_os = "linux")]
mod transparent;
mod udp;
