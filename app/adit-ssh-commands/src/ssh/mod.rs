//! `adit ssh`: runs programs and shells on a remote host, and forwards ports.
//!
//! ```text
//! arguments ─▶ connect::Asked ─▶ SshSettings ─▶ connect() ─▶ Session ─┬▶ program ◀─▶ standard streams
//!                ~/.ssh/config      jumps, known hosts, keys, agent   └▶ forward ◀─▶ sockets
//! ```
//!
//! `sftp` and `scp` use [`connect`] as well. [`terminal`] prompts the user, and is the only module that
//! changes the modes of the terminal.

pub(super) mod connect;
mod escape;
mod forward;
mod options;
mod program;
mod pty;
mod spec;
mod stdio;
mod terminal;

use crate::ssh_config::{SshDestination, SshSettings};
use adit_cli::{Code, Done, Failure, background};

use crate::args::Ssh;
use connect::Reached;
use program::What;

/// Exit code for failures of adit itself, as opposed to those of the remote program.
pub(super) const OWN: u8 = 255;

/// Runs `adit ssh`. `in_background` is true in the process that stays in the background (`-f`).
///
/// # Errors
/// The failure, with its exit code.
pub fn ssh(typed: &Ssh, in_background: bool) -> Done {
    run(typed, in_background).map_err(|why| why.with_status(OWN))
}

fn run(typed: &Ssh, in_background: bool) -> Done {
    if let Some(file) = &typed.log {
        terminal::say_to(file)?;
    }
    let asked = options::asked(typed)?;
    let settings = asked.settings()?;
    let command = options::command(typed, &settings);
    if typed.fork && command.is_none() && !typed.no_command {
        let what = "-f: a shell cannot run in the background";
        return Err(
            Failure::new(Code::Usage, what).hint("add a command, or -N to only forward ports")
        );
    }
    let stream = typed.stdio.as_deref().map(spec::destination).transpose()?;
    let what = match command {
        None => What::Shell,
        Some(name) if typed.subsystem => {
            What::Subsystem(String::from_utf8_lossy(&name).into_owned())
        }
        Some(command) => What::Command(command),
    };
    if typed.fork && !in_background {
        return background::start(std::env::args_os().skip(1), OWN);
    }
    connect::block_on(workers(typed, &settings), async {
        let mut reached = connect::connect(&asked, &settings).await?;
        if let Some(to) = stream {
            return carry(&reached, &to).await;
        }
        let mut forwards = forward::Forwards::start(&reached).await?;
        if typed.fork {
            background::leave(!typed.no_command)?;
        }
        if typed.no_command {
            let end = reached.session.wait_closed().await;
            let what = format!("{}: {end}", reached.settings.host_name);
            return Err(Failure::new(Code::Network, what));
        }
        let status = program::run(&reached, what, typed.null || typed.fork).await?;
        tokio::select! {
            () = forwards.finish() => {}
            _ = reached.session.wait_closed() => {}
        }
        if let Some(update) = reached.update.take() {
            update.settle().await;
        }
        match status {
            0 => Ok(()),
            status => Err(Failure::Exit { status, why: None }),
        }
    })
}

/// Returns the number of runtime threads. With forwards it is two, so that one can move bytes while the other
/// encrypts. A program's streams have their own threads, and two workers would only wake each other.
fn workers(typed: &Ssh, settings: &SshSettings) -> usize {
    let forwards = [
        &settings.local_forwards,
        &settings.dynamic_forwards,
        &settings.remote_forwards,
    ];
    let forwards = typed.no_command || forwards.iter().any(|list| !list.is_empty());
    if forwards { 2 } else { 1 }
}

/// Connects the standard streams to one forwarded connection (`-W`).
async fn carry(reached: &Reached, to: &SshDestination) -> Done {
    if !reached.trusted {
        let what = "-W is refused because the host key does not match the known one";
        return Err(Failure::new(Code::Key, what));
    }
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(
            Code::Network,
            format!("{}: {why}", reached.settings.host_name),
        )
    };
    let opened = forward::open_channel(&reached.session, to).await;
    let (reader, writer) = opened.map_err(|why| failed(&why))?.into_split();
    stdio::input(writer, None);
    stdio::output(reader).await.map_err(|why| failed(&why))
}
