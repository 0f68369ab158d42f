//! Requests inside channels, and their answers, in both directions.

use super::channel::{Channel, Expected};
use super::global::KEEPALIVE;
use super::{CallError, ChannelId, Connection, Event, Own, ReplyTo, Request, WantReply};
use crate::error::SshError;
use crate::msg;
use crate::wire::{Put, Reader};

impl Connection {
    /// Sends a request in a channel. If `want` asks for an answer (and the request is not a
    /// [statement](Request::is_statement)), [`Event::RequestDone`] follows, in order.
    ///
    /// # Errors
    /// [`CallError`] if the channel is gone, not open or closed, too many requests are unanswered,
    /// the output is full, or an [application-defined request](Request::Own) has the name of a
    /// built-in one.
    pub fn request(
        &mut self,
        id: ChannelId,
        request: &Request,
        want: WantReply,
    ) -> Result<(), CallError> {
        self.has_output_room()?;
        let channel = self.slots.get_mut(id).ok_or(CallError::Gone)?;
        if !channel.can_talk() {
            return Err(if channel.sent_close {
                CallError::Ended
            } else {
                CallError::NotNow
            });
        }
        if let Request::Own(own) = request
            && (own.name() == KEEPALIVE || channel.own.is_none() && Request::is_known(own.name()))
        {
            return Err(CallError::Reserved);
        }
        let expected = match request {
            Request::X11 { .. } => Expected::X11,
            Request::Agent => Expected::Agent,
            _ => Expected::Plain,
        };
        let want = want == WantReply::Yes && !request.is_statement();
        if !want {
            channel.granted(expected);
        } else if channel.expected.len() < self.limits.requests {
            channel.expected.push_back(expected);
        } else {
            return Err(CallError::TooMany);
        }
        let remote = channel.remote;
        self.outbox.push(|out| {
            out.put_u8(msg::CHANNEL_REQUEST);
            out.put_u32(remote);
            out.put_string(request.name().as_bytes());
            out.put_bool(want);
            request.put(out);
        });
        Ok(())
    }

    /// Answers a request of the peer. If its channel has closed meanwhile, nothing is sent.
    pub fn answer(&mut self, to: ReplyTo, ok: bool) {
        let ReplyTo { channel, sequence } = to;
        if let Some(channel) = self.slots.get_mut(channel) {
            channel.owed.answer(sequence, ok);
            if channel.can_talk() {
                put_answers(&mut self.outbox, channel);
            }
        }
    }

    pub(super) fn asked_in_channel(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = Reader::new(body, "CHANNEL_REQUEST");
        let limit = self.limits.requests;
        let (id, channel) = self.recipient(msg::CHANNEL_REQUEST, &mut r)?;
        let (name, want) = (r.string()?, r.boolean()?);
        let request = match channel.own {
            // Keepalives are answered here.
            Some(_) if name == KEEPALIVE.as_bytes() => None,
            Some(_) => Own::read(name, r.rest()).map(Request::Own),
            None => Request::parse(name, &mut r)?,
        };
        if channel.sent_close {
            return Ok(());
        }
        if want && channel.owed.len() >= limit {
            return Err(SshError::TooMuch {
                what: "number of unanswered requests of a channel",
                limit,
            });
        }
        let reply = want.then(|| ReplyTo {
            channel: id,
            sequence: channel.owed.owe(),
        });
        match (request, reply) {
            (Some(request), reply) => self.events.push_back(Event::Request {
                channel: id,
                request,
                reply,
            }),
            (None, Some(reply)) => self.answer(reply, false),
            (None, None) => {}
        }
        Ok(())
    }

    /// Handles the peer's answer to a local request in a channel.
    pub(super) fn answered(&mut self, message: u8, body: &[u8]) -> Result<(), SshError> {
        let mut r = Reader::new(body, "answer to a channel request");
        let (id, channel) = self.recipient(message, &mut r)?;
        r.end()?;
        let expected = channel.expected.pop_front();
        let expected = expected.ok_or(SshError::Unexpected(message))?;
        let ok = message == msg::CHANNEL_SUCCESS;
        if ok {
            channel.granted(expected);
        }
        if !channel.sent_close {
            self.events
                .push_back(Event::RequestDone { channel: id, ok });
        }
        Ok(())
    }
}

impl Channel {
    /// Records that the peer may open channels of this type.
    const fn granted(&mut self, expected: Expected) {
        match expected {
            Expected::X11 => self.x11 = true,
            Expected::Agent => self.agent = true,
            Expected::Plain => {}
        }
    }
}

/// Sends the available answers, up to the first one that is not known yet.
fn put_answers(outbox: &mut super::outbox::Outbox, channel: &mut Channel) {
    while let Some(ok) = channel.owed.pop() {
        outbox.push(|out| {
            out.put_u8(if ok {
                msg::CHANNEL_SUCCESS
            } else {
                msg::CHANNEL_FAILURE
            });
            out.put_u32(channel.remote);
        });
    }
}
