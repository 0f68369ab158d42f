//! `-f`: into the background, once logged in or once the ports are open.
//!
//! A program that has threads cannot fork, so there are two processes from the beginning: the one
//! that was started waits, and the one that does the work and stays is the same program with the same
//! arguments. Until then it belongs to the terminal like its parent, so that it can ask for
//! passwords, and an interrupt ends both. Its standard input, of which it has no use, is the pipe
//! through which it says that it is there.

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

use crate::Done;
use crate::patient;
use crate::report::Failure;

/// What the second process is started with, in front of the arguments.
const MARK: &str = "--in-background";

/// Starts the process that stays, with the same words; returns once it has left for the background,
/// or with the exit code of its failure, `otherwise` if it has none.
pub fn start(words: impl IntoIterator<Item = OsString>, otherwise: u8) -> Done {
    let program = env::current_exe().context("cannot find the running program")?;
    let (mut word, told_by) = std::io::pipe().context("cannot create a pipe")?;
    let mut command = Command::new(program);
    // Its name is not one that would be a command.
    command.arg0("adit").arg(MARK).args(words);
    let mut child = command
        .stdin(told_by)
        .spawn()
        .context("cannot start the background process")?;
    // It holds the other end of the pipe as well.
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

/// Leaves the terminal, and lets the parent go. Standard output and error stay if somebody `uses`
/// them; else nobody has to wait for their end.
pub fn leave(uses: bool) -> Done {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null");
    let null = null.context("cannot open /dev/null")?;
    rustix::process::setsid().context("cannot leave the terminal")?;
    if !uses {
        rustix::stdio::dup2_stdout(&null).context("cannot redirect standard output")?;
        rustix::stdio::dup2_stderr(&null).context("cannot redirect standard error")?;
    }
    // Nobody waits any more: it was killed meanwhile, which was not meant for us.
    let _ = patient::Patient(rustix::stdio::stdin()).write_all(b"!");
    rustix::stdio::dup2_stdin(&null).context("cannot redirect standard input")?;
    Ok(())
}
