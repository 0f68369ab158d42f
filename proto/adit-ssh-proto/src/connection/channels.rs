//! The application's calls for channels: open, confirm, refuse, EOF, close.

use super::channel::{Channel, Stage};
use super::{CallError, ChannelId, ChannelKind, Connection, OpenFailure};
use crate::msg;
use crate::wire::Put;

impl Connection {
    /// Requests a channel; [`Event::Opened`](super::Event::Opened) or
    /// [`Event::OpenFailed`](super::Event::OpenFailed) follows.
    ///
    /// # Errors
    /// [`CallError::TooMany`] if there are too many channels, [`CallError::Full`] if the output is
    /// full, [`CallError::Reserved`] if an [application-defined type](ChannelKind::Own) has the
    /// name of a built-in one.
    pub fn open(&mut self, kind: &ChannelKind) -> Result<ChannelId, CallError> {
        let own = match kind {
            ChannelKind::Own(own) if ChannelKind::is_known(own.name()) => {
                return Err(CallError::Reserved);
            }
            ChannelKind::Own(own) => Some(own.octets()),
            _ => None,
        };
        self.has_output_room()?;
        if self.slots.count() >= self.limits.channels {
            return Err(CallError::TooMany);
        }
        let window = self.budget.open(self.limits.window, self.limits.floor());
        let mut channel = Channel::new(Stage::Wanted, 0, window);
        channel.own = own;
        let Some(id) = self.slots.insert(channel) else {
            self.budget.close(window);
            return Err(CallError::TooMany);
        };
        let max_packet = self.limits.max_packet;
        self.outbox.push(|out| {
            out.put_u8(msg::CHANNEL_OPEN);
            out.put_string(kind.name().as_bytes());
            for number in [id.number, window, max_packet] {
                out.put_u32(number);
            }
            kind.put(out);
        });
        Ok(id)
    }

    /// Confirms a channel that the peer requested.
    ///
    /// # Errors
    /// [`CallError::Gone`] or [`CallError::NotNow`] if the channel is gone or was answered before.
    pub fn confirm(&mut self, id: ChannelId) -> Result<(), CallError> {
        let (window, floor) = (self.limits.window, self.limits.floor());
        let channel = self.slots.get_mut(id).ok_or(CallError::Gone)?;
        if channel.stage != Stage::Asked {
            return Err(CallError::NotNow);
        }
        let window = self.budget.open(window, floor);
        channel.intake = super::intake::Intake::new(window);
        channel.stage = Stage::Open;
        self.asked -= 1;
        self.asked_octets -= channel.own.unwrap_or_default();
        let (remote, max_packet) = (channel.remote, self.limits.max_packet);
        self.outbox.push(|out| {
            out.put_u8(msg::CHANNEL_OPEN_CONFIRMATION);
            for number in [remote, id.number, window, max_packet] {
                out.put_u32(number);
            }
        });
        Ok(())
    }

    /// Refuses a channel that the peer requested. Its identifier is invalid afterwards.
    ///
    /// # Errors
    /// [`CallError::Gone`] or [`CallError::NotNow`] if the channel is gone or was answered before.
    pub fn refuse(&mut self, id: ChannelId, why: OpenFailure, text: &str) -> Result<(), CallError> {
        let channel = self.slots.get(id).ok_or(CallError::Gone)?;
        if channel.stage != Stage::Asked {
            return Err(CallError::NotNow);
        }
        let remote = channel.remote;
        self.asked -= 1;
        self.asked_octets -= channel.own.unwrap_or_default();
        debug_assert!(self.asked > 0 || self.asked_octets == 0);
        self.forget(id);
        self.put_refusal(remote, why, text);
        Ok(())
    }

    /// Ends the sending side: no more data will be sent. The peer may still send.
    ///
    /// # Errors
    /// [`CallError`] if the channel is gone, not open yet, or its sending side has ended.
    pub fn eof(&mut self, id: ChannelId) -> Result<(), CallError> {
        let channel = self.writer(id)?;
        channel.sent_eof = true;
        let remote = channel.remote;
        self.outbox.push(|out| {
            out.put_u8(msg::CHANNEL_EOF);
            out.put_u32(remote);
        });
        Ok(())
    }

    /// Closes a channel; data that still arrives is discarded.
    /// [`Event::Closed`](super::Event::Closed) follows once the peer has closed it, too. A channel
    /// that the peer requested is refused; one that was requested locally is closed as soon as it
    /// opens.
    pub fn close(&mut self, id: ChannelId) {
        let Some(channel) = self.slots.get_mut(id) else {
            return;
        };
        channel.dropped = true;
        match channel.stage {
            Stage::Asked => drop(self.refuse(id, OpenFailure::ConnectFailed, "")),
            Stage::Wanted => {}
            Stage::Open => {
                let remote = channel.remote;
                let unread = channel.intake.unread();
                channel.intake.consume(unread);
                if !core::mem::replace(&mut channel.sent_close, true) {
                    self.outbox.push(|out| {
                        out.put_u8(msg::CHANNEL_CLOSE);
                        out.put_u32(remote);
                    });
                }
                self.settle(id);
            }
        }
    }

    /// Returns a channel whose sending side has not ended.
    pub(super) fn writer(&mut self, id: ChannelId) -> Result<&mut Channel, CallError> {
        let channel = self.slots.get_mut(id).ok_or(CallError::Gone)?;
        match channel.stage {
            Stage::Open if channel.can_write() => Ok(channel),
            Stage::Open => Err(CallError::Ended),
            Stage::Asked | Stage::Wanted => Err(CallError::NotNow),
        }
    }

    /// Checks that the output queue is below its limit, which also applies to local calls.
    pub(super) const fn has_output_room(&self) -> Result<(), CallError> {
        if self.outbox.octets() < self.limits.queue {
            Ok(())
        } else {
            Err(CallError::Full)
        }
    }
}
