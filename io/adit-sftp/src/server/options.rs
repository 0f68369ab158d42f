//! What a server may show, and why it ends.

use std::path::PathBuf;

use adit_ssh_proto::SshError;

/// What a client may see and do.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A folder that is all there is: no path and no symbolic link leads out of it.
    pub root: Option<PathBuf>,
    /// Files and folders that cannot be touched, by absolute paths.
    pub protected: Vec<PathBuf>,
    /// Nothing can be changed.
    pub read_only: bool,
    /// Where relative paths begin: a path inside the root, if there is one; otherwise the
    /// working directory.
    pub start: Option<PathBuf>,
}

/// Why a server ended before its client did.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A folder of the options cannot be served.
    #[error("cannot serve `{}`: {why}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// The client broke the protocol.
    #[error("the client breaks the protocol: {0}")]
    Protocol(SshError),
    /// The client left in the middle of a message.
    #[error("the client left in the middle of a message")]
    Cut,
    /// The streams failed.
    #[error(transparent)]
    Stream(#[from] std::io::Error),
}

impl From<SshError> for ServeError {
    fn from(why: SshError) -> Self {
        Self::Protocol(why)
    }
}
