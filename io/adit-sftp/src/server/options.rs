//! Options of a file tree, and the errors that end a session.

use std::path::PathBuf;

use adit_ssh_proto::SshError;

/// The part of the file system that a client may see and change.
#[derive(Debug, Clone, Default)]
pub struct FileTreeOptions {
    /// The directory that clients see as `/`: no path and no symbolic link leads out of it. `None` is the
    /// whole file system.
    pub root: Option<PathBuf>,
    /// Absolute paths of files and directories that clients can neither read nor change.
    pub protected: Vec<PathBuf>,
    /// Clients cannot change anything.
    pub read_only: bool,
    /// The directory in which relative paths start, inside the root if there is one. `None` is the root,
    /// or the working directory.
    pub start: Option<PathBuf>,
}

/// The reason why a session ended before its client ended it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A directory of the options cannot be served.
    #[error("cannot serve `{}`: {why}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        why: std::io::Error,
    },
    /// The client violated the protocol.
    #[error("the client violated the protocol: {0}")]
    Protocol(SshError),
    /// The client disconnected within a message.
    #[error("the client disconnected in the middle of a message")]
    Truncated,
    /// The stream failed.
    #[error(transparent)]
    Stream(#[from] std::io::Error),
}

impl From<SshError> for ServeError {
    fn from(why: SshError) -> Self {
        Self::Protocol(why)
    }
}
