//! What comes in a channel.

use std::fmt;

use adit_ssh::messages::Message;
use adit_ssh_proto::connection::{Kind, Request};
use bytes::Bytes;

use crate::core::CHANNEL_STDERR;
use crate::{Pty, Sig, pty};

/// What comes in a channel.
#[non_exhaustive]
pub enum ChannelMsg {
    /// Bytes.
    Data {
        /// They.
        data: Bytes,
    },
    /// Bytes of another stream: standard error.
    ExtendedData {
        /// They.
        data: Bytes,
        /// 1, standard error.
        ext: u32,
    },
    /// The peer sends no more bytes.
    Eof,
    /// The channel has closed.
    Close,
    /// A terminal is wanted.
    RequestPty {
        /// Whether an answer is.
        want_reply: bool,
        /// Its type, as in the variable TERM.
        term: String,
        /// Characters in a row.
        col_width: u32,
        /// Rows.
        row_height: u32,
        /// Width in pixels.
        pix_width: u32,
        /// Height in pixels.
        pix_height: u32,
        /// Its modes.
        terminal_modes: Vec<(Pty, u32)>,
    },
    /// The user's shell is wanted.
    RequestShell {
        /// Whether an answer is.
        want_reply: bool,
    },
    /// A command is wanted.
    Exec {
        /// Whether an answer is.
        want_reply: bool,
        /// The command.
        command: Vec<u8>,
    },
    /// A signal for the program.
    Signal {
        /// Which.
        signal: Sig,
    },
    /// A subsystem is wanted.
    RequestSubsystem {
        /// Whether an answer is.
        want_reply: bool,
        /// Its name.
        name: String,
    },
    /// Windows for the client's display are wanted.
    RequestX11 {
        /// Whether an answer is.
        want_reply: bool,
        /// For one connection.
        single_connection: bool,
        /// The protocol of the cookie.
        x11_authentication_protocol: String,
        /// The cookie, in hexadecimal digits.
        x11_authentication_cookie: String,
        /// The screen.
        x11_screen_number: u32,
    },
    /// A variable is to be set.
    SetEnv {
        /// Whether an answer is wanted.
        want_reply: bool,
        /// Its name.
        variable_name: String,
        /// Its value.
        variable_value: String,
    },
    /// The terminal has another size.
    WindowChange {
        /// Characters in a row.
        col_width: u32,
        /// Rows.
        row_height: u32,
        /// Width in pixels.
        pix_width: u32,
        /// Height in pixels.
        pix_height: u32,
    },
    /// The client's agent may be used.
    AgentForward {
        /// Whether an answer is wanted.
        want_reply: bool,
    },
    /// Whether the client may do flow control itself.
    XonXoff {
        /// It may.
        client_can_do: bool,
    },
    /// The program has ended.
    ExitStatus {
        /// With this.
        exit_status: u32,
    },
    /// A signal has ended the program.
    ExitSignal {
        /// Which.
        signal_name: Sig,
        /// A core was dumped.
        core_dumped: bool,
        /// Words about it, any characters.
        error_message: String,
        /// Their language: always empty.
        lang_tag: String,
    },
    /// A window that was used up has room again.
    WindowAdjusted {
        /// Octets that the next message may have.
        new_size: u32,
    },
    /// A request was granted.
    Success,
    /// A request was refused.
    Failure,
}

impl ChannelMsg {
    /// `None` for a request that has no name here.
    pub(crate) fn of(message: Message) -> Option<Self> {
        Some(match message {
            Message::Data(kind, data) => {
                let data = Bytes::from_owner(data);
                match kind {
                    Kind::Stdout => Self::Data { data },
                    Kind::Stderr => Self::ExtendedData {
                        data,
                        ext: CHANNEL_STDERR,
                    },
                }
            }
            Message::Request {
                request,
                wants_reply,
            } => return Self::asked(&request, wants_reply),
            Message::Answer(true) => Self::Success,
            Message::Answer(false) => Self::Failure,
            Message::Room(room) => Self::WindowAdjusted {
                new_size: u32::try_from(room).unwrap_or(u32::MAX),
            },
            Message::Eof => Self::Eof,
            Message::Closed => Self::Close,
        })
    }

    /// What a request is to whoever reads the channel.
    fn asked(request: &Request, want_reply: bool) -> Option<Self> {
        Some(match request {
            Request::Pty(wanted) => Self::RequestPty {
                want_reply,
                term: wanted.term.clone(),
                col_width: wanted.size.columns,
                row_height: wanted.size.rows,
                pix_width: wanted.size.width,
                pix_height: wanted.size.height,
                terminal_modes: pty::named(&wanted.modes),
            },
            Request::Env { name, value } => Self::SetEnv {
                want_reply,
                variable_name: String::from_utf8_lossy(name).into_owned(),
                variable_value: String::from_utf8_lossy(value).into_owned(),
            },
            Request::Shell => Self::RequestShell { want_reply },
            Request::Exec(command) => Self::Exec {
                want_reply,
                command: command.clone(),
            },
            Request::Subsystem(name) => Self::RequestSubsystem {
                want_reply,
                name: name.clone(),
            },
            Request::WindowChange(size) => Self::WindowChange {
                col_width: size.columns,
                row_height: size.rows,
                pix_width: size.width,
                pix_height: size.height,
            },
            Request::Signal(name) => Self::Signal {
                signal: Sig::from_name(name),
            },
            Request::ExitStatus(exit_status) => Self::ExitStatus {
                exit_status: *exit_status,
            },
            Request::ExitSignal {
                name,
                core_dumped,
                message,
            } => Self::ExitSignal {
                signal_name: Sig::from_name(name),
                core_dumped: *core_dumped,
                error_message: message.clone(),
                lang_tag: String::new(),
            },
            Request::X11 {
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
            Request::Agent => Self::AgentForward { want_reply },
            Request::FlowControl(client_can_do) => Self::XonXoff {
                client_can_do: *client_can_do,
            },
            _ => return None,
        })
    }
}

/// As it would be derived, but for the cookie: who has it is let onto the client's display.
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
