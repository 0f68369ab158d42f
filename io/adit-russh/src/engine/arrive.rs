//! What the peer did: noted in the state, put into the channels' mailboxes, told to the task.

use std::sync::Arc;

use adit_ssh_proto::connection::{
    ChannelId as Id, ChannelKind, Event, GlobalAnswer, GlobalReplyTo, GlobalRequest, Kind, Request,
};
use bytes::Bytes;

use super::core::State;
use super::{Core, Live, Mailbox};
use crate::{ChannelMsg, ChannelOpenFailure, Error, Sig, pty};

/// The one type of extended data there is (RFC 4254 section 5.2).
pub(crate) const CHANNEL_STDERR: u32 = 1;

/// Something that the handler is told.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// Bytes of a channel.
    Data { id: Id, kind: Kind, bytes: Bytes },
    /// A channel that the peer wants.
    Wanted {
        id: Id,
        kind: ChannelKind,
        mailbox: Arc<Mailbox>,
    },
    /// A channel that the peer has refused.
    OpenFailed {
        id: Id,
        why: ChannelOpenFailure,
        text: String,
    },
    /// A request in a channel.
    Asked { id: Id, request: Request },
    /// The answer to a request of ours in a channel.
    Answered { id: Id, ok: bool },
    /// The peer sends no more bytes.
    Eof(Id),
    /// The channel has closed.
    Closed(Id),
    /// A window that was used up has this room again, octets.
    Room { id: Id, room: u32 },
    /// A request outside of channels.
    Global {
        request: GlobalRequest,
        reply: Option<GlobalReplyTo>,
    },
    /// The session has ended from here.
    Left,
}

impl Core {
    /// The next thing that has happened.
    pub(super) fn arrived(&self) -> Option<Arrived> {
        let mut state = self.lock();
        while let Some(event) = state.connection.poll_event() {
            let arrived = state.note(event, || self.mailbox());
            if arrived.is_some() {
                return arrived;
            }
        }
        None
    }

    /// Bytes came for a channel.
    pub(super) fn data(&self, id: Id, kind: Kind, bytes: &[u8]) -> Arrived {
        let bytes = Bytes::copy_from_slice(bytes);
        let message = match kind {
            Kind::Stdout => ChannelMsg::Data {
                data: bytes.clone(),
            },
            Kind::Stderr => ChannelMsg::ExtendedData {
                data: bytes.clone(),
                ext: CHANNEL_STDERR,
            },
        };
        let mailbox = self
            .lock()
            .lives
            .get(&id)
            .map(|live| Arc::clone(&live.mailbox));
        let left = mailbox.map_or(bytes.len(), |mailbox| mailbox.put(message));
        self.consumed(id, left);
        Arrived::Data { id, kind, bytes }
    }
}

impl State {
    fn tell(&self, id: Id, message: ChannelMsg) {
        if let Some(live) = self.lives.get(&id) {
            live.mailbox.put(message);
        }
    }

    fn note(&mut self, event: Event, mailbox: impl FnOnce() -> Arc<Mailbox>) -> Option<Arrived> {
        Some(match event {
            Event::Open { channel: id, kind } => {
                let mailbox = mailbox();
                self.lives.insert(id, Live::new(Arc::clone(&mailbox)));
                Arrived::Wanted { id, kind, mailbox }
            }
            Event::Opened(id) => {
                self.opened(id);
                return None;
            }
            Event::OpenFailed {
                channel: id,
                reason,
                text,
            } => {
                let why = ChannelOpenFailure::of(reason, &text);
                let live = self.lives.remove(&id);
                if let Some(opening) = live.and_then(|live| live.opening) {
                    let _ = opening.send(Err(Error::ChannelOpenFailure(why.clone())));
                }
                Arrived::OpenFailed { id, why, text }
            }
            Event::Request {
                channel: id,
                request,
                reply,
            } => {
                if let Some(message) = message_of(&request, reply.is_some()) {
                    self.tell(id, message);
                }
                match (reply, self.lives.get_mut(&id)) {
                    (Some(to), Some(live)) if self.serves => live.owed.push_back(to),
                    (Some(to), _) => self.connection.answer(to, false),
                    (None, _) => {}
                }
                Arrived::Asked { id, request }
            }
            Event::RequestDone { channel: id, ok } => {
                let message = if ok {
                    ChannelMsg::Success
                } else {
                    ChannelMsg::Failure
                };
                self.tell(id, message);
                Arrived::Answered { id, ok }
            }
            Event::Eof(id) => {
                self.tell(id, ChannelMsg::Eof);
                Arrived::Eof(id)
            }
            Event::Closed(id) => {
                if let Some(mut live) = self.lives.remove(&id) {
                    live.mailbox.put(ChannelMsg::Close);
                    live.mailbox.close();
                    live.wake();
                }
                Arrived::Closed(id)
            }
            Event::Writable(id) => {
                let room = u32::try_from(self.connection.room(id)).unwrap_or(u32::MAX);
                self.tell(id, ChannelMsg::WindowAdjusted { new_size: room });
                self.connection.want_write(id);
                Arrived::Room { id, room }
            }
            Event::GlobalRequest { request, reply } => Arrived::Global { request, reply },
            Event::GlobalReply { id, answer } => {
                self.answered(id, answer);
                return None;
            }
        })
    }

    fn answered(&mut self, id: adit_ssh_proto::connection::GlobalId, answer: GlobalAnswer) {
        if let Some(Some(reply)) = self.globals.remove(&id) {
            let _ = reply.send(Ok(answer));
        }
    }
}

/// What a request is to whoever reads the channel.
fn message_of(request: &Request, want_reply: bool) -> Option<ChannelMsg> {
    Some(match request {
        Request::Pty(wanted) => ChannelMsg::RequestPty {
            want_reply,
            term: wanted.term.clone(),
            col_width: wanted.size.columns,
            row_height: wanted.size.rows,
            pix_width: wanted.size.width,
            pix_height: wanted.size.height,
            terminal_modes: pty::named(&wanted.modes),
        },
        Request::Env { name, value } => ChannelMsg::SetEnv {
            want_reply,
            variable_name: String::from_utf8_lossy(name).into_owned(),
            variable_value: String::from_utf8_lossy(value).into_owned(),
        },
        Request::Shell => ChannelMsg::RequestShell { want_reply },
        Request::Exec(command) => ChannelMsg::Exec {
            want_reply,
            command: command.clone(),
        },
        Request::Subsystem(name) => ChannelMsg::RequestSubsystem {
            want_reply,
            name: name.clone(),
        },
        Request::WindowChange(size) => ChannelMsg::WindowChange {
            col_width: size.columns,
            row_height: size.rows,
            pix_width: size.width,
            pix_height: size.height,
        },
        Request::Signal(name) => ChannelMsg::Signal {
            signal: Sig::from_name(name),
        },
        Request::ExitStatus(exit_status) => ChannelMsg::ExitStatus {
            exit_status: *exit_status,
        },
        Request::ExitSignal {
            name,
            core_dumped,
            message,
        } => ChannelMsg::ExitSignal {
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
        } => ChannelMsg::RequestX11 {
            want_reply,
            single_connection: *single,
            x11_authentication_protocol: protocol.clone(),
            x11_authentication_cookie: cookie.expose().clone(),
            x11_screen_number: *screen,
        },
        Request::Agent => ChannelMsg::AgentForward { want_reply },
        Request::FlowControl(client_can_do) => ChannelMsg::XonXoff {
            client_can_do: *client_can_do,
        },
        _ => return None,
    })
}
