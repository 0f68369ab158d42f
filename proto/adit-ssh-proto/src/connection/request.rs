//! Requests inside a channel (RFC 4254 section 6 and OpenSSH's).

use adit_crypto::Secret;

use super::global::KEEPALIVE;
use super::{ChannelId, Own, Pty, Size};
use crate::error::SshError;
use crate::wire::{Put, Reader};

/// Something wanted, or told, inside a channel.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// A terminal.
    Pty(Pty),
    /// A variable for the program to come.
    Env {
        /// Its name.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// The user's shell.
    Shell,
    /// A command.
    Exec(Vec<u8>),
    /// A subsystem, such as `sftp`.
    Subsystem(String),
    /// The terminal's size has changed.
    WindowChange(Size),
    /// A signal for the program: its name without SIG.
    Signal(String),
    /// The program has ended.
    ExitStatus(u32),
    /// A signal has ended the program.
    ExitSignal {
        /// Its name without SIG.
        name: String,
        /// Whether a core was dumped.
        core_dumped: bool,
        /// Words about it.
        message: String,
    },
    /// OpenSSH: whatever is written to the peer now is lost.
    EndOfWrite,
    /// A break (RFC 4335), in milliseconds.
    Break(u32),
    /// Windows for the client's display (section 6.3.1).
    X11 {
        /// One connection only.
        single: bool,
        /// The protocol of the cookie.
        protocol: String,
        /// The cookie, in hexadecimal digits.
        cookie: Secret<String>,
        /// The screen.
        screen: u32,
    },
    /// OpenSSH: the client's agent.
    Agent,
    /// Whether the client may do flow control by ^S and ^Q itself (section 6.8).
    FlowControl(bool),
    /// A request of the program's own. In a channel of a type of its own all are, whatever their
    /// name; in others the names of those above are not for it.
    Own(Own),
}

/// The requests that are known here, in channels of types that are.
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

/// Whether an answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantReply {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// The duty to answer a request of a channel. If it is dropped the peer waits, and so do the
/// answers to later requests of this channel.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct ReplyTo {
    pub(super) channel: ChannelId,
    pub(super) sequence: u64,
}

impl Request {
    /// The name on the wire.
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
            Self::EndOfWrite => "eow@openssh.com",
            Self::Break(_) => "break",
            Self::X11 { .. } => "x11-req",
            Self::Agent => "auth-agent-req@openssh.com",
            Self::FlowControl(_) => "xon-xoff",
            Self::Own(own) => own.name(),
        }
    }

    /// Whether a name is one that is known here. In a channel of a known type it is none of a
    /// program's own.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        KNOWN.contains(&name)
    }

    /// Whether the protocol forbids an answer.
    #[must_use]
    pub const fn is_statement(&self) -> bool {
        matches!(
            self,
            Self::WindowChange(_)
                | Self::Signal(_)
                | Self::ExitStatus(_)
                | Self::ExitSignal { .. }
                | Self::EndOfWrite
                | Self::FlowControl(_)
        )
    }

    /// Reads the fields of a request; `None` if nobody knows its name.
    pub(super) fn parse(name: &[u8], r: &mut Reader<'_>) -> Result<Option<Self>, SshError> {
        let request = match name {
            b"pty-req" => Self::Pty(Pty::parse(r)?),
            b"env" => Self::Env {
                name: r.string()?.to_vec(),
                value: r.string()?.to_vec(),
            },
            b"shell" => Self::Shell,
            b"exec" => Self::Exec(r.string()?.to_vec()),
            b"subsystem" => Self::Subsystem(r.text()?.to_owned()),
            b"window-change" => Self::WindowChange(Size::parse(r)?),
            b"signal" => Self::Signal(r.text()?.to_owned()),
            b"exit-status" => Self::ExitStatus(r.u32()?),
            b"exit-signal" => {
                let name = r.text()?.to_owned();
                let core_dumped = r.boolean()?;
                let message = String::from_utf8_lossy(r.string()?).into_owned();
                // The language of the message.
                r.string()?;
                Self::ExitSignal {
                    name,
                    core_dumped,
                    message,
                }
            }
            b"eow@openssh.com" => Self::EndOfWrite,
            b"break" => Self::Break(r.u32()?),
            b"x11-req" => Self::X11 {
                single: r.boolean()?,
                protocol: r.text()?.to_owned(),
                cookie: Secret::new(r.text()?.to_owned()),
                screen: r.u32()?,
            },
            b"auth-agent-req@openssh.com" => Self::Agent,
            b"xon-xoff" => Self::FlowControl(r.boolean()?),
            _ => return Ok(None),
        };
        r.end()?;
        Ok(Some(request))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Shell | Self::EndOfWrite | Self::Agent => {}
            Self::Pty(pty) => pty.put(out),
            Self::Env { name, value } => {
                out.put_string(name);
                out.put_string(value);
            }
            Self::Exec(command) => out.put_string(command),
            Self::Subsystem(name) | Self::Signal(name) => out.put_string(name.as_bytes()),
            Self::WindowChange(size) => size.put(out),
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
            Self::Own(own) => out.put_raw(own.data()),
        }
    }
}
