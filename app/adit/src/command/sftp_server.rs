//! `adit sftp-server`: the `sftp` subsystem of an SSH server, on standard input and output.

use std::fs::File;
use std::os::fd::AsFd;

use anyhow::Context;

use super::Done;
use crate::args;
use crate::report::{Code, Failure};
use crate::sftp_server::{Options, ServeError, mode, serve};

pub(super) fn sftp_server(typed: &args::SftpServer) -> Done {
    if let Some(mask) = typed.umask {
        rustix::process::umask(mode(mask));
    }
    let options = Options {
        root: typed.root.clone(),
        read_only: typed.read_only,
        start: typed.start.clone(),
    };
    // The standard streams of the library would look for lines in the data.
    let stream = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    let input = stream(std::io::stdin().as_fd()).context("standard input")?;
    let output = stream(std::io::stdout().as_fd()).context("standard output")?;
    match serve(input, output, &options) {
        // A client that is gone needs no word.
        Err(ServeError::Stream(why)) if why.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|why| Failure::new(Code::Failure, why.to_string())),
    }
}
