//! Message mode: events go to the session's feed and its channels.

use std::sync::Arc;

use adit_ssh_proto::connection::{ChannelId, Event, GlobalRequest, ReplyTo};

use super::{Driver, Global};
use crate::forwards::GlobalReply;
use crate::messages::{Message, MessageChannel, Teller, Told};
use crate::opening::Opening;

impl Driver {
    /// Returns true if the task must not read until the feed is read.
    pub(super) fn is_stalled(&self) -> bool {
        self.messages.as_ref().is_some_and(Teller::stalls)
    }

    fn tell(&self, told: Told, owed: Option<ReplyTo>) {
        if let Some(teller) = &self.messages {
            teller.tell(told, owed);
        }
    }

    /// Puts a message into its channel and the feed; returns false if the channel does not store it.
    pub(super) fn came(&mut self, id: ChannelId, message: Message, owed: Option<ReplyTo>) -> bool {
        let live = self.lives.get(&id);
        let read = live.is_some_and(|live| {
            let mut state = live.pipe.lock();
            state.put_message(message.clone(), &mut self.wake)
        });
        self.tell(Told::Came(id, message), owed);
        read
    }

    /// In message mode, passes an event to the feed. Returns the event if it needs further processing,
    /// as in every session.
    pub(super) fn message(&mut self, event: Event) -> Option<Event> {
        self.alive.moves |= match &event {
            Event::GlobalReply { id, .. } => !matches!(self.globals.get(id), Some(Global::Alive)),
            _ => true,
        };
        if self.messages.is_none() {
            return Some(event);
        }
        match event {
            Event::Open { channel, kind } => {
                let pipe = self.live(channel, &kind, None);
                pipe.lock().keep();
                let opening = Opening::new(kind, Arc::clone(&pipe));
                let channel = MessageChannel::new(pipe);
                self.tell(Told::Wanted(opening, channel), None);
                return None;
            }
            Event::Request {
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
                self.came(channel, message, reply);
                return None;
            }
            Event::RequestDone { channel, ok } => {
                self.came(channel, Message::Answer(ok), None);
                return None;
            }
            Event::GlobalRequest { request, reply } => {
                let reply = GlobalReply::new(reply, Arc::clone(&self.mail));
                // Dropping the reply refuses a request with an application-defined name.
                if !matches!(request, GlobalRequest::Own { .. }) {
                    self.tell(Told::Global(request, reply), None);
                }
                return None;
            }
            Event::OpenFailed {
                channel,
                reason,
                ref text,
            } => {
                let text = text.clone();
                let told = Told::Refused {
                    channel,
                    reason,
                    text,
                };
                self.tell(told, None);
            }
            Event::Writable(id) => {
                let room = Message::Room(self.connection.room(id));
                self.came(id, room, None);
            }
            Event::Eof(id) => {
                self.came(id, Message::Eof, None);
            }
            Event::Closed(id) => {
                self.came(id, Message::Closed, None);
            }
            Event::Opened(_) | Event::GlobalReply { .. } => {}
        }
        Some(event)
    }
}
