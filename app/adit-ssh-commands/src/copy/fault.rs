//! Errors of copying a file, or of the whole session.

use std::io;

use adit_sftp::SftpError;

/// The reason why an operation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// The server refused the operation, or the session has ended.
    #[error(transparent)]
    Sftp(#[from] SftpError),
    /// A local operation failed.
    #[error(transparent)]
    Local(#[from] io::Error),
    /// The operation is not possible.
    #[error("{0}")]
    Other(String),
}

impl CopyError {
    pub(crate) fn other(why: impl Into<String>) -> Self {
        Self::Other(why.into())
    }

    /// Returns true if no further operation is possible.
    pub(crate) const fn is_fatal(&self) -> bool {
        matches!(self, Self::Sftp(why) if why.is_fatal())
    }
}
