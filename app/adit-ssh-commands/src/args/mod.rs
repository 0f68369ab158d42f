//! Command-line arguments of the SSH commands.
#![allow(
    missing_docs,
    reason = "the help of a command is its variant's documentation in the program"
)]

mod sftp_server;
mod ssh;
mod sshd;

pub use sftp_server::SftpServer;
pub(crate) use ssh::Way;
pub use ssh::{Scp, Sftp, Ssh};
pub use sshd::Sshd;
