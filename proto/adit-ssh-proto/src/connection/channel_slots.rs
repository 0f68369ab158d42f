//! Channels by number: local numbers, which are slots, and the peer's, each of which is used by one
//! channel at a time.

use std::collections::BTreeSet;

use super::{ChannelId, channel::Channel};

#[derive(Debug, Default)]
struct ChannelSlot {
    generation: u32,
    channel: Option<Channel>,
}

/// Slots for channels. Their number is the maximum number of simultaneous channels so far.
#[derive(Debug, Default)]
pub(super) struct ChannelSlots {
    slots: Vec<ChannelSlot>,
    /// Indices of empty slots.
    free: Vec<u32>,
    count: usize,
    /// The peer's numbers of channels that are not closed by both sides.
    remotes: BTreeSet<u32>,
}

impl ChannelSlots {
    /// Returns the number of channels.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) fn get(&self, id: ChannelId) -> Option<&Channel> {
        let slot = self.slots.get(usize::try_from(id.number).ok()?)?;
        let channel = slot.channel.as_ref();
        channel.filter(|_| slot.generation == id.generation)
    }

    pub(super) fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        let slot = self.slots.get_mut(usize::try_from(id.number).ok()?)?;
        let channel = slot.channel.as_mut();
        channel.filter(|_| slot.generation == id.generation)
    }

    /// Returns the channel that the peer addresses, which it must not have closed.
    pub(super) fn by_number(&mut self, number: u32) -> Option<(ChannelId, &mut Channel)> {
        let slot = self.slots.get_mut(usize::try_from(number).ok()?)?;
        let generation = slot.generation;
        let channel = slot.channel.as_mut().filter(|c| !c.got_close)?;
        Some((ChannelId { number, generation }, channel))
    }

    /// Iterates over all channels.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.slots.iter().filter_map(|slot| slot.channel.as_ref())
    }

    /// Inserts a channel and assigns a number; returns `None` if no number is left.
    pub(super) fn insert(&mut self, channel: Channel) -> Option<ChannelId> {
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(ChannelSlot::default());
                number
            }
        };
        let slot = self.slots.get_mut(usize::try_from(number).ok()?)?;
        slot.channel = Some(channel);
        self.count += 1;
        let generation = slot.generation;
        Some(ChannelId { number, generation })
    }

    /// Removes a channel; its number may be reused.
    pub(super) fn remove(&mut self, id: ChannelId) -> Option<Channel> {
        let slot = self.slots.get_mut(usize::try_from(id.number).ok()?)?;
        let channel = slot.channel.take_if(|_| slot.generation == id.generation)?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.number);
        self.count -= 1;
        Some(channel)
    }

    /// Records the peer's number of a channel; returns false if another channel uses it.
    pub(super) fn claim_remote(&mut self, remote: u32) -> bool {
        self.remotes.insert(remote)
    }

    /// Allows the peer to reuse this number.
    pub(super) fn release_remote(&mut self, remote: u32) {
        self.remotes.remove(&remote);
    }
}
