//! SFTP over the files of this machine: what `adit sftp-server` is, on any pair of streams.
//!
//! Data passes through like this: `adit_ssh_proto::sftp` reads requests and writes answers, [`session`]
//! executes each in its turn, [`tree`] says where a path leads (inside a root, if there is one, and
//! around what is [`protected`]), [`attributes`], [`folder`], [`copy`] and [`people`] do what is more than one call.
//!
//! Everything blocks: one process, or one thread, serves one client.

mod attributes;
pub(crate) mod command;
mod copy;
mod fault;
mod folder;
mod people;
mod protected;
mod session;
mod tree;

use std::io::{Read, Write};
use std::path::PathBuf;

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::Frames;

pub(crate) use attributes::mode;
pub(crate) use folder::date;
use session::Session;

/// Bytes that are read at once.
const READ_AT_ONCE: usize = 256 * 1024;
/// Bytes of answers that are held back at most while there are more requests.
const WRITE_AT_ONCE: usize = 64 * 1024;

/// What a client may see and do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// A folder that is all there is: no path and no symbolic link leads out of it.
    pub(crate) root: Option<PathBuf>,
    /// Files and folders that cannot be touched, by absolute paths.
    pub(crate) protected: Vec<PathBuf>,
    /// Nothing can be changed.
    pub(crate) read_only: bool,
    /// Where relative paths begin: a path inside the root, if there is one; otherwise the
    /// working directory.
    pub(crate) start: Option<PathBuf>,
}

/// Why a server ended before its client did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
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

/// Serves one client until it closes its side.
pub(crate) fn serve(
    mut input: impl Read,
    mut output: impl Write,
    options: &Options,
) -> Result<(), ServeError> {
    let mut session = Session::new(options)?;
    let mut frames = Frames::new();
    let mut buffer = vec![0; READ_AT_ONCE];
    let mut out = Vec::new();
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(why) => return Err(why.into()),
        };
        let mut data = buffer.get(..read).unwrap_or_default();
        while let Some(frame) = frames.next(&mut data)? {
            session.execute(frame, &mut out)?;
            if out.len() >= WRITE_AT_ONCE {
                output.write_all(&out)?;
                out.clear();
            }
        }
        output.write_all(&out)?;
        output.flush()?;
        out.clear();
    }
    if frames.at_boundary() {
        Ok(())
    } else {
        Err(ServeError::Cut)
    }
}

#[cfg(test)]
mod tests;
