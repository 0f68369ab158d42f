//! Errors of clients.

use std::io;
use std::sync::Arc;

use adit_ssh::{OpenError, RequestError};
use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{Extension, SftpRefused, SftpStatus, TransferError};

/// An error of an operation on a server's files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SftpError {
    /// The server refused the request; its status code and message.
    #[error(transparent)]
    Refused(#[from] SftpRefused),
    /// The server did not announce the extension that the operation needs.
    #[error("the server does not support `{}`", .0.name())]
    Unsupported(Extension),
    /// A local file could not be read or written.
    #[error(transparent)]
    Local(#[from] io::Error),
    /// The target of a resumed transfer is longer than its source.
    #[error("the copy is already longer than the file")]
    LongerCopy,
    /// The source of a transfer is not a regular file.
    #[error("not a regular file")]
    NotRegular,
    /// A file or directory exceeds the limit of the operation.
    #[error("{what} exceeds {limit}")]
    LimitExceeded {
        /// The part that is too large, such as `the number of directory entries`.
        what: &'static str,
        /// The limit, in bytes or entries.
        limit: usize,
    },
    /// No channel could be opened for the subsystem.
    #[error(transparent)]
    Channel(#[from] OpenError),
    /// The SSH server refused the subsystem `sftp`.
    #[error("no SFTP server: {0}")]
    Subsystem(RequestError),
    /// The server violated the protocol. The session is over.
    #[error("the SFTP server violated the protocol: {0}")]
    Protocol(SshError),
    /// The stream failed or ended. The session is over.
    #[error("the connection was lost: {0}")]
    ConnectionLost(Arc<io::Error>),
}

impl SftpError {
    /// Returns the status code, if the server refused the request.
    #[must_use]
    pub const fn status(&self) -> Option<SftpStatus> {
        match self {
            Self::Refused(refused) => Some(refused.status),
            _ => None,
        }
    }

    /// True if the server reported that the file does not exist.
    #[must_use]
    pub const fn is_not_found(&self) -> bool {
        matches!(self.status(), Some(SftpStatus::NoSuchFile))
    }

    /// True if the session is over, or could not be opened.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::Protocol(_) | Self::ConnectionLost(_) | Self::Channel(_) | Self::Subsystem(_)
        )
    }
}

impl From<SshError> for SftpError {
    fn from(why: SshError) -> Self {
        Self::Protocol(why)
    }
}

impl From<TransferError> for SftpError {
    fn from(why: TransferError) -> Self {
        match why {
            TransferError::Refused(refused) => Self::Refused(refused),
            TransferError::Protocol(why) => Self::Protocol(why),
        }
    }
}

impl From<SftpError> for io::Error {
    fn from(why: SftpError) -> Self {
        let kind = match &why {
            SftpError::Refused(refused) => match refused.status {
                SftpStatus::Eof => io::ErrorKind::UnexpectedEof,
                SftpStatus::NoSuchFile => io::ErrorKind::NotFound,
                SftpStatus::PermissionDenied => io::ErrorKind::PermissionDenied,
                SftpStatus::Unsupported => io::ErrorKind::Unsupported,
                _ => io::ErrorKind::Other,
            },
            SftpError::Unsupported(_) => io::ErrorKind::Unsupported,
            SftpError::Local(why) => why.kind(),
            SftpError::ConnectionLost(why) => why.kind(),
            SftpError::Protocol(_) => io::ErrorKind::InvalidData,
            SftpError::NotRegular | SftpError::LongerCopy => io::ErrorKind::InvalidInput,
            SftpError::LimitExceeded { .. } => io::ErrorKind::FileTooLarge,
            SftpError::Channel(_) | SftpError::Subsystem(_) => io::ErrorKind::NotConnected,
        };
        Self::new(kind, why)
    }
}
