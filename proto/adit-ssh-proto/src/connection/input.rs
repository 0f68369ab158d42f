//! Handling of payloads: dispatch by message number, and messages of open channels.

use core::ops::Range;

use adit_wire::{Time, usize_from};

use super::channel::{Channel, Stage, Turn};
use super::{ChannelId, Connection, Event, Handled, Kind};
use crate::error::SshError;
use crate::msg;
use crate::wire::{Put, Reader};

/// Factor by which [`Limits::queue`](super::Limits::queue) may be exceeded before the connection
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
    pub fn handle_input(&mut self, now: Time, payload: &[u8]) -> Result<Handled, SshError> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        let events = self.events.len();
        let handled = self.message(now, payload);
        if self.events.len() > events {
            self.event_octets = self.event_octets.saturating_add(payload.len() + EVENT);
        }
        let handled = handled.and_then(|handled| {
            let limit = self.limits.queue.saturating_mul(PATIENCE);
            if self.outbox.octets().max(self.event_octets) > limit {
                return Err(SshError::TooMuch {
                    what: "size of the queue caused by the peer",
                    limit,
                });
            }
            Ok(handled)
        });
        handled.inspect_err(|why| self.broken = Some(why.clone()))
    }

    fn message(&mut self, now: Time, payload: &[u8]) -> Result<Handled, SshError> {
        let (number, body) = payload
            .split_first()
            .ok_or(SshError::Malformed("payload"))?;
        match *number {
            msg::CHANNEL_DATA => return self.data(now, payload, body),
            msg::CHANNEL_EXTENDED_DATA => return self.extended_data(now, payload, body),
            msg::CHANNEL_WINDOW_ADJUST => self.adjusted(body)?,
            msg::CHANNEL_OPEN => self.asked_to_open(body)?,
            msg::CHANNEL_OPEN_CONFIRMATION => self.confirmed(body)?,
            msg::CHANNEL_OPEN_FAILURE => self.failed(body)?,
            msg::CHANNEL_EOF => self.ended(body)?,
            msg::CHANNEL_CLOSE => self.closed(body)?,
            msg::CHANNEL_REQUEST => self.asked_in_channel(body)?,
            msg::CHANNEL_SUCCESS => self.answered(msg::CHANNEL_SUCCESS, body)?,
            msg::CHANNEL_FAILURE => self.answered(msg::CHANNEL_FAILURE, body)?,
            msg::GLOBAL_REQUEST => self.asked(body)?,
            msg::REQUEST_SUCCESS => self.granted(body)?,
            msg::REQUEST_FAILURE => self.denied(body)?,
            _ => return Ok(Handled::Unknown),
        }
        Ok(Handled::Done)
    }

    /// Returns the open channel that a message with this number addresses.
    pub(super) fn recipient(
        &mut self,
        message: u8,
        r: &mut Reader<'_>,
    ) -> Result<(ChannelId, &mut Channel), SshError> {
        let found = self.slots.by_number(r.u32()?);
        let (id, channel) = found.ok_or(SshError::Malformed("channel number"))?;
        if channel.stage == Stage::Open {
            Ok((id, channel))
        } else {
            Err(SshError::Unexpected(message))
        }
    }

    fn data(&mut self, now: Time, payload: &[u8], body: &[u8]) -> Result<Handled, SshError> {
        let mut r = Reader::new(body, "CHANNEL_DATA");
        let (id, channel) = self.recipient(msg::CHANNEL_DATA, &mut r)?;
        let ended = channel.got_eof;
        let data = r.string()?;
        r.end()?;
        if ended {
            return Err(SshError::Unexpected(msg::CHANNEL_DATA));
        }
        self.received(now, id, Some(Kind::Stdout), at_end(payload, data))
    }

    fn extended_data(
        &mut self,
        now: Time,
        payload: &[u8],
        body: &[u8],
    ) -> Result<Handled, SshError> {
        let mut r = Reader::new(body, "CHANNEL_EXTENDED_DATA");
        let (id, channel) = self.recipient(msg::CHANNEL_EXTENDED_DATA, &mut r)?;
        let ended = channel.got_eof;
        let kind = (r.u32()? == super::flow::STDERR).then_some(Kind::Stderr);
        let data = r.string()?;
        r.end()?;
        if ended {
            return Err(SshError::Unexpected(msg::CHANNEL_EXTENDED_DATA));
        }
        self.received(now, id, kind, at_end(payload, data))
    }

    /// Handles data of a channel; `kind` is `None` for an unknown type of data.
    fn received(
        &mut self,
        now: Time,
        id: ChannelId,
        kind: Option<Kind>,
        range: Range<usize>,
    ) -> Result<Handled, SshError> {
        let max = self.limits.max_packet;
        let too_much = |what, limit: u32| SshError::TooMuch {
            what,
            limit: usize_from(limit),
        };
        let Some(channel) = self.slots.get_mut(id) else {
            return Ok(Handled::Done);
        };
        let len = u32::try_from(range.len()).ok().filter(|len| *len <= max);
        let len = len.ok_or_else(|| too_much("data in one message", max))?;
        if !channel.intake.receive(now, len) {
            return Err(too_much("data in the window", channel.intake.target()));
        }
        match kind {
            _ if range.is_empty() => Ok(Handled::Done),
            Some(kind) if !channel.sent_close => Ok(Handled::Data {
                channel: id,
                kind,
                range,
            }),
            // Data after the local CLOSE, or of an unknown type.
            _ => {
                self.consumed(id, range.len(), now);
                Ok(Handled::Done)
            }
        }
    }

    fn adjusted(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = Reader::new(body, "CHANNEL_WINDOW_ADJUST");
        let (id, channel) = self.recipient(msg::CHANNEL_WINDOW_ADJUST, &mut r)?;
        let more = r.u32()?;
        r.end()?;
        let before = channel.window;
        channel.window = before.checked_add(more).ok_or_else(|| SshError::TooMuch {
            what: "size of a channel window",
            limit: usize_from(u32::MAX),
        })?;
        if before > 0 || more == 0 || !channel.can_write() {
            return Ok(());
        }
        if channel.turn == Turn::Parked {
            channel.turn = Turn::Queued;
            self.turns.push_back(id);
        }
        self.events.push_back(Event::Writable(id));
        Ok(())
    }

    fn ended(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = Reader::new(body, "CHANNEL_EOF");
        let (id, channel) = self.recipient(msg::CHANNEL_EOF, &mut r)?;
        r.end()?;
        // A repeated EOF has no effect.
        if !core::mem::replace(&mut channel.got_eof, true) && !channel.sent_close {
            self.events.push_back(Event::Eof(id));
        }
        Ok(())
    }

    fn closed(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = Reader::new(body, "CHANNEL_CLOSE");
        let (id, channel) = self.recipient(msg::CHANNEL_CLOSE, &mut r)?;
        r.end()?;
        channel.got_close = true;
        let remote = channel.remote;
        if !core::mem::replace(&mut channel.sent_close, true) {
            self.outbox.push(|out| {
                out.put_u8(msg::CHANNEL_CLOSE);
                out.put_u32(remote);
            });
        }
        self.slots.free_remote(remote);
        self.events.push_back(Event::Closed(id));
        self.settle(id);
        Ok(())
    }

    /// Removes a channel if it has ended on both sides.
    pub(super) fn settle(&mut self, id: ChannelId) {
        if self.slots.get(id).is_some_and(Channel::is_over) {
            self.forget(id);
        }
    }

    /// Removes a channel.
    pub(super) fn forget(&mut self, id: ChannelId) {
        let Some(channel) = self.slots.remove(id) else {
            return;
        };
        self.budget.close(channel.intake.target());
        if channel.turn == Turn::Queued {
            self.turns.retain(|other| *other != id);
        }
        if channel.in_adjusts {
            self.adjusts.retain(|other| *other != id);
        }
    }
}

/// Returns the position of `data`, the last field of a payload, in it.
const fn at_end(payload: &[u8], data: &[u8]) -> Range<usize> {
    payload.len() - data.len()..payload.len()
}
