//! `adit ssh`: programs, shells and forwarded ports on another machine.
//!
//! ```text
//! words ─▶ connect::Asked ─▶ SshSettings ─▶ connect() ─▶ Session ─┬▶ program ◀─▶ standard streams
//!            ~/.ssh/config      jumps, known hosts, keys, agent   └▶ forward ◀─▶ sockets
//! ```
//!
//! [`connect`] is what `sftp` and `scp` use as well. [`terminal`] asks the person at it, and is
//! the one place that changes its modes.

pub(super) mod connect;
mod options;
mod program;
mod stdio;
mod terminal;

use super::Done;
use crate::args::ssh::Ssh;
use crate::report::Failure;

/// The exit code of what went wrong here, not in the program.
pub(super) const OWN: u8 = 255;

pub(super) fn ssh(typed: &Ssh) -> Done {
    run(typed).map_err(|why| why.with_status(OWN))
}

fn run(typed: &Ssh) -> Done {
    let asked = options::asked(typed)?;
    let settings = asked.settings()?;
    let command = options::command(typed, &settings);
    connect::block_on(async {
        let reached = connect::connect(&asked, &settings).await?;
        let status = program::run(&reached, command).await?;
        match status {
            0 => Ok(()),
            status => Err(Failure::Exit { status, why: None }),
        }
    })
}
