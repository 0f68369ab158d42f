//! Tests of the whole binary against real clients, servers and other implementations.
//!
//! `cargo xtask install` installs the programs that these tests need; a missing peer is a failure, not
//! a skipped test. `ADIT_BIN` names another binary to test, `ADIT_ALL_PEERS` adds the peers that take
//! long to build.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

#[cfg(unix)]
mod admin;
#[cfg(target_os = "linux")]
mod associations;
mod bench;
#[cfg(unix)]
mod bench_ssh;
#[cfg(unix)]
mod broken;
mod browser;
mod carrier_kcp;
mod classic;
mod cli;
mod clock;
mod completion;
mod convert;
#[cfg(target_os = "linux")]
mod crowd;
mod curl;
#[cfg(target_os = "linux")]
mod dashboard;
#[cfg(target_os = "linux")]
mod deployment;
mod dns;
mod dns_leak;
mod doctor;
mod doctor_schemes;
#[cfg(unix)]
mod documented;
#[cfg(target_os = "linux")]
mod documented_commands;
mod empty_chunks;
#[cfg(target_os = "linux")]
mod fast_open;
#[cfg(unix)]
mod file_settings;
#[cfg(target_os = "linux")]
mod fleet;
#[cfg(target_os = "linux")]
mod fleet_chaos;
mod fleet_commands;
mod forward;
#[cfg(target_os = "linux")]
mod group;
mod group_link;
mod health;
mod help_pages;
mod hostile;
mod http_proxy;
#[cfg(unix)]
mod interrupt;
#[cfg(unix)]
mod json;
mod kcp;
#[cfg(target_os = "linux")]
mod kcp_link;
mod kcp_peers;
mod kcp_reflection;
mod kcp_unlike;
mod kept_files;
mod lanes;
mod legacy;
mod listen_forms;
#[cfg(unix)]
mod manager;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod netns;
#[cfg(unix)]
mod notify_socket;
#[cfg(target_os = "linux")]
mod observe;
#[cfg(unix)]
mod online;
mod over_tcp;
#[cfg(target_os = "linux")]
mod own_address;
mod pacing;
mod plugin;
mod probes;
mod probes_apart;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod profiles;
mod proxied;
mod relay;
#[cfg(unix)]
mod reload;
mod replay;
mod replies;
#[cfg(unix)]
mod rule_sets;
#[cfg(unix)]
mod selections;
#[cfg(target_os = "linux")]
mod service;
mod setup;
#[cfg(unix)]
mod sftp;
mod shadowsocks;
#[cfg(unix)]
mod sniffing;
#[cfg(unix)]
mod ssh_client;
#[cfg(unix)]
mod ssh_copy;
#[cfg(unix)]
mod ssh_hop;
#[cfg(unix)]
mod ssh_hop_fails;
#[cfg(unix)]
mod ssh_listener;
#[cfg(target_os = "linux")]
mod ssh_server;
#[cfg(unix)]
mod ssh_transport;
mod ssr;
mod ssr_guest;
mod ssr_hostile;
mod ssr_peers;
#[cfg(target_os = "linux")]
mod system_proxy;
#[cfg(target_os = "linux")]
mod top;
#[cfg(target_os = "linux")]
mod transparent;
mod udp;
#[cfg(target_os = "linux")]
mod upgrade;
mod user_commands;
#[cfg(unix)]
mod user_limits;
mod users;
#[cfg(target_os = "linux")]
mod walkthrough;
