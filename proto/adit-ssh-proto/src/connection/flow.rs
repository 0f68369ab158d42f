//! Flow of data: the amount that may be sent, the turns of writers, and the peer's windows.

use adit_wire::{Time, usize_from};

use super::channel::Turn;
use super::{CallError, ChannelId, Connection, Kind};
use crate::msg;
use crate::wire::Put;

/// The only defined type of extended data (RFC 4254 section 5.2).
pub(super) const STDERR: u32 = 1;

impl Connection {
    /// Returns the number of data bytes that fit in the next message of a channel.
    ///
    /// Returns 0 while the peer's window is used up (until
    /// [`Event::Writable`](super::Event::Writable)), after the end of the sending side, and while
    /// control messages are queued, which are sent first.
    #[must_use]
    pub fn room(&self, id: ChannelId) -> usize {
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
    /// [`CallError`] if the channel is gone, not open or at its end, or `len` is 0 or exceeds
    /// [`room`](Self::room).
    pub fn data_header(
        &mut self,
        id: ChannelId,
        kind: Kind,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CallError> {
        let room = self.room(id);
        let channel = self.writer(id)?;
        let len = u32::try_from(len).map_err(|_| CallError::NoRoom)?;
        let fits = len > 0 && usize::try_from(len).is_ok_and(|len| len <= room);
        let left = channel.window.checked_sub(len).filter(|_| fits);
        channel.window = left.ok_or(CallError::NoRoom)?;
        match kind {
            Kind::Stdout => {
                out.put_u8(msg::CHANNEL_DATA);
                out.put_u32(channel.remote);
            }
            Kind::Stderr => {
                out.put_u8(msg::CHANNEL_EXTENDED_DATA);
                out.put_u32(channel.remote);
                out.put_u32(STDERR);
            }
        }
        out.put_u32(len);
        Ok(())
    }

    /// Adds a channel to the queue of writers, unless it is already there.
    pub fn want_write(&mut self, id: ChannelId) {
        if let Some(channel) = self.slots.get_mut(id)
            && channel.turn == Turn::Idle
            && channel.can_write()
        {
            channel.turn = Turn::Queued;
            self.turns.push_back(id);
        }
    }

    /// Returns the next channel in the queue of writers that has [`room`](Self::room). It writes
    /// one message, and goes to the end of the queue if it [wants to](Self::want_write) write more.
    /// Channels without a window return to the queue when it opens.
    pub fn next_writer(&mut self) -> Option<ChannelId> {
        if !self.outbox.is_empty() {
            return None;
        }
        while let Some(id) = self.turns.pop_front() {
            let Some(channel) = self.slots.get_mut(id) else {
                continue;
            };
            if !channel.can_write() {
                channel.turn = Turn::Idle;
            } else if channel.window == 0 {
                channel.turn = Turn::Parked;
            } else {
                channel.turn = Turn::Idle;
                return Some(id);
            }
        }
        None
    }

    /// Records that `len` bytes of a channel were passed on: the peer may send as many again.
    ///
    /// May be called after [`Event::Closed`](super::Event::Closed), too; the channel counts until
    /// everything is consumed, or it is [closed](Self::close) locally.
    pub fn consumed(&mut self, id: ChannelId, len: usize, now: Time) {
        let Some(channel) = self.slots.get_mut(id) else {
            return;
        };
        channel
            .intake
            .consume(u32::try_from(len).unwrap_or(u32::MAX));
        if !channel.still_receives() {
            self.settle(id);
            return;
        }
        if self
            .rtt
            .is_some_and(|rtt| channel.intake.is_tight(now, rtt))
        {
            let target = channel.intake.target();
            let by = self.budget.grow(target, self.limits.max_window);
            channel.intake.grow(by);
        }
        if !channel.in_adjusts && channel.intake.is_due() {
            channel.in_adjusts = true;
            self.adjusts.push_back(id);
        }
    }

    /// Returns the number of bytes that have to be passed on before [`consumed`](Self::consumed)
    /// can have an effect; until then, calls may be combined. At least 1.
    #[must_use]
    pub fn worth(&self, id: ChannelId) -> usize {
        let channel = self.slots.get(id).filter(|c| c.still_receives());
        let worth = channel.map_or(1, |c| c.intake.lacks());
        usize_from(worth).max(1)
    }

    /// Appends the next control payload to `out`; returns false if there is none. They are in
    /// order.
    pub fn poll_output(&mut self, out: &mut Vec<u8>) -> bool {
        if self.outbox.pop(out) {
            return true;
        }
        while let Some(id) = self.adjusts.pop_front() {
            let Some(channel) = self.slots.get_mut(id) else {
                continue;
            };
            channel.in_adjusts = false;
            if !channel.still_receives() {
                continue;
            }
            out.put_u8(msg::CHANNEL_WINDOW_ADJUST);
            out.put_u32(channel.remote);
            out.put_u32(channel.intake.grant());
            return true;
        }
        false
    }
}
