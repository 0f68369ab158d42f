//! The SSH commands: `adit ssh`, `sshd`, `scp`, `sftp` and `sftp-server`.
//!
//! ```text
//! args, ssh_config ─▶ ssh ─▶ connect ─▶ adit-ssh session ─▶ programs, terminals, forwards
//!                     scp │ sftp ─▶ copy ─▶ SFTP channels
//!         sshd ─▶ programs, terminals, forwards, sftp_server
//! ```

#![cfg(unix)]

#[macro_use(eprintln, print, println)]
extern crate adit_cli;

pub mod args;
mod channel_pipes;
mod copy;
mod pipe_pace;
mod scp;
mod sftp;
mod sftp_server;
mod ssh;
pub mod ssh_config;
mod sshd;
mod terminal_modes;

pub use scp::scp;
pub use sftp::sftp;
pub use sftp_server::sftp_server;
pub use ssh::ssh;
pub use sshd::sshd;
