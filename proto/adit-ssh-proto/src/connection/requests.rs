//! Requests inside channels, and their answers, in both directions.

use super::channel::{Channel, ExpectedChannelReply};
use super::global::KEEPALIVE;
use super::{
    ChannelCallError, ChannelId, Connection, ConnectionEvent, CustomMessage, PendingReply,
    SshChannelRequest, WantReply,
};
use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};

impl Connection {
    /// Sends a request in a channel. If `want` asks for an answer (and the request is not a
    /// [statement](SshChannelRequest::is_statement)), `ConnectionEvent::RequestDone` follows, in order.
    ///
    /// # Errors
    /// [`ChannelCallError`] if the channel is gone, not open or closed, too many requests are unanswered,
    /// the output is full, or an [application-defined request](SshChannelRequest::Custom) has the name of a
    /// built-in one.
    pub fn send_request(
        &mut self,
        id: ChannelId,
        request: &SshChannelRequest,
        want: WantReply,
    ) -> Result<(), ChannelCallError> {
        self.check_output_space()?;
        let channel = self.slots.get_mut(id).ok_or(ChannelCallError::Gone)?;
        if !channel.can_send_requests() {
            return Err(if channel.sent_close {
                ChannelCallError::Ended
            } else {
                ChannelCallError::NotNow
            });
        }
        if let SshChannelRequest::Custom(own) = request
            && (own.name() == KEEPALIVE
                || channel.own.is_none() && SshChannelRequest::is_builtin(own.name()))
        {
            return Err(ChannelCallError::Reserved);
        }
        let expected = match request {
            SshChannelRequest::X11 { .. } => ExpectedChannelReply::X11,
            SshChannelRequest::Agent => ExpectedChannelReply::Agent,
            _ => ExpectedChannelReply::Plain,
        };
        let want = want == WantReply::Yes && !request.is_statement();
        if !want {
            channel.on_granted(expected);
        } else if channel.expected.len() < self.limits.requests {
            channel.expected.push_back(expected);
        } else {
            return Err(ChannelCallError::TooMany);
        }
        let remote = channel.remote;
        self.outbox.push(|out| {
            out.put_u8(msg::CHANNEL_REQUEST);
            out.put_u32(remote);
            out.put_string(request.name().as_bytes());
            out.put_bool(want);
            request.encode_fields(out);
        });
        Ok(())
    }

    /// Answers a request of the peer. If its channel has closed meanwhile, nothing is sent.
    pub fn answer_request(&mut self, to: PendingReply, ok: bool) {
        let PendingReply { channel, sequence } = to;
        if let Some(channel) = self.slots.get_mut(channel) {
            channel.owed.set_answer(sequence, ok);
            if channel.can_send_requests() {
                send_ready_answers(&mut self.outbox, channel);
            }
        }
    }

    pub(super) fn on_channel_request(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = MessageReader::new(body, "CHANNEL_REQUEST");
        let limit = self.limits.requests;
        let (id, channel) = self.open_channel_of(msg::CHANNEL_REQUEST, &mut r)?;
        let (name, want) = (r.read_string()?, r.read_bool()?);
        let request = match channel.own {
            // Keepalives are answered here.
            Some(_) if name == KEEPALIVE.as_bytes() => None,
            Some(_) => CustomMessage::from_wire(name, r.remaining()).map(SshChannelRequest::Custom),
            None => SshChannelRequest::parse(name, &mut r)?,
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
        let reply = want.then(|| PendingReply {
            channel: id,
            sequence: channel.owed.add_owed(),
        });
        match (request, reply) {
            (Some(request), reply) => self.events.push_back(ConnectionEvent::Request {
                channel: id,
                request,
                reply,
            }),
            (None, Some(reply)) => self.answer_request(reply, false),
            (None, None) => {}
        }
        Ok(())
    }

    /// Handles the peer's answer to a local request in a channel.
    pub(super) fn on_channel_reply(&mut self, message: u8, body: &[u8]) -> Result<(), SshError> {
        let mut r = MessageReader::new(body, "answer to a channel request");
        let (id, channel) = self.open_channel_of(message, &mut r)?;
        r.expect_end()?;
        let expected = channel.expected.pop_front();
        let expected = expected.ok_or(SshError::Unexpected(message))?;
        let ok = message == msg::CHANNEL_SUCCESS;
        if ok {
            channel.on_granted(expected);
        }
        if !channel.sent_close {
            self.events
                .push_back(ConnectionEvent::RequestDone { channel: id, ok });
        }
        Ok(())
    }
}

impl Channel {
    /// Records that the peer may open channels of this type.
    const fn on_granted(&mut self, expected: ExpectedChannelReply) {
        match expected {
            ExpectedChannelReply::X11 => self.x11 = true,
            ExpectedChannelReply::Agent => self.agent = true,
            ExpectedChannelReply::Plain => {}
        }
    }
}

/// Sends the available answers, up to the first one that is not known yet.
fn send_ready_answers(outbox: &mut super::outbox::ControlOutbox, channel: &mut Channel) {
    while let Some(ok) = channel.owed.pop_ready() {
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
