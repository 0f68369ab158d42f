//! `adit sftp-server`: the `sftp` subsystem of an SSH server, on standard input and output.

use adit_cli::{CommandResult, Failure, FailureCode, blocking_stream};
use anyhow::Context;

use crate::args;
use crate::sftp_server::{Options, ServeError, mode, serve};

/// Serves files on standard input and output.
///
/// # Errors
/// What went wrong, with the exit code.
pub fn sftp_server(typed: &args::SftpServerArgs) -> CommandResult {
    if let Some(mask) = typed.umask {
        rustix::process::umask(mode(mask));
    }
    let protected = typed.protect.iter().map(std::path::absolute);
    let protected: std::io::Result<_> = protected.collect();
    let options = Options {
        root: typed.root.clone(),
        protected: protected.context("--protect")?,
        read_only: typed.read_only,
        start: typed.start.clone(),
    };
    match serve(
        blocking_stream::stdin(),
        blocking_stream::stdout(),
        &options,
    ) {
        // A client that is gone needs no word.
        Err(ServeError::Stream(why)) if why.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|why| Failure::new(FailureCode::Failure, why.to_string())),
    }
}
