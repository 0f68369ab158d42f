//! Command-line arguments of the SSH commands.
#![allow(
    missing_docs,
    reason = "the help of a command is its variant's documentation in the program"
)]

mod sftp_server;
mod ssh;
mod sshd;

pub use sftp_server::SftpServerArgs;
pub(crate) use ssh::HostArgs;
pub use ssh::{ScpArgs, SftpArgs, SshArgs};
pub use sshd::SshdArgs;
