//! Runs a program on the host: requests, streams and exit status.

use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::pin::{Pin, pin};
use std::task::Poll;

use crate::ssh_config::{RequestTty, SshSettings};
use adit_cli::{Failure, FailureCode};
use adit_ssh::RequestError;
use adit_ssh::client::{Exit, ProgramControl};
use adit_ssh_proto::auth::sanitize_for_display;
use adit_ssh_proto::connection::SshChannelRequest;
use adit_wire::narrow_int;
use tracing::debug;

use super::connect::{ConnectedHost, is_quiet};
use super::escape::EscapeCommand;
use super::stdio::{self, StdinForwarder};
use super::{LOCAL_FAILURE_STATUS, forward, local_pty, platform, terminal};

/// Length of a break, in milliseconds.
const BREAK_MILLIS: u32 = 1000;

/// The program to run on the host.
#[derive(Debug)]
pub(super) enum RemoteProgram {
    Shell,
    Command(Vec<u8>),
    Subsystem(String),
}

/// Runs `what` until it exits, and returns its exit code. Standard input is not read if `no_input` is true.
pub(super) async fn run(
    reached: &ConnectedHost,
    what: RemoteProgram,
    no_input: bool,
) -> Result<u8, Failure> {
    let settings = &reached.settings;
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(
            FailureCode::Failure,
            format!("{}: {why}", settings.host_name),
        )
    };
    let here = io::stdin();
    let has_terminal = here.is_terminal() && !no_input;
    let wants_pty = wants_terminal(settings, &what, has_terminal);
    let opened = reached.session.open_session().await;
    let program = opened.map_err(|why| failed(&why))?;
    let wants = ProgramRequest {
        agent: forward::offer_agent(reached),
        pty: wants_pty.then(|| SshChannelRequest::Pty(local_pty::pty_request_like(&here))),
        program: what,
    };
    let has_pty = send_program_requests(program.control(), settings, wants)
        .await
        .map_err(|why| failed(&why))?;
    let (control, channel, errors) = program.into_parts();
    let (reader, mut writer) = channel.into_split();
    // From here on, keys go to the program.
    let raw = (has_pty && has_terminal).then(|| terminal::enter_raw_mode(&here));
    let mut raw = raw.transpose().map_err(|why| failed(&why))?;
    let mut typed = StdinForwarder::unused();
    if no_input {
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut writer).await;
    } else {
        let escapes = raw.as_ref().and(settings.escape_char);
        typed = stdio::forward_stdin(writer, escapes);
    }
    let mut window = platform::WindowChanges::new().map_err(|why| failed(&why))?;
    let mut printed = pin!(async {
        let out = async {
            let done = stdio::forward_to_stdout(reader).await;
            if done.is_err() {
                // Standard output is closed: the next write of the program should fail.
                let _ = control.send_request(SshChannelRequest::EndOfWriting).await;
            }
            done
        };
        tokio::join!(out, stdio::forward_to_stderr(errors))
    });
    let (out, err) = loop {
        tokio::select! {
            done = &mut printed => break done,
            () = window.next(), if has_pty => {
                if let Some(size) = local_pty::terminal_size(&here) {
                    // An error is reported with the end of the session.
                    let _ = control.send_window_change(size).await;
                }
            }
            wish = typed.next_escape() => match wish {
                EscapeCommand::End => return Err(Failure::new(FailureCode::Failure, "the connection was closed by an escape")),
                EscapeCommand::Help => terminal::print_message(&typed.escape_help()),
                EscapeCommand::Rekey => { let _ = reached.session.rekey(); }
                EscapeCommand::Break => { let _ = control.send_request(SshChannelRequest::Break(BREAK_MILLIS)).await; }
                EscapeCommand::Suspend => {
                    drop(raw.take());
                    if !platform::suspend() {
                        terminal::print_message("this system cannot suspend a program");
                    }
                    raw = terminal::enter_raw_mode(&here).ok();
                }
            },
        }
    };
    let exit = control.wait_exit().await;
    drop(raw);
    if let Some(end) = reached.session.end_reason().filter(|_| exit.is_none()) {
        return Err(failed(&end));
    }
    for done in [out, err] {
        match done {
            // The reader that closed the stream knows.
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => {
                return Err(Failure::Exit {
                    status: LOCAL_FAILURE_STATUS,
                    why: None,
                });
            }
            done => done.map_err(|why| Failure::new(FailureCode::Failure, why.to_string()))?,
        }
    }
    if has_pty && !is_quiet(settings) {
        terminal::print_message(&format!("connection to {} closed", settings.host_name));
    }
    match exit {
        Some(Exit::Status(status)) => Ok(narrow_int(status & 0xff)),
        Some(Exit::Signal { name, message, .. }) => {
            let mut what = format!(
                "the program was killed by SIG{}",
                sanitize_for_display(&name)
            );
            if !message.is_empty() {
                what = format!("{what}: {}", sanitize_for_display(&message));
            }
            Err(Failure::new(FailureCode::Failure, what))
        }
        None => Err(failed(
            &"the channel closed without an exit status of the program",
        )),
    }
}

/// Returns true if a terminal is to be requested (`RequestTTY`).
fn wants_terminal(settings: &SshSettings, what: &RemoteProgram, has_terminal: bool) -> bool {
    match settings.request_tty {
        RequestTty::No => false,
        RequestTty::Force => true,
        RequestTty::Auto => has_terminal && matches!(what, RemoteProgram::Shell),
        RequestTty::Yes => {
            if !has_terminal && !is_quiet(settings) {
                terminal::print_message(
                    "warning: no terminal is requested without a local one; -tt forces it",
                );
            }
            has_terminal
        }
    }
}

/// Everything to request for a program.
struct ProgramRequest {
    agent: bool,
    pty: Option<SshChannelRequest>,
    program: RemoteProgram,
}

/// Sends all requests without waiting in between, which takes one round trip. Returns true if a terminal was
/// allocated.
async fn send_program_requests(
    control: &ProgramControl,
    settings: &SshSettings,
    wants: ProgramRequest,
) -> Result<bool, RequestError> {
    let mut requests = Vec::new();
    if wants.agent {
        requests.push(SshChannelRequest::Agent);
    }
    requests.extend(environment_requests(settings));
    let pty_at = wants.pty.map(|pty| {
        requests.push(pty);
        requests.len() - 1
    });
    requests.push(match wants.program {
        RemoteProgram::Shell => SshChannelRequest::Shell,
        RemoteProgram::Command(command) => SshChannelRequest::Exec(command),
        RemoteProgram::Subsystem(name) => SshChannelRequest::Subsystem(name),
    });
    let asked = requests
        .into_iter()
        .map(|request| control.send_request(request));
    let mut answers = join_in_order(asked).await;
    // The last answer is for the program itself, which can run without the others.
    let started = answers.pop().unwrap_or(Err(RequestError::Closed));
    let mut has_pty = pty_at.is_some();
    for (at, answer) in answers.into_iter().enumerate() {
        if let Err(why) = answer {
            if pty_at == Some(at) {
                has_pty = false;
                terminal::print_message(&format!("warning: the host opened no terminal: {why}"));
            } else {
                debug!("{why}");
            }
        }
    }
    started.map(|()| has_pty)
}

/// Returns the requests for the environment variables to send (`SendEnv`, `SetEnv`).
fn environment_requests(settings: &SshSettings) -> Vec<SshChannelRequest> {
    let set = settings
        .set_env
        .iter()
        .map(|(name, value)| SshChannelRequest::Env {
            name: name.clone().into_bytes(),
            value: value.clone().into_bytes(),
        });
    let is_set = |name: &str| settings.set_env.iter().any(|(one, _)| one == name);
    let sent = std::env::vars_os().filter_map(|(name, value)| {
        let wanted = name
            .to_str()
            .is_some_and(|name| settings.sends_variable(name) && !is_set(name));
        wanted.then(|| SshChannelRequest::Env {
            name: platform::to_bytes(&name),
            value: platform::to_bytes(&value),
        })
    });
    sent.chain(set).collect()
}

/// Polls all futures, starting them in order, and returns their outputs in the same order.
async fn join_in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    let mut outcomes: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, outcome) in running.iter_mut().zip(&mut outcomes) {
            if outcome.is_none()
                && let Poll::Ready(done) = future.as_mut().poll(cx)
            {
                *outcome = Some(done);
            }
        }
        match outcomes.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    outcomes.into_iter().flatten().collect()
}
