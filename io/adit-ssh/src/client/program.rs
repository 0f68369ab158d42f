//! Programs, shells and subsystems on the server.

use std::io;

use adit_ssh_proto::connection::{
    DataKind, PtyRequest, SshChannelRequest, TerminalSize, WantReply,
};
use tokio::io::AsyncReadExt;

use crate::channel::{Channel, ChannelHandle, ChannelReader};
use crate::error::RequestError;

/// A channel for one program. First request what the program needs, then call one of
/// [`exec`](Self::exec), [`start_shell`](Self::start_shell) or [`start_subsystem`](Self::start_subsystem), once.
///
/// Standard output and standard error share one window: to read only one of them, use
/// [`into_channel`](Self::into_channel) or [`into_parts`](Self::into_parts) and drop the other.
#[derive(Debug)]
pub struct Program {
    control: ProgramControl,
    channel: Channel,
    stderr: ChannelReader,
}

/// A handle to control a program while other tasks move its bytes.
#[derive(Debug, Clone)]
pub struct ProgramControl(ChannelHandle);

/// The exit status of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// The program exited with this status.
    Status(u32),
    /// The program was terminated by a signal.
    Signal {
        /// The signal's name without `SIG`.
        name: String,
        /// True if the program dumped core.
        core_dumped: bool,
        /// The server's message about it, which may contain any characters.
        message: String,
    },
}

/// The output and the exit status of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The program's standard output.
    pub stdout: Vec<u8>,
    /// The program's standard error.
    pub stderr: Vec<u8>,
    /// The exit status; `None` if the server did not report one.
    pub exit: Option<Exit>,
}

impl Program {
    pub(super) fn new(handle: ChannelHandle) -> Self {
        Self {
            stderr: ChannelReader::new(handle.clone(), DataKind::Stderr),
            control: ProgramControl(handle.clone()),
            channel: Channel::new(handle),
        }
    }

    /// Returns a handle to control the program while other tasks move its bytes.
    #[must_use]
    pub const fn control(&self) -> &ProgramControl {
        &self.control
    }

    /// Starts a command. Once this returns, the command runs.
    ///
    /// # Errors
    /// The server refused it, or the channel is closed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn exec(&self, command: impl Into<Vec<u8>>) -> Result<(), RequestError> {
        self.control
            .send_request(SshChannelRequest::Exec(command.into()))
            .await
    }

    /// Starts the user's shell.
    ///
    /// # Errors
    /// The errors of [`Program::exec`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn start_shell(&self) -> Result<(), RequestError> {
        self.control.send_request(SshChannelRequest::Shell).await
    }

    /// Starts a subsystem, such as `sftp`.
    ///
    /// # Errors
    /// The errors of [`Program::exec`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn start_subsystem(&self, name: impl Into<String>) -> Result<(), RequestError> {
        self.control
            .send_request(SshChannelRequest::Subsystem(name.into()))
            .await
    }

    /// Returns the program's standard input and output.
    pub const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Returns the program's standard error.
    pub const fn stderr(&mut self) -> &mut ChannelReader {
        &mut self.stderr
    }

    /// Converts this into the program's standard input and output; its standard error is discarded.
    #[must_use]
    pub fn into_channel(self) -> Channel {
        self.channel
    }

    /// Splits this into the control handle, standard input and output, and standard error.
    #[must_use]
    pub fn into_parts(self) -> (ProgramControl, Channel, ChannelReader) {
        (self.control, self.channel, self.stderr)
    }

    /// Runs a command without input until it exits and collects its output.
    ///
    /// # Errors
    /// The server refused it, or the session failed meanwhile.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the channel is closed. The command may have run.
    pub async fn collect_output(self, command: impl Into<Vec<u8>>) -> io::Result<Output> {
        let started = self.exec(command).await;
        started.map_err(RequestError::into_io)?;
        let (control, channel, mut errors) = self.into_parts();
        let (mut reader, writer) = channel.into_split();
        drop(writer);
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        tokio::try_join!(
            reader.read_to_end(&mut stdout),
            errors.read_to_end(&mut stderr)
        )?;
        let exit = control.wait_exit().await;
        Ok(Output {
            stdout,
            stderr,
            exit,
        })
    }
}

impl ProgramControl {
    /// Requests a terminal. Call it before you start the program.
    ///
    /// # Errors
    /// The server refused it, or the channel is closed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn request_pty(&self, pty: PtyRequest) -> Result<(), RequestError> {
        self.send_request(SshChannelRequest::Pty(pty)).await
    }

    /// Sets an environment variable. Servers accept only a few names. Call it before you start the
    /// program.
    ///
    /// # Errors
    /// The server refused it, or the channel is closed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn set_env(
        &self,
        name: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
    ) -> Result<(), RequestError> {
        self.send_request(SshChannelRequest::Env {
            name: name.into(),
            value: value.into(),
        })
        .await
    }

    /// Lets the program use the local agent, through
    /// [`Session::agent_channels`](super::Session::agent_channels). Call it before you start the
    /// program.
    ///
    /// # Errors
    /// The server refused it, or the channel is closed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn forward_agent(&self) -> Result<(), RequestError> {
        self.send_request(SshChannelRequest::Agent).await
    }

    /// Sends the terminal's new size.
    ///
    /// # Errors
    /// The channel is closed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn send_window_change(&self, size: TerminalSize) -> Result<(), RequestError> {
        self.send_request(SshChannelRequest::WindowChange(size))
            .await
    }

    /// Sends a signal, by its name without `SIG`. Not all servers deliver it.
    ///
    /// # Errors
    /// The channel is closed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn send_signal(&self, name: impl Into<String>) -> Result<(), RequestError> {
        self.send_request(SshChannelRequest::Signal(name.into()))
            .await
    }

    /// Sends any other `SshChannelRequest` and waits for the answer if it has one.
    ///
    /// # Errors
    /// The server refused it, or the channel is closed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn send_request(&self, request: SshChannelRequest) -> Result<(), RequestError> {
        self.0.pipe().send_request(request, WantReply::Yes).await
    }

    /// Waits until the program has exited; `None` if the channel closed without an exit status.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn wait_exit(&self) -> Option<Exit> {
        let ended = self.0.pipe().wait_until(|state| {
            state.exit.as_ref().map(|exit| match exit {
                SshChannelRequest::ExitSignal {
                    name,
                    core_dumped,
                    message,
                } => Some(Exit::Signal {
                    name: name.clone(),
                    core_dumped: *core_dumped,
                    message: message.clone(),
                }),
                SshChannelRequest::ExitStatus(status) => Some(Exit::Status(*status)),
                _ => None,
            })
        });
        ended.await.flatten()
    }

    /// Waits until the channel has closed, at either end.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn wait_closed(&self) {
        self.0.pipe().wait_until(|_| None::<()>).await;
    }
}
