//! The configuration of OpenSSH's client, as read by adit and by OpenSSH.

#![cfg(unix)]

mod ssh_config;
mod ssh_peer;
