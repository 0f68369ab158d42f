//! A session channel: the requests of the client until its program starts.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{env, fmt};

use adit_net::child::login;
use adit_net::child::terminal::PseudoTerminal;
use adit_ssh::server::{RequestReply, ServerHandle, ServerSession};
use adit_ssh_proto::auth::sanitize_for_display;
use adit_ssh_proto::connection::{self, PtyRequest, SshChannelRequest};
use tracing::{debug, warn};

use super::agent::AgentSocket;
use super::client_connection::ClientConnection;
use super::environment::Environment;
use super::program;
use super::program::RunningProgram;
use super::settings::{INTERNAL_SFTP, is_internal_sftp};
use crate::terminal_modes;

/// The program that a client requests.
enum RequestedProgram {
    Shell,
    Command(Vec<u8>),
    Subsystem(String),
}

/// The setup of a program, as requested so far.
struct SessionSetup {
    visit: Arc<ClientConnection>,
    environment: Environment,
    /// The terminal, and the end for the program.
    terminal: Option<(PseudoTerminal, OwnedFd)>,
    agent: Option<AgentSocket>,
}

/// Serves a channel: collects requests, then runs the program.
pub(super) async fn serve_session(
    visit: Arc<ClientConnection>,
    handle: ServerHandle,
    session: ServerSession,
) {
    let mut draft = SessionSetup {
        environment: visit.environment.clone(),
        visit,
        terminal: None,
        agent: None,
    };
    while let Some(next) = session.next_request().await {
        let (request, reply) = (next.request, next.reply);
        let granted = match request {
            SshChannelRequest::Env { name, value } => {
                let accepted = &draft.visit.settings.accept_env;
                draft
                    .environment
                    .accept_client_variable(&name, &value, accepted)
            }
            SshChannelRequest::Pty(pty) => draft.open_terminal(&pty),
            SshChannelRequest::WindowChange(size) => draft.resize_terminal(size),
            SshChannelRequest::Agent => draft.open_agent(handle.clone()),
            SshChannelRequest::Shell => {
                return draft.run(RequestedProgram::Shell, reply, session).await;
            }
            SshChannelRequest::Exec(command) => {
                return draft
                    .run(RequestedProgram::Command(command), reply, session)
                    .await;
            }
            SshChannelRequest::Subsystem(name) => {
                return draft
                    .run(RequestedProgram::Subsystem(name), reply, session)
                    .await;
            }
            _ => false,
        };
        if granted {
            reply.grant();
        } else {
            reply.refuse();
        }
    }
}

impl SessionSetup {
    /// Opens a pseudo-terminal; returns true on success.
    fn open_terminal(&mut self, pty: &PtyRequest) -> bool {
        if !self.visit.grant.pty || self.terminal.is_some() {
            return false;
        }
        let opened = PseudoTerminal::open().and_then(|(terminal, theirs)| {
            terminal.resize(program::to_terminal_size(pty.size))?;
            terminal_modes::apply_modes(&theirs, &pty.modes)?;
            Ok((terminal, theirs))
        });
        match opened {
            Ok((terminal, theirs)) => {
                if !pty.term.is_empty() {
                    self.environment.set_variable("TERM", &pty.term);
                }
                self.environment.set_variable("SSH_TTY", terminal.name());
                self.terminal = Some((terminal, theirs));
                true
            }
            Err(why) => {
                warn!("{}: cannot open a terminal: {why}", self.visit.from);
                false
            }
        }
    }

    /// Resizes the terminal; returns true on success.
    fn resize_terminal(&self, size: connection::TerminalSize) -> bool {
        let terminal = self.terminal.as_ref();
        terminal
            .is_some_and(|(terminal, _)| terminal.resize(program::to_terminal_size(size)).is_ok())
    }

    /// Opens the socket of a forwarded agent; returns true on success.
    fn open_agent(&mut self, handle: ServerHandle) -> bool {
        if !self.visit.grant.agent_forwarding || self.agent.is_some() {
            return false;
        }
        match AgentSocket::open(Arc::clone(&self.visit), handle) {
            Ok(socket) => {
                self.environment
                    .set_variable("SSH_AUTH_SOCK", socket.path());
                self.agent = Some(socket);
                true
            }
            Err(why) => {
                warn!("{}: cannot open an agent socket: {why}", self.visit.from);
                false
            }
        }
    }

    /// Runs the requested or the forced program until it exits.
    async fn run(mut self, wanted: RequestedProgram, reply: RequestReply, session: ServerSession) {
        let from = self.visit.from;
        let Some(mut command) = self.build_command(&wanted) else {
            debug!("{from}: the subsystem does not exist");
            return reply.refuse();
        };
        let account = &self.visit.settings.account;
        let home = match account.home.is_dir() {
            true => &account.home,
            false => Path::new("/"),
        };
        command.env_clear();
        // The internal SFTP server needs no variables, and a client must not influence its start.
        if !self
            .visit
            .grant
            .command
            .as_deref()
            .is_some_and(is_internal_sftp)
        {
            command.envs(self.environment.merged_variables());
        }
        command.current_dir(home);
        let started = match self.terminal.take() {
            Some((terminal, theirs)) => {
                let started = login::spawn_with_terminal(command, theirs).await;
                started.map(|leash| RunningProgram::Terminal(leash, terminal))
            }
            None => login::spawn_with_pipes(command)
                .await
                .map(RunningProgram::Piped),
        };
        match started {
            Ok(program) => {
                debug!("{from}: started {wanted}");
                let signals = self.visit.grant.command.is_none();
                reply.grant();
                program.run_to_end(session, signals).await;
            }
            Err(why) => {
                warn!("{from}: cannot start {wanted}: {why}");
                reply.refuse();
            }
        }
    }

    /// Returns the command to start, without environment; `None` for an unknown subsystem.
    fn build_command(&mut self, wanted: &RequestedProgram) -> Option<Command> {
        let account = Arc::clone(&self.visit.settings.account);
        let by_shell = |line: &OsStr| {
            let mut command = Command::new(&account.shell);
            command.arg0(account.shell_name("")).arg("-c").arg(line);
            command
        };
        let Some(forced) = &self.visit.grant.command else {
            return Some(match wanted {
                RequestedProgram::Shell => {
                    let mut command = Command::new(&account.shell);
                    command.arg0(account.shell_name("-"));
                    command
                }
                RequestedProgram::Command(line) => by_shell(OsStr::from_bytes(line)),
                RequestedProgram::Subsystem(name) if name == "sftp" => {
                    sftp_server_command([].into_iter())
                }
                RequestedProgram::Subsystem(_) => return None,
            });
        };
        let original = match wanted {
            RequestedProgram::Shell => None,
            RequestedProgram::Command(line) => Some(OsStr::from_bytes(line)),
            RequestedProgram::Subsystem(name) => Some(OsStr::new(name)),
        };
        if let Some(original) = original {
            self.environment
                .set_variable("SSH_ORIGINAL_COMMAND", original);
        }
        let mut words = forced.split_whitespace();
        Some(match words.next() {
            Some(INTERNAL_SFTP) => {
                let mut command = sftp_server_command(words);
                for path in &self.visit.settings.protected {
                    command.arg("--protect").arg(path);
                }
                command
            }
            _ => by_shell(OsStr::new(forced)),
        })
    }
}

/// Returns the command of the SFTP server: this program in a new process, even if its file has been moved.
fn sftp_server_command<'a>(options: impl Iterator<Item = &'a str>) -> Command {
    let program = if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        env::current_exe().unwrap_or_else(|_| "adit".into())
    };
    let mut command = Command::new(program);
    command.arg0("adit").arg("sftp-server").args(options);
    command
}

impl fmt::Display for RequestedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell => f.write_str("a shell"),
            // Commands may contain secrets.
            Self::Command(_) => f.write_str("a command"),
            Self::Subsystem(name) => write!(f, "the subsystem {:?}", sanitize_for_display(name)),
        }
    }
}
