//! The SSH commands: `adit ssh`, `sshd`, `scp`, `sftp` and `sftp-server`.
//!
//! ```text
//! args, ssh_config ─▶ ssh ─▶ connect ─▶ adit-ssh session ─▶ programs, terminals, forwards
//!                     scp │ sftp ─▶ copy ─▶ SFTP channels
//!         sshd ─▶ programs, terminals, forwards, sftp_server
//! ```

#![cfg(any(unix, windows))]

#[cfg_attr(unix, macro_use(eprintln, print, println))]
extern crate adit_cli;

pub mod args;
mod channel_pipes;
#[cfg(unix)]
mod copy;
mod pipe_pace;
#[cfg(unix)]
mod scp;
#[cfg(unix)]
mod sftp;
#[cfg(unix)]
mod sftp_server;
mod ssh;
pub mod ssh_config;
#[cfg(unix)]
mod sshd;
#[cfg(unix)]
mod terminal_modes;

#[cfg(unix)]
pub use scp::scp;
#[cfg(unix)]
pub use sftp::sftp;
#[cfg(unix)]
pub use sftp_server::sftp_server;
pub use ssh::ssh;
#[cfg(unix)]
pub use sshd::sshd;
