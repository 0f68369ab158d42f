//! `adit sftp-server`: the `sftp` subsystem of an SSH server, on standard input and output.

use adit_cli::{Code, Done, Failure, patient};
use anyhow::Context;
use rustix::fs::Mode;

use crate::args;
use adit_sftp::server::{Options, ServeError, serve};

/// Serves files on standard input and output.
///
/// # Errors
/// What went wrong, with the exit code.
pub fn sftp_server(typed: &args::SftpServer) -> Done {
    if let Some(mask) = typed.umask {
        rustix::process::umask(Mode::from_raw_mode(mask));
    }
    let protected = typed.protect.iter().map(std::path::absolute);
    let protected: std::io::Result<_> = protected.collect();
    let options = Options {
        root: typed.root.clone(),
        protected: protected.context("--protect")?,
        read_only: typed.read_only,
        start: typed.start.clone(),
    };
    match serve(patient::stdin(), patient::stdout(), &options) {
        // A client that is gone needs no word.
        Err(ServeError::Stream(why)) if why.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|why| Failure::new(Code::Failure, why.to_string())),
    }
}
