//! Message mode: events go to the session's feed and its channels.

use std::sync::Arc;

use adit_ssh_proto::connection::{ChannelId, ConnectionEvent, GlobalRequest, PendingReply};

use super::{Driver, PendingGlobal};
use crate::incoming_channel::IncomingChannel;
use crate::messages::{EventSender, Message, MessageChannel, SessionEvent};
use crate::routes::GlobalReply;

impl Driver {
    /// Returns true if the task must not read until the feed is read.
    pub(super) fn is_stalled(&self) -> bool {
        self.messages
            .as_ref()
            .is_some_and(EventSender::check_stalled)
    }

    fn send_event(&self, told: SessionEvent, owed: Option<PendingReply>) {
        if let Some(teller) = &self.messages {
            teller.send_event(told, owed);
        }
    }

    /// Puts a message into its channel and the feed; returns false if the channel does not store it.
    pub(super) fn deliver_message(
        &mut self,
        id: ChannelId,
        message: Message,
        owed: Option<PendingReply>,
    ) -> bool {
        let live = self.channels.get(&id);
        let read = live.is_some_and(|live| {
            let mut state = live.pipe.lock();
            state.push_message(message.clone(), &mut self.wake)
        });
        self.send_event(SessionEvent::Received(id, message), owed);
        read
    }

    /// In message mode, passes an event to the feed. Returns the event if it needs further processing,
    /// as in every session.
    pub(super) fn forward_event(&mut self, event: ConnectionEvent) -> Option<ConnectionEvent> {
        self.alive.has_traffic |= match &event {
            ConnectionEvent::GlobalReply { id, .. } => {
                !matches!(self.globals.get(id), Some(PendingGlobal::Keepalive))
            }
            _ => true,
        };
        if self.messages.is_none() {
            return Some(event);
        }
        match event {
            ConnectionEvent::Open { channel, kind } => {
                let pipe = self.add_channel(channel, &kind, None);
                pipe.lock().hold_open();
                let opening = IncomingChannel::new(kind, Arc::clone(&pipe));
                let channel = MessageChannel::new(pipe);
                self.send_event(SessionEvent::OpenRequested(opening, channel), None);
                return None;
            }
            ConnectionEvent::Request {
                channel,
                request,
                reply,
            } => {
                let wants_reply = reply.is_some();
                let request = Arc::new(request);
                let message = Message::Request {
                    request,
                    wants_reply,
                };
                self.deliver_message(channel, message, reply);
                return None;
            }
            ConnectionEvent::RequestDone { channel, ok } => {
                self.deliver_message(channel, Message::Answer(ok), None);
                return None;
            }
            ConnectionEvent::GlobalRequest { request, reply } => {
                let reply = GlobalReply::new(reply, Arc::clone(&self.mail));
                // Dropping the reply refuses a request with an application-defined name.
                if !matches!(request, GlobalRequest::Custom { .. }) {
                    self.send_event(SessionEvent::GlobalRequest(request, reply), None);
                }
                return None;
            }
            ConnectionEvent::OpenFailed {
                channel,
                reason,
                ref text,
            } => {
                let text = text.clone();
                let told = SessionEvent::OpenRefused {
                    channel,
                    reason,
                    text,
                };
                self.send_event(told, None);
            }
            ConnectionEvent::Writable(id) => {
                let room = Message::Capacity(self.connection.send_capacity(id));
                self.deliver_message(id, room, None);
            }
            ConnectionEvent::Eof(id) => {
                self.deliver_message(id, Message::Eof, None);
            }
            ConnectionEvent::Closed(id) => {
                self.deliver_message(id, Message::Closed, None);
            }
            ConnectionEvent::Opened(_) | ConnectionEvent::GlobalReply { .. } => {}
        }
        Some(event)
    }
}
