//! `-f`: moves a command to the background after login or after its ports are open.
//!
//! A program with threads cannot fork, so there are two processes from the start: the parent waits, and the
//! child, the same program with the same arguments, does the work. Until it detaches, the child belongs to the
//! terminal like its parent, so that it can ask for passwords, and an interrupt ends both. The child has no use
//! for standard input; it is the pipe through which the child signals that it is ready.

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

use crate::CommandResult;
use crate::blocking_stream;
use crate::report::Failure;

/// First argument of the child process.
const BACKGROUND_FLAG: &str = "--in-background";

/// Starts the child process with the arguments `words`, and returns once it has detached.
///
/// # Errors
/// The child failed: the error has its exit code, or `otherwise` if a signal ended it.
pub fn spawn_background(words: impl IntoIterator<Item = OsString>, otherwise: u8) -> CommandResult {
    let program = env::current_exe().context("cannot find the running program")?;
    let (mut word, told_by) = std::io::pipe().context("cannot create a pipe")?;
    let mut command = Command::new(program);
    // A fixed name, which does not select a command.
    command.arg0("adit").arg(BACKGROUND_FLAG).args(words);
    let mut child = command
        .stdin(told_by)
        .spawn()
        .context("cannot start the background process")?;
    // `command` still holds the writing end of the pipe.
    drop(command);
    if matches!(word.read(&mut [0]), Ok(1)) {
        return Ok(());
    }
    let status = child
        .wait()
        .context("cannot wait for the background process")?;
    Err(Failure::Exit {
        status: status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(otherwise),
        why: None,
    })
}

/// Detaches from the terminal, and releases the parent. Standard output and error stay open if `uses` is true;
/// otherwise they are redirected to `/dev/null`, so that no reader waits for their end.
pub fn detach(uses: bool) -> CommandResult {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null");
    let null = null.context("cannot open /dev/null")?;
    rustix::process::setsid().context("cannot leave the terminal")?;
    if !uses {
        rustix::stdio::dup2_stdout(&null).context("cannot redirect standard output")?;
        rustix::stdio::dup2_stderr(&null).context("cannot redirect standard error")?;
    }
    // An error means that the parent was killed meanwhile, which does not concern the child.
    let _ = blocking_stream::BlockingStream(rustix::stdio::stdin()).write_all(b"!");
    rustix::stdio::dup2_stdin(&null).context("cannot redirect standard input")?;
    Ok(())
}
