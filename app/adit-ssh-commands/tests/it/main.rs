//! The configuration of OpenSSH's client, as it is read here and there.

#![cfg(unix)]

mod ssh_config;
mod ssh_peer;
