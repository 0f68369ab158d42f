//! What goes wrong with a file, or with all of them.

use std::io;

use adit_sftp::SftpError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The server says no, or the session with it is over.
    #[error(transparent)]
    Sftp(#[from] SftpError),
    /// This machine says no.
    #[error(transparent)]
    Local(#[from] io::Error),
    /// It cannot be done.
    #[error("{0}")]
    Unfit(String),
}

impl Fault {
    pub(crate) fn unfit(why: impl Into<String>) -> Self {
        Self::Unfit(why.into())
    }

    /// Whether nothing can go on after it.
    pub(crate) const fn is_end(&self) -> bool {
        matches!(self, Self::Sftp(why) if why.is_fatal())
    }
}
