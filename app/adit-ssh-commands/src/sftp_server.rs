//! `adit sftp-server`: the `sftp` subsystem of an SSH server, on standard input and output.

use adit_cli::{CommandResult, Failure, FailureCode, blocking_stream};
use adit_wire::narrow_int;
use anyhow::Context;
use rustix::fs::Mode;

use crate::args;
use adit_sftp::server::{FileTree, FileTreeOptions, serve_blocking};

/// Serves files on standard input and output.
///
/// # Errors
/// What went wrong, with the exit code.
pub fn sftp_server(typed: &args::SftpServerArgs) -> CommandResult {
    if let Some(mask) = typed.umask {
        rustix::process::umask(Mode::from_raw_mode(narrow_int(mask)));
    }
    let protected = typed.protect.iter().map(std::path::absolute);
    let protected: std::io::Result<_> = protected.collect();
    let options = FileTreeOptions {
        root: typed.root.clone(),
        protected: protected.context("--protect")?,
        read_only: typed.read_only,
        start: typed.start.clone(),
    };
    let served = FileTree::new(&options).and_then(|files| {
        serve_blocking(blocking_stream::stdin(), blocking_stream::stdout(), files)
    });
    served.map_err(|why| Failure::new(FailureCode::Failure, why.to_string()))
}
