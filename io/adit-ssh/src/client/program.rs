//! A program, a shell or a subsystem on the server.

use std::io;

use adit_ssh_proto::connection::{Kind, Pty, Request, Size, WantReply};
use tokio::io::AsyncReadExt;

use crate::channel::{Channel, ChannelReader, Handle};
use crate::error::RequestError;

/// A channel for one program: first what it needs is asked for, then [`exec`](Self::exec),
/// [`shell`](Self::shell) or [`subsystem`](Self::subsystem), once.
///
/// Its standard output and its standard error share one window: who reads only one of them uses
/// [`into_channel`](Self::into_channel) or [`into_parts`](Self::into_parts) and drops the other.
#[derive(Debug)]
pub struct Program {
    control: ProgramControl,
    channel: Channel,
    stderr: ChannelReader,
}

/// What can be done to a program while others move its bytes.
#[derive(Debug, Clone)]
pub struct ProgramControl(Handle);

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// By itself.
    Status(u32),
    /// By a signal.
    Signal {
        /// Its name without SIG.
        name: String,
        /// Whether a core was dumped.
        core_dumped: bool,
        /// The server's words about it, any characters.
        message: String,
    },
}

/// What a program has printed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// How it ended; `None` if the server did not tell.
    pub exit: Option<Exit>,
}

impl Program {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            stderr: ChannelReader::new(handle.clone(), Kind::Stderr),
            control: ProgramControl(handle.clone()),
            channel: Channel::new(handle),
        }
    }

    /// What can be done to it while others move its bytes.
    #[must_use]
    pub const fn control(&self) -> &ProgramControl {
        &self.control
    }

    /// Starts a command; when this is done it runs.
    ///
    /// # Errors
    /// The server refused it, or the channel is gone.
    pub async fn exec(&self, command: impl Into<Vec<u8>>) -> Result<(), RequestError> {
        self.control.request(Request::Exec(command.into())).await
    }

    /// Starts the user's shell.
    ///
    /// # Errors
    /// As [`Program::exec`].
    pub async fn shell(&self) -> Result<(), RequestError> {
        self.control.request(Request::Shell).await
    }

    /// Starts a subsystem, such as `sftp`.
    ///
    /// # Errors
    /// As [`Program::exec`].
    pub async fn subsystem(&self, name: impl Into<String>) -> Result<(), RequestError> {
        self.control.request(Request::Subsystem(name.into())).await
    }

    /// Its standard input and output.
    pub const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Its standard error.
    pub const fn stderr(&mut self) -> &mut ChannelReader {
        &mut self.stderr
    }

    /// Its standard input and output; its standard error is thrown away.
    #[must_use]
    pub fn into_channel(self) -> Channel {
        self.channel
    }

    /// All of it apart: control, standard input and output, standard error.
    #[must_use]
    pub fn into_parts(self) -> (ProgramControl, Channel, ChannelReader) {
        (self.control, self.channel, self.stderr)
    }

    /// Runs a command without input to its end and keeps all it prints.
    ///
    /// # Errors
    /// The server refused it, or the session failed meanwhile.
    pub async fn output(self, command: impl Into<Vec<u8>>) -> io::Result<Output> {
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
        let exit = control.wait().await;
        Ok(Output {
            stdout,
            stderr,
            exit,
        })
    }
}

impl ProgramControl {
    /// Wants a terminal. Before the program starts.
    ///
    /// # Errors
    /// The server refused it, or the channel is gone.
    pub async fn pty(&self, pty: Pty) -> Result<(), RequestError> {
        self.request(Request::Pty(pty)).await
    }

    /// Sets a variable. Servers take only a few names. Before the program starts.
    ///
    /// # Errors
    /// The server refused it, or the channel is gone.
    pub async fn env(
        &self,
        name: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
    ) -> Result<(), RequestError> {
        self.request(Request::Env {
            name: name.into(),
            value: value.into(),
        })
        .await
    }

    /// Lets the program use our agent, by
    /// [`Session::agent_channels`](super::Session::agent_channels). Before it starts.
    ///
    /// # Errors
    /// The server refused it, or the channel is gone.
    pub async fn forward_agent(&self) -> Result<(), RequestError> {
        self.request(Request::Agent).await
    }

    /// Tells the terminal's new size.
    ///
    /// # Errors
    /// The channel is gone.
    pub async fn window_change(&self, size: Size) -> Result<(), RequestError> {
        self.request(Request::WindowChange(size)).await
    }

    /// Sends a signal, by its name without SIG. Not all servers pass it on.
    ///
    /// # Errors
    /// The channel is gone.
    pub async fn signal(&self, name: impl Into<String>) -> Result<(), RequestError> {
        self.request(Request::Signal(name.into())).await
    }

    /// Any other request of [`Request`]; waits for the answer if it has one.
    ///
    /// # Errors
    /// The server refused it, or the channel is gone.
    pub async fn request(&self, request: Request) -> Result<(), RequestError> {
        self.0.pipe().ask(request, WantReply::Yes).await
    }

    /// Waits until the program has ended; `None` if the channel closed without a word about it.
    pub async fn wait(&self) -> Option<Exit> {
        let ended = self.0.pipe().until(|state| {
            state.exit.as_ref().map(|exit| match exit {
                Request::ExitSignal {
                    name,
                    core_dumped,
                    message,
                } => Some(Exit::Signal {
                    name: name.clone(),
                    core_dumped: *core_dumped,
                    message: message.clone(),
                }),
                Request::ExitStatus(status) => Some(Exit::Status(*status)),
                _ => None,
            })
        });
        ended.await.flatten()
    }

    /// Waits until the channel has closed, whoever closed it.
    pub async fn closed(&self) {
        self.0.pipe().until(|_| None::<()>).await;
    }
}
