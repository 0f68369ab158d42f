//! The application's calls for channels: open, confirm, refuse, EOF, close.

use super::channel::{Channel, ChannelStage};
use super::{ChannelCallError, ChannelId, ChannelKind, Connection, OpenFailureReason};
use crate::msg;
use crate::wire::SshBufMut;

impl Connection {
    /// Requests a channel; `ConnectionEvent::Opened` or
    /// `ConnectionEvent::OpenFailed` follows.
    ///
    /// # Errors
    /// [`ChannelCallError::TooMany`] if there are too many channels, [`ChannelCallError::Full`] if the output is
    /// full, [`ChannelCallError::Reserved`] if an [application-defined type](ChannelKind::Custom) has the
    /// name of a built-in one.
    pub fn open_channel(&mut self, kind: &ChannelKind) -> Result<ChannelId, ChannelCallError> {
        let own = match kind {
            ChannelKind::Custom(own) if ChannelKind::is_builtin(own.name()) => {
                return Err(ChannelCallError::Reserved);
            }
            ChannelKind::Custom(own) => Some(own.byte_len()),
            _ => None,
        };
        self.check_output_space()?;
        if self.slots.count() >= self.limits.channels {
            return Err(ChannelCallError::TooMany);
        }
        let window = self
            .budget
            .allot_window(self.limits.window, self.limits.min_window());
        let mut channel = Channel::new(ChannelStage::RequestedLocally, 0, window);
        channel.own = own;
        let Some(id) = self.slots.insert(channel) else {
            self.budget.release_window(window);
            return Err(ChannelCallError::TooMany);
        };
        let max_packet = self.limits.max_packet;
        self.outbox.push(|out| {
            out.put_u8(msg::CHANNEL_OPEN);
            out.put_string(kind.name().as_bytes());
            for number in [id.number, window, max_packet] {
                out.put_u32(number);
            }
            kind.encode_fields(out);
        });
        Ok(id)
    }

    /// Confirms a channel that the peer requested.
    ///
    /// # Errors
    /// [`ChannelCallError::Gone`] or [`ChannelCallError::NotNow`] if the channel is gone or was answered before.
    pub fn confirm_open(&mut self, id: ChannelId) -> Result<(), ChannelCallError> {
        let (window, floor) = (self.limits.window, self.limits.min_window());
        let channel = self.slots.get_mut(id).ok_or(ChannelCallError::Gone)?;
        if channel.stage != ChannelStage::RequestedByPeer {
            return Err(ChannelCallError::NotNow);
        }
        let window = self.budget.allot_window(window, floor);
        channel.intake = super::receive_window::ReceiveWindow::new(window);
        channel.stage = ChannelStage::Open;
        self.pending_opens -= 1;
        self.pending_open_bytes -= channel.own.unwrap_or_default();
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
    /// [`ChannelCallError::Gone`] or [`ChannelCallError::NotNow`] if the channel is gone or was answered before.
    pub fn refuse_open(
        &mut self,
        id: ChannelId,
        why: OpenFailureReason,
        text: &str,
    ) -> Result<(), ChannelCallError> {
        let channel = self.slots.get(id).ok_or(ChannelCallError::Gone)?;
        if channel.stage != ChannelStage::RequestedByPeer {
            return Err(ChannelCallError::NotNow);
        }
        let remote = channel.remote;
        self.pending_opens -= 1;
        self.pending_open_bytes -= channel.own.unwrap_or_default();
        debug_assert!(self.pending_opens > 0 || self.pending_open_bytes == 0);
        self.remove_channel(id);
        self.send_open_failure(remote, why, text);
        Ok(())
    }

    /// Ends the sending side: no more data will be sent. The peer may still send.
    ///
    /// # Errors
    /// [`ChannelCallError`] if the channel is gone, not open yet, or its sending side has ended.
    pub fn send_eof(&mut self, id: ChannelId) -> Result<(), ChannelCallError> {
        let channel = self.writable_channel(id)?;
        channel.sent_eof = true;
        let remote = channel.remote;
        self.outbox.push(|out| {
            out.put_u8(msg::CHANNEL_EOF);
            out.put_u32(remote);
        });
        Ok(())
    }

    /// Closes a channel; data that still arrives is discarded.
    /// `ConnectionEvent::Closed` follows once the peer has closed it, too. A channel
    /// that the peer requested is refused; one that was requested locally is closed as soon as it
    /// opens.
    pub fn close_channel(&mut self, id: ChannelId) {
        let Some(channel) = self.slots.get_mut(id) else {
            return;
        };
        channel.closed_locally = true;
        match channel.stage {
            ChannelStage::RequestedByPeer => {
                _ = self.refuse_open(id, OpenFailureReason::ConnectFailed, "");
            }
            ChannelStage::RequestedLocally => {}
            ChannelStage::Open => {
                let remote = channel.remote;
                let unread = channel.intake.unread();
                channel.intake.consume(unread);
                if !core::mem::replace(&mut channel.sent_close, true) {
                    self.outbox.push(|out| {
                        out.put_u8(msg::CHANNEL_CLOSE);
                        out.put_u32(remote);
                    });
                }
                self.remove_if_over(id);
            }
        }
    }

    /// Returns a channel whose sending side has not ended.
    pub(super) fn writable_channel(
        &mut self,
        id: ChannelId,
    ) -> Result<&mut Channel, ChannelCallError> {
        let channel = self.slots.get_mut(id).ok_or(ChannelCallError::Gone)?;
        match channel.stage {
            ChannelStage::Open if channel.can_write() => Ok(channel),
            ChannelStage::Open => Err(ChannelCallError::Ended),
            ChannelStage::RequestedByPeer | ChannelStage::RequestedLocally => {
                Err(ChannelCallError::NotNow)
            }
        }
    }

    /// Checks that the output queue is below its limit, which also applies to local calls.
    pub(super) const fn check_output_space(&self) -> Result<(), ChannelCallError> {
        if self.outbox.byte_len() < self.limits.queue {
            Ok(())
        } else {
            Err(ChannelCallError::Full)
        }
    }
}
