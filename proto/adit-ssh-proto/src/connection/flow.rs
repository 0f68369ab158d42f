//! Flow of data: the amount that may be sent, the turns of writers, and the peer's windows.

use adit_wire::{Time, usize_from};

use super::channel::WriterState;
use super::{ChannelCallError, ChannelId, Connection, DataKind};
use crate::msg;
use crate::wire::SshBufMut;

/// The only defined type of extended data (RFC 4254 section 5.2).
pub(super) const STDERR: u32 = 1;

impl Connection {
    /// Returns the number of data bytes that fit in the next message of a channel.
    ///
    /// Returns 0 while the peer's window is used up (until
    /// `ConnectionEvent::Writable`), after the end of the sending side, and while
    /// control messages are queued, which are sent first.
    #[must_use]
    pub fn send_capacity(&self, id: ChannelId) -> usize {
        let channel = self.slots.get(id).filter(|c| c.can_write());
        let room = channel.map_or(0, |c| c.window.min(c.max_send));
        if self.outbox.is_empty() {
            usize_from(room)
        } else {
            0
        }
    }

    /// Appends the fields in front of `len` bytes of data to `out`, and counts the data as sent:
    /// the caller appends it and sends the payload.
    ///
    /// # Errors
    /// [`ChannelCallError`] if the channel is gone, not open or at its end, or `len` is 0 or exceeds
    /// `writable_len`.
    pub fn begin_data(
        &mut self,
        id: ChannelId,
        kind: DataKind,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelCallError> {
        let room = self.send_capacity(id);
        let channel = self.writable_channel(id)?;
        let len = u32::try_from(len).map_err(|_| ChannelCallError::NoRoom)?;
        let fits = len > 0 && usize::try_from(len).is_ok_and(|len| len <= room);
        let left = channel.window.checked_sub(len).filter(|_| fits);
        channel.window = left.ok_or(ChannelCallError::NoRoom)?;
        match kind {
            DataKind::Stdout => {
                out.put_u8(msg::CHANNEL_DATA);
                out.put_u32(channel.remote);
            }
            DataKind::Stderr => {
                out.put_u8(msg::CHANNEL_EXTENDED_DATA);
                out.put_u32(channel.remote);
                out.put_u32(STDERR);
            }
        }
        out.put_u32(len);
        Ok(())
    }

    /// Adds a channel to the queue of writers, unless it is already there.
    pub fn queue_writer(&mut self, id: ChannelId) {
        if let Some(channel) = self.slots.get_mut(id)
            && channel.turn == WriterState::Idle
            && channel.can_write()
        {
            channel.turn = WriterState::Queued;
            self.write_queue.push_back(id);
        }
    }

    /// Returns the next channel in the queue of writers that has room. It writes
    /// one message, and goes to the end of the queue if it [wants to](Self::queue_writer) write more.
    /// Channels without a window return to the queue when it opens.
    pub fn next_writer(&mut self) -> Option<ChannelId> {
        if !self.outbox.is_empty() {
            return None;
        }
        while let Some(id) = self.write_queue.pop_front() {
            let Some(channel) = self.slots.get_mut(id) else {
                continue;
            };
            if !channel.can_write() {
                channel.turn = WriterState::Idle;
            } else if channel.window == 0 {
                channel.turn = WriterState::Parked;
            } else {
                channel.turn = WriterState::Idle;
                return Some(id);
            }
        }
        None
    }

    /// Records that `len` bytes of a channel were passed on: the peer may send as many again.
    ///
    /// May be called after `ConnectionEvent::Closed`, too; the channel counts until
    /// everything is consumed, or it is closed locally.
    pub fn consume_data(&mut self, id: ChannelId, len: usize, now: Time) {
        let Some(channel) = self.slots.get_mut(id) else {
            return;
        };
        channel
            .intake
            .consume(u32::try_from(len).unwrap_or(u32::MAX));
        if !channel.is_receiving() {
            self.remove_if_over(id);
            return;
        }
        if self
            .rtt
            .is_some_and(|rtt| channel.intake.is_tight(now, rtt))
        {
            let target = channel.intake.target();
            let by = self.budget.allot_growth(target, self.limits.max_window);
            channel.intake.grow(by);
        }
        if !channel.in_adjusts && channel.intake.is_due() {
            channel.in_adjusts = true;
            self.pending_adjusts.push_back(id);
        }
    }

    /// Returns the number of bytes that have to be passed on before [`consume_data`](Self::consume_data)
    /// can have an effect; until then, calls may be combined. At least 1.
    #[must_use]
    pub fn min_consume_len(&self, id: ChannelId) -> usize {
        let channel = self.slots.get(id).filter(|c| c.is_receiving());
        let worth = channel.map_or(1, |c| c.intake.bytes_until_due());
        usize_from(worth).max(1)
    }

    /// Appends the next control payload to `out`; returns false if there is none. They are in
    /// order.
    pub fn poll_output(&mut self, out: &mut Vec<u8>) -> bool {
        if self.outbox.pop(out) {
            return true;
        }
        while let Some(id) = self.pending_adjusts.pop_front() {
            let Some(channel) = self.slots.get_mut(id) else {
                continue;
            };
            channel.in_adjusts = false;
            if !channel.is_receiving() {
                continue;
            }
            out.put_u8(msg::CHANNEL_WINDOW_ADJUST);
            out.put_u32(channel.remote);
            out.put_u32(channel.intake.grant_all());
            return true;
        }
        false
    }
}
