//! Requests inside a channel (RFC 4254 section 6, and OpenSSH's extensions).

use adit_crypto::Secret;

use super::global::KEEPALIVE;
use super::{ChannelId, CustomMessage, PtyRequest, TerminalSize};
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// A request or a statement inside a channel.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SshChannelRequest {
    /// Requests a terminal.
    Pty(PtyRequest),
    /// Sets an environment variable for the program to start.
    Env {
        /// Name of the variable.
        name: Vec<u8>,
        /// Value of the variable.
        value: Vec<u8>,
    },
    /// Starts the user's shell.
    Shell,
    /// Executes a command.
    Exec(Vec<u8>),
    /// Starts a subsystem, such as `sftp`.
    Subsystem(String),
    /// Reports a new size of the terminal.
    WindowChange(TerminalSize),
    /// Sends a signal to the program: its name without SIG.
    Signal(String),
    /// Reports that the program has exited.
    ExitStatus(u32),
    /// Reports that a signal has terminated the program.
    ExitSignal {
        /// Name of the signal without SIG.
        name: String,
        /// True if a core was dumped.
        core_dumped: bool,
        /// Description of the error.
        message: String,
    },
    /// OpenSSH: data written to the peer from now on is discarded.
    EndOfWriting,
    /// Sends a break (RFC 4335); its length in milliseconds.
    Break(u32),
    /// Requests X11 forwarding to the client's display (section 6.3.1).
    X11 {
        /// Forward a single connection only.
        single: bool,
        /// X11 authentication protocol.
        protocol: String,
        /// X11 authentication cookie, in hexadecimal digits.
        cookie: Secret<String>,
        /// Screen number.
        screen: u32,
    },
    /// OpenSSH: requests forwarding of the client's agent.
    Agent,
    /// True if the client may do flow control with ^S and ^Q (section 6.8).
    FlowControl(bool),
    /// An application-defined request. In a channel of an application-defined type, all requests
    /// are, regardless of their name; in other channels, its name must not be one of the above.
    Custom(CustomMessage),
}

/// Names of the built-in requests, in channels of built-in types.
pub(super) const KNOWN: [&str; 15] = [
    "pty-req",
    "env",
    "shell",
    "exec",
    "subsystem",
    "window-change",
    "signal",
    "exit-status",
    "exit-signal",
    "eow@openssh.com",
    "break",
    "x11-req",
    "auth-agent-req@openssh.com",
    "xon-xoff",
    KEEPALIVE,
];

/// Indicates if the sender of a request wants an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantReply {
    /// An answer is wanted.
    Yes,
    /// No answer is wanted.
    No,
}

/// The obligation to answer a request of a channel. If it is dropped, the peer waits for this
/// answer and for those to later requests of the channel.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct PendingReply {
    pub(super) channel: ChannelId,
    pub(super) sequence: u64,
}

impl SshChannelRequest {
    /// Returns the name on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Pty(_) => "pty-req",
            Self::Env { .. } => "env",
            Self::Shell => "shell",
            Self::Exec(_) => "exec",
            Self::Subsystem(_) => "subsystem",
            Self::WindowChange(_) => "window-change",
            Self::Signal(_) => "signal",
            Self::ExitStatus(_) => "exit-status",
            Self::ExitSignal { .. } => "exit-signal",
            Self::EndOfWriting => "eow@openssh.com",
            Self::Break(_) => "break",
            Self::X11 { .. } => "x11-req",
            Self::Agent => "auth-agent-req@openssh.com",
            Self::FlowControl(_) => "xon-xoff",
            Self::Custom(own) => own.name(),
        }
    }

    /// True if `name` is a built-in request. In a channel of a built-in type, an
    /// application-defined request must not use it.
    #[must_use]
    pub fn is_builtin(name: &str) -> bool {
        KNOWN.contains(&name)
    }

    /// True if the protocol forbids an answer.
    #[must_use]
    pub const fn is_statement(&self) -> bool {
        matches!(
            self,
            Self::WindowChange(_)
                | Self::Signal(_)
                | Self::ExitStatus(_)
                | Self::ExitSignal { .. }
                | Self::EndOfWriting
                | Self::FlowControl(_)
        )
    }

    /// Parses the fields of a request; `None` if the name is unknown.
    pub(super) fn parse(name: &[u8], r: &mut MessageReader<'_>) -> Result<Option<Self>, SshError> {
        let request = match name {
            b"pty-req" => Self::Pty(PtyRequest::parse(r)?),
            b"env" => Self::Env {
                name: r.read_string()?.to_vec(),
                value: r.read_string()?.to_vec(),
            },
            b"shell" => Self::Shell,
            b"exec" => Self::Exec(r.read_string()?.to_vec()),
            b"subsystem" => Self::Subsystem(r.read_text()?.to_owned()),
            b"window-change" => Self::WindowChange(TerminalSize::parse(r)?),
            b"signal" => Self::Signal(r.read_text()?.to_owned()),
            b"exit-status" => Self::ExitStatus(r.read_u32()?),
            b"exit-signal" => {
                let name = r.read_text()?.to_owned();
                let core_dumped = r.read_bool()?;
                let message = String::from_utf8_lossy(r.read_string()?).into_owned();
                // The language of the message.
                r.read_string()?;
                Self::ExitSignal {
                    name,
                    core_dumped,
                    message,
                }
            }
            b"eow@openssh.com" => Self::EndOfWriting,
            b"break" => Self::Break(r.read_u32()?),
            b"x11-req" => Self::X11 {
                single: r.read_bool()?,
                protocol: r.read_text()?.to_owned(),
                cookie: Secret::new(r.read_text()?.to_owned()),
                screen: r.read_u32()?,
            },
            b"auth-agent-req@openssh.com" => Self::Agent,
            b"xon-xoff" => Self::FlowControl(r.read_bool()?),
            _ => return Ok(None),
        };
        r.expect_end()?;
        Ok(Some(request))
    }

    pub(super) fn encode_fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::Shell | Self::EndOfWriting | Self::Agent => {}
            Self::Pty(pty) => pty.encode(out),
            Self::Env { name, value } => {
                out.put_string(name);
                out.put_string(value);
            }
            Self::Exec(command) => out.put_string(command),
            Self::Subsystem(name) | Self::Signal(name) => out.put_string(name.as_bytes()),
            Self::WindowChange(size) => size.encode(out),
            Self::ExitStatus(number) | Self::Break(number) => out.put_u32(*number),
            Self::ExitSignal {
                name,
                core_dumped,
                message,
            } => {
                out.put_string(name.as_bytes());
                out.put_bool(*core_dumped);
                out.put_string(message.as_bytes());
                out.put_string(b"");
            }
            Self::X11 {
                single,
                protocol,
                cookie,
                screen,
            } => {
                out.put_bool(*single);
                out.put_string(protocol.as_bytes());
                out.put_string(cookie.expose().as_bytes());
                out.put_u32(*screen);
            }
            Self::FlowControl(allowed) => out.put_bool(*allowed),
            Self::Custom(own) => out.put_raw(own.data()),
        }
    }
}
