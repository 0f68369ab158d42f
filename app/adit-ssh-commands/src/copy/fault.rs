//! What goes wrong with a file, or with all of them.

use std::io;

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{SftpRefused, SftpStatus, TransferError};

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// The server says no.
    #[error(transparent)]
    Refused(#[from] SftpRefused),
    /// This machine says no.
    #[error(transparent)]
    Local(#[from] io::Error),
    /// It cannot be done.
    #[error("{0}")]
    Other(String),
    /// The server broke the protocol.
    #[error("the SFTP server broke the protocol: {0}")]
    Protocol(SshError),
    /// The channel or the connection ended.
    #[error("the connection was lost: {0}")]
    ConnectionLost(io::Error),
}

impl CopyError {
    pub(crate) fn other(why: impl Into<String>) -> Self {
        Self::Other(why.into())
    }

    /// Whether nothing can go on after it.
    pub(crate) const fn is_fatal(&self) -> bool {
        matches!(self, Self::Protocol(_) | Self::ConnectionLost(_))
    }

    /// Whether the server says that there is no such file.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused(refused) if refused.status == SftpStatus::NoSuchFile)
    }
}

impl From<SshError> for CopyError {
    fn from(why: SshError) -> Self {
        Self::Protocol(why)
    }
}

impl From<TransferError> for CopyError {
    fn from(why: TransferError) -> Self {
        match why {
            TransferError::Refused(refused) => Self::Refused(refused),
            TransferError::Protocol(why) => Self::Protocol(why),
        }
    }
}
