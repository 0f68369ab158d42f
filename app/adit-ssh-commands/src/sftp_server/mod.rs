//! SFTP over the files of this machine: what `adit sftp-server` is, on any pair of streams.
//!
//! Data passes through like this: `adit_ssh_proto::sftp` reads requests and writes answers, [`session`]
//! executes each in its turn, [`tree`] says where a path leads (inside a root, if there is one, and
//! around what is [`protected_paths`]), [`attributes`], [`folder`], [`copy_all`] and [`people`] do what is more than one call.
//!
//! Everything blocks: one process, or one thread, serves one client.

mod attributes;
pub(crate) mod command;
mod copy;
mod fault;
mod folder;
mod options;
mod people;
mod protected;
mod session;
mod tree;

use std::io::{Read, Write};

use adit_ssh_proto::sftp::FrameReader;
use adit_wire::subslice;

pub(crate) use attributes::mode;
pub(crate) use folder::date;
pub(crate) use options::{Options, ServeError};
use session::Session;

/// Bytes that are read at once.
const READ_AT_ONCE: usize = 256 * 1024;
/// Bytes of answers that are held back at most while there are more requests.
const WRITE_AT_ONCE: usize = 64 * 1024;

/// Serves one client until it closes its side.
pub(crate) fn serve(
    mut input: impl Read,
    mut output: impl Write,
    options: &Options,
) -> Result<(), ServeError> {
    let mut session = Session::new(options)?;
    let mut frames = FrameReader::new();
    let mut buffer = vec![0; READ_AT_ONCE];
    let mut out = Vec::new();
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(why) => return Err(why.into()),
        };
        let mut data = subslice(&buffer, ..read);
        while let Some(frame) = frames.next_frame(&mut data)? {
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
