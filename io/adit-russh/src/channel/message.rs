//! Messages received in a channel.

use std::fmt;

use adit_ssh::messages::Message;
use adit_ssh_proto::connection::{DataKind, SshChannelRequest};
use bytes::Bytes;

use crate::session_core::CHANNEL_STDERR;
use crate::{Pty, Sig, pty};

/// A message received in a channel.
#[non_exhaustive]
pub enum ChannelMsg {
    /// Bytes.
    Data {
        /// The bytes.
        data: Bytes,
    },
    /// Bytes of another stream: standard error.
    ExtendedData {
        /// The bytes.
        data: Bytes,
        /// The stream: 1, standard error.
        ext: u32,
    },
    /// The peer sends no more bytes.
    Eof,
    /// The channel has closed.
    Close,
    /// A request for a terminal.
    RequestPty {
        /// True if the peer wants a reply.
        want_reply: bool,
        /// The terminal type, as in the variable `TERM`.
        term: String,
        /// Width in columns.
        col_width: u32,
        /// Height in rows.
        row_height: u32,
        /// Width in pixels.
        pix_width: u32,
        /// Height in pixels.
        pix_height: u32,
        /// The terminal modes.
        terminal_modes: Vec<(Pty, u32)>,
    },
    /// A request for the user's shell.
    RequestShell {
        /// True if the peer wants a reply.
        want_reply: bool,
    },
    /// A request to run a command.
    Exec {
        /// True if the peer wants a reply.
        want_reply: bool,
        /// The command.
        command: Vec<u8>,
    },
    /// A signal for the program.
    Signal {
        /// The signal.
        signal: Sig,
    },
    /// A request for a subsystem.
    RequestSubsystem {
        /// True if the peer wants a reply.
        want_reply: bool,
        /// The subsystem's name.
        name: String,
    },
    /// A request to forward X11 connections to the client's display.
    RequestX11 {
        /// True if the peer wants a reply.
        want_reply: bool,
        /// True if only one connection is to be forwarded.
        single_connection: bool,
        /// The authentication protocol of the cookie.
        x11_authentication_protocol: String,
        /// The cookie, in hexadecimal digits.
        x11_authentication_cookie: String,
        /// The screen number.
        x11_screen_number: u32,
    },
    /// A request to set an environment variable.
    SetEnv {
        /// True if the peer wants a reply.
        want_reply: bool,
        /// The variable's name.
        variable_name: String,
        /// The variable's value.
        variable_value: String,
    },
    /// The terminal's size has changed.
    WindowChange {
        /// Width in columns.
        col_width: u32,
        /// Height in rows.
        row_height: u32,
        /// Width in pixels.
        pix_width: u32,
        /// Height in pixels.
        pix_height: u32,
    },
    /// A request to forward the client's agent.
    AgentForward {
        /// True if the peer wants a reply.
        want_reply: bool,
    },
    /// A notification about client-side flow control.
    XonXoff {
        /// True if the client may handle flow control itself.
        client_can_do: bool,
    },
    /// The program has exited.
    ExitStatus {
        /// The exit status.
        exit_status: u32,
    },
    /// A signal has terminated the program.
    ExitSignal {
        /// The signal.
        signal_name: Sig,
        /// True if the program dumped core.
        core_dumped: bool,
        /// The error message, which may contain any characters.
        error_message: String,
        /// The message's language: always empty.
        lang_tag: String,
    },
    /// An exhausted window was extended.
    WindowAdjusted {
        /// Maximum size of the next data message, in bytes.
        new_size: u32,
    },
    /// A request was granted.
    Success,
    /// A request was refused.
    Failure,
}

impl ChannelMsg {
    /// Converts a message; returns `None` for a request without an equivalent here.
    pub(crate) fn from_message(message: Message) -> Option<Self> {
        Some(match message {
            Message::Data(kind, data) => {
                let data = Bytes::from_owner(data);
                match kind {
                    DataKind::Stdout => Self::Data { data },
                    DataKind::Stderr => Self::ExtendedData {
                        data,
                        ext: CHANNEL_STDERR,
                    },
                }
            }
            Message::Request {
                request,
                wants_reply,
            } => return Self::from_request(&request, wants_reply),
            Message::Answer(true) => Self::Success,
            Message::Answer(false) => Self::Failure,
            Message::Capacity(room) => Self::WindowAdjusted {
                new_size: u32::try_from(room).unwrap_or(u32::MAX),
            },
            Message::Eof => Self::Eof,
            Message::Closed => Self::Close,
            _ => return None,
        })
    }

    /// Converts a request for the reader of the channel.
    fn from_request(request: &SshChannelRequest, want_reply: bool) -> Option<Self> {
        Some(match request {
            SshChannelRequest::Pty(wanted) => Self::RequestPty {
                want_reply,
                term: wanted.term.clone(),
                col_width: wanted.size.columns,
                row_height: wanted.size.rows,
                pix_width: wanted.size.width,
                pix_height: wanted.size.height,
                terminal_modes: pty::named_modes(&wanted.modes),
            },
            SshChannelRequest::Env { name, value } => Self::SetEnv {
                want_reply,
                variable_name: String::from_utf8_lossy(name).into_owned(),
                variable_value: String::from_utf8_lossy(value).into_owned(),
            },
            SshChannelRequest::Shell => Self::RequestShell { want_reply },
            SshChannelRequest::Exec(command) => Self::Exec {
                want_reply,
                command: command.clone(),
            },
            SshChannelRequest::Subsystem(name) => Self::RequestSubsystem {
                want_reply,
                name: name.clone(),
            },
            SshChannelRequest::WindowChange(size) => Self::WindowChange {
                col_width: size.columns,
                row_height: size.rows,
                pix_width: size.width,
                pix_height: size.height,
            },
            SshChannelRequest::Signal(name) => Self::Signal {
                signal: Sig::from_name(name),
            },
            SshChannelRequest::ExitStatus(exit_status) => Self::ExitStatus {
                exit_status: *exit_status,
            },
            SshChannelRequest::ExitSignal {
                name,
                core_dumped,
                message,
            } => Self::ExitSignal {
                signal_name: Sig::from_name(name),
                core_dumped: *core_dumped,
                error_message: message.clone(),
                lang_tag: String::new(),
            },
            SshChannelRequest::X11 {
                single,
                protocol,
                cookie,
                screen,
            } => Self::RequestX11 {
                want_reply,
                single_connection: *single,
                x11_authentication_protocol: protocol.clone(),
                x11_authentication_cookie: cookie.expose().clone(),
                x11_screen_number: *screen,
            },
            SshChannelRequest::Agent => Self::AgentForward { want_reply },
            SshChannelRequest::FlowControl(client_can_do) => Self::XonXoff {
                client_can_do: *client_can_do,
            },
            _ => return None,
        })
    }
}

/// As derived, except for the cookie, which grants access to the client's display.
impl fmt::Debug for ChannelMsg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! shown {
            ($($variant:ident { $($field:ident),* })*) => {
                match self {
                    Self::RequestX11 {
                        want_reply,
                        single_connection,
                        x11_authentication_protocol,
                        x11_authentication_cookie: _,
                        x11_screen_number,
                    } => f
                        .debug_struct("RequestX11")
                        .field("want_reply", want_reply)
                        .field("single_connection", single_connection)
                        .field("x11_authentication_protocol", x11_authentication_protocol)
                        .field("x11_authentication_cookie", &"***")
                        .field("x11_screen_number", x11_screen_number)
                        .finish(),
                    $(Self::$variant { $($field),* } => f
                        .debug_struct(stringify!($variant))
                        $(.field(stringify!($field), $field))*
                        .finish(),)*
                }
            };
        }
        shown! {
            Data { data }
            ExtendedData { data, ext }
            Eof {}
            Close {}
            RequestPty {
                want_reply, term, col_width, row_height, pix_width, pix_height, terminal_modes
            }
            RequestShell { want_reply }
            Exec { want_reply, command }
            Signal { signal }
            RequestSubsystem { want_reply, name }
            SetEnv { want_reply, variable_name, variable_value }
            WindowChange { col_width, row_height, pix_width, pix_height }
            AgentForward { want_reply }
            XonXoff { client_can_do }
            ExitStatus { exit_status }
            ExitSignal { signal_name, core_dumped, error_message, lang_tag }
            WindowAdjusted { new_size }
            Success {}
            Failure {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_shown_but_the_cookie() {
        let asked = ChannelMsg::RequestX11 {
            want_reply: true,
            single_connection: false,
            x11_authentication_protocol: "MIT-MAGIC-COOKIE-1".to_owned(),
            x11_authentication_cookie: "0123abcd".to_owned(),
            x11_screen_number: 3,
        };
        assert_eq!(
            format!("{asked:?}"),
            "RequestX11 { want_reply: true, single_connection: false, \
             x11_authentication_protocol: \"MIT-MAGIC-COOKIE-1\", \
             x11_authentication_cookie: \"***\", x11_screen_number: 3 }"
        );
        assert_eq!(format!("{:?}", ChannelMsg::Eof), "Eof");
        let data = Bytes::from_static(b"x");
        let shown = format!("{:?}", ChannelMsg::ExtendedData { data, ext: 1 });
        assert_eq!(shown, "ExtendedData { data: b\"x\", ext: 1 }");
    }
}
