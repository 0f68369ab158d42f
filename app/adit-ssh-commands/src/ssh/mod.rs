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
mod forward_spec;
mod local_pty;
mod options;
mod platform;
mod program;
mod stdio;
mod terminal;

use crate::ssh_config::{SshDestination, SshSettings};
use adit_cli::{CommandResult, Failure, FailureCode};

use crate::args::SshArgs;
use connect::ConnectedHost;
use program::RemoteProgram;

/// Exit code for failures of adit itself, as opposed to those of the remote program.
pub(super) const LOCAL_FAILURE_STATUS: u8 = 255;

/// Runs `adit ssh`. `in_background` is true in the process that stays in the background (`-f`).
///
/// # Errors
/// The failure, with its exit code.
pub fn ssh(typed: &SshArgs, in_background: bool) -> CommandResult {
    run(typed, in_background).map_err(|why| why.with_status(LOCAL_FAILURE_STATUS))
}

fn run(typed: &SshArgs, in_background: bool) -> CommandResult {
    if let Some(file) = &typed.log {
        terminal::redirect_messages(file)?;
    }
    let asked = options::connect_request(typed)?;
    let settings = asked.resolve_settings()?;
    let command = options::requested_command(typed, &settings);
    if typed.fork && command.is_none() && !typed.no_command {
        let what = "-f: a shell cannot run in the background";
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("add a command, or -N to only forward ports"));
    }
    let stream = typed
        .stdio
        .as_deref()
        .map(forward_spec::parse_stdio_destination)
        .transpose()?;
    let what = match command {
        None => RemoteProgram::Shell,
        Some(name) if typed.subsystem => {
            RemoteProgram::Subsystem(String::from_utf8_lossy(&name).into_owned())
        }
        Some(command) => RemoteProgram::Command(command),
    };
    if typed.fork && !in_background {
        return platform::spawn_background(std::env::args_os().skip(1), LOCAL_FAILURE_STATUS);
    }
    connect::block_on(worker_threads(typed, &settings), async {
        let mut reached = connect::connect(&asked, &settings).await?;
        if let Some(to) = stream {
            return relay_stdio(&reached, &to).await;
        }
        let mut forwards = forward::Forwards::open_all(&reached).await?;
        if typed.fork {
            platform::detach(!typed.no_command)?;
        }
        if typed.no_command {
            let end = reached.session.wait_closed().await;
            let what = format!("{}: {end}", reached.settings.host_name);
            return Err(Failure::new(FailureCode::Network, what));
        }
        let status = program::run(&reached, what, typed.null || typed.fork).await?;
        tokio::select! {
            () = forwards.close_and_drain() => {}
            _ = reached.session.wait_closed() => {}
        }
        if let Some(update) = reached.update.take() {
            update.finish_or_abort().await;
        }
        match status {
            0 => Ok(()),
            status => Err(Failure::Exit { status, why: None }),
        }
    })
}

/// Returns the number of runtime threads. With forwards it is two, so that one can move bytes while the other
/// encrypts. A program's streams have their own threads, and two workers would only wake each other.
fn worker_threads(typed: &SshArgs, settings: &SshSettings) -> usize {
    let forwards = [
        &settings.local_forwards,
        &settings.dynamic_forwards,
        &settings.remote_forwards,
    ];
    let forwards = typed.no_command || forwards.iter().any(|list| !list.is_empty());
    if forwards { 2 } else { 1 }
}

/// Connects the standard streams to one forwarded connection (`-W`).
async fn relay_stdio(reached: &ConnectedHost, to: &SshDestination) -> CommandResult {
    if !reached.trusted {
        let what = "-W is refused because the host key does not match the known one";
        return Err(Failure::new(FailureCode::Key, what));
    }
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(
            FailureCode::Network,
            format!("{}: {why}", reached.settings.host_name),
        )
    };
    let opened = forward::open_channel(&reached.session, to).await;
    let (reader, writer) = opened.map_err(|why| failed(&why))?.into_split();
    stdio::forward_stdin(writer, None);
    stdio::forward_to_stdout(reader)
        .await
        .map_err(|why| failed(&why))
}
