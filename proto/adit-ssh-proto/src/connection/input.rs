//! Handling of payloads: dispatch by message number, and messages of open channels.

use core::ops::Range;

use adit_wire::{Time, usize_from};

use super::channel::{Channel, ChannelStage, WriterState};
use super::{ChannelId, Connection, ConnectionEvent, DataKind, HandledInput};
use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};

/// Factor by which [`ConnectionLimits::queue`](super::ConnectionLimits::queue) may be exceeded before the connection
/// fails.
const PATIENCE: usize = 16;
/// Cost of an event in addition to the bytes of its message.
const EVENT: usize = 64;

impl Connection {
    /// Handles a payload of the peer, which starts with its message number.
    ///
    /// # Errors
    /// [`SshError`] if the peer violated the protocol or a limit; the connection is unusable then
    /// and returns the same error again.
    pub fn handle_input(&mut self, now: Time, payload: &[u8]) -> Result<HandledInput, SshError> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let events = self.events.len();
        let handled = self.handle_message(now, payload);
        if self.events.len() > events {
            self.event_octets = self.event_octets.saturating_add(payload.len() + EVENT);
        }
        let handled = handled.and_then(|handled| {
            let limit = self.limits.queue.saturating_mul(PATIENCE);
            if self.outbox.byte_len().max(self.event_octets) > limit {
                return Err(SshError::TooMuch {
                    what: "size of the queue caused by the peer",
                    limit,
                });
            }
            Ok(handled)
        });
        handled.inspect_err(|why| self.failed = Some(why.clone()))
    }

    fn handle_message(&mut self, now: Time, payload: &[u8]) -> Result<HandledInput, SshError> {
        let (number, body) = payload
            .split_first()
            .ok_or(SshError::Malformed("payload"))?;
        match *number {
            msg::CHANNEL_DATA => return self.on_data(now, payload, body),
            msg::CHANNEL_EXTENDED_DATA => return self.on_extended_data(now, payload, body),
            msg::CHANNEL_WINDOW_ADJUST => self.on_window_adjust(body)?,
            msg::CHANNEL_OPEN => self.on_channel_open(body)?,
            msg::CHANNEL_OPEN_CONFIRMATION => self.on_open_confirmation(body)?,
            msg::CHANNEL_OPEN_FAILURE => self.on_open_failure(body)?,
            msg::CHANNEL_EOF => self.on_eof(body)?,
            msg::CHANNEL_CLOSE => self.on_close(body)?,
            msg::CHANNEL_REQUEST => self.on_channel_request(body)?,
            msg::CHANNEL_SUCCESS => self.on_channel_reply(msg::CHANNEL_SUCCESS, body)?,
            msg::CHANNEL_FAILURE => self.on_channel_reply(msg::CHANNEL_FAILURE, body)?,
            msg::GLOBAL_REQUEST => self.on_global_request(body)?,
            msg::REQUEST_SUCCESS => self.on_request_success(body)?,
            msg::REQUEST_FAILURE => self.on_request_failure(body)?,
            _ => return Ok(HandledInput::Unknown),
        }
        Ok(HandledInput::Done)
    }

    /// Returns the open channel that a message with this number addresses.
    pub(super) fn open_channel_of(
        &mut self,
        message: u8,
        r: &mut MessageReader<'_>,
    ) -> Result<(ChannelId, &mut Channel), SshError> {
        let found = self.slots.by_number(r.read_u32()?);
        let (id, channel) = found.ok_or(SshError::Malformed("channel number"))?;
        if channel.stage == ChannelStage::Open {
            Ok((id, channel))
        } else {
            Err(SshError::Unexpected(message))
        }
    }

    fn on_data(
        &mut self,
        now: Time,
        payload: &[u8],
        body: &[u8],
    ) -> Result<HandledInput, SshError> {
        let mut r = MessageReader::new(body, "CHANNEL_DATA");
        let (id, channel) = self.open_channel_of(msg::CHANNEL_DATA, &mut r)?;
        let ended = channel.got_eof;
        let data = r.read_string()?;
        r.expect_end()?;
        if ended {
            return Err(SshError::Unexpected(msg::CHANNEL_DATA));
        }
        self.receive_data(now, id, Some(DataKind::Stdout), range_at_end(payload, data))
    }

    fn on_extended_data(
        &mut self,
        now: Time,
        payload: &[u8],
        body: &[u8],
    ) -> Result<HandledInput, SshError> {
        let mut r = MessageReader::new(body, "CHANNEL_EXTENDED_DATA");
        let (id, channel) = self.open_channel_of(msg::CHANNEL_EXTENDED_DATA, &mut r)?;
        let ended = channel.got_eof;
        let kind = (r.read_u32()? == super::flow::STDERR).then_some(DataKind::Stderr);
        let data = r.read_string()?;
        r.expect_end()?;
        if ended {
            return Err(SshError::Unexpected(msg::CHANNEL_EXTENDED_DATA));
        }
        self.receive_data(now, id, kind, range_at_end(payload, data))
    }

    /// Handles data of a channel; `kind` is `None` for an unknown type of data.
    fn receive_data(
        &mut self,
        now: Time,
        id: ChannelId,
        kind: Option<DataKind>,
        range: Range<usize>,
    ) -> Result<HandledInput, SshError> {
        let max = self.limits.max_packet;
        let too_much = |what, limit: u32| SshError::TooMuch {
            what,
            limit: usize_from(limit),
        };
        let Some(channel) = self.slots.get_mut(id) else {
            return Ok(HandledInput::Done);
        };
        let len = u32::try_from(range.len()).ok().filter(|len| *len <= max);
        let len = len.ok_or_else(|| too_much("data in one message", max))?;
        if !channel.intake.receive(now, len) {
            return Err(too_much("data in the window", channel.intake.target()));
        }
        match kind {
            _ if range.is_empty() => Ok(HandledInput::Done),
            Some(kind) if !channel.sent_close => Ok(HandledInput::Data {
                channel: id,
                kind,
                range,
            }),
            // Data after the local CLOSE, or of an unknown type.
            _ => {
                self.consume_data(id, range.len(), now);
                Ok(HandledInput::Done)
            }
        }
    }

    fn on_window_adjust(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = MessageReader::new(body, "CHANNEL_WINDOW_ADJUST");
        let (id, channel) = self.open_channel_of(msg::CHANNEL_WINDOW_ADJUST, &mut r)?;
        let more = r.read_u32()?;
        r.expect_end()?;
        let before = channel.window;
        channel.window = before.checked_add(more).ok_or_else(|| SshError::TooMuch {
            what: "size of a channel window",
            limit: usize_from(u32::MAX),
        })?;
        if before > 0 || more == 0 || !channel.can_write() {
            return Ok(());
        }
        if channel.turn == WriterState::Parked {
            channel.turn = WriterState::Queued;
            self.write_queue.push_back(id);
        }
        self.events.push_back(ConnectionEvent::Writable(id));
        Ok(())
    }

    fn on_eof(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = MessageReader::new(body, "CHANNEL_EOF");
        let (id, channel) = self.open_channel_of(msg::CHANNEL_EOF, &mut r)?;
        r.expect_end()?;
        // A repeated EOF has no effect.
        if !core::mem::replace(&mut channel.got_eof, true) && !channel.sent_close {
            self.events.push_back(ConnectionEvent::Eof(id));
        }
        Ok(())
    }

    fn on_close(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = MessageReader::new(body, "CHANNEL_CLOSE");
        let (id, channel) = self.open_channel_of(msg::CHANNEL_CLOSE, &mut r)?;
        r.expect_end()?;
        channel.got_close = true;
        let remote = channel.remote;
        if !core::mem::replace(&mut channel.sent_close, true) {
            self.outbox.push(|out| {
                out.put_u8(msg::CHANNEL_CLOSE);
                out.put_u32(remote);
            });
        }
        self.slots.release_remote(remote);
        self.events.push_back(ConnectionEvent::Closed(id));
        self.remove_if_over(id);
        Ok(())
    }

    /// Removes a channel if it has ended on both sides.
    pub(super) fn remove_if_over(&mut self, id: ChannelId) {
        if self.slots.get(id).is_some_and(Channel::is_over) {
            self.remove_channel(id);
        }
    }

    /// Removes a channel.
    pub(super) fn remove_channel(&mut self, id: ChannelId) {
        let Some(channel) = self.slots.remove(id) else {
            return;
        };
        self.budget.release_window(channel.intake.target());
        if channel.turn == WriterState::Queued {
            self.write_queue.retain(|other| *other != id);
        }
        if channel.in_adjusts {
            self.pending_adjusts.retain(|other| *other != id);
        }
    }
}

/// Returns the position of `data`, the last field of a payload, in it.
const fn range_at_end(payload: &[u8], data: &[u8]) -> Range<usize> {
    payload.len() - data.len()..payload.len()
}
