//! The channels by their numbers: ours, which are places, and the peer's, of which each is used
//! once at a time.

use std::collections::BTreeSet;

use super::{ChannelId, channel::Channel};

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    channel: Option<Channel>,
}

/// Places for channels. There are as many as there were channels at a time.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Numbers of empty places.
    free: Vec<u32>,
    count: usize,
    /// The peer's numbers, of channels that it has not both closed and seen closed.
    remotes: BTreeSet<u32>,
}

impl Slots {
    /// Channels there are.
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

    /// The channel that the peer means: one that it has not closed.
    pub(super) fn by_number(&mut self, number: u32) -> Option<(ChannelId, &mut Channel)> {
        let slot = self.slots.get_mut(usize::try_from(number).ok()?)?;
        let generation = slot.generation;
        let channel = slot.channel.as_mut().filter(|c| !c.got_close)?;
        Some((ChannelId { number, generation }, channel))
    }

    /// All channels.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.slots.iter().filter_map(|slot| slot.channel.as_ref())
    }

    /// Gives it a number; `None` if there is none left.
    pub(super) fn insert(&mut self, channel: Channel) -> Option<ChannelId> {
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot::default());
                number
            }
        };
        let slot = self.slots.get_mut(usize::try_from(number).ok()?)?;
        slot.channel = Some(channel);
        self.count += 1;
        let generation = slot.generation;
        Some(ChannelId { number, generation })
    }

    /// Takes it away; its number may be used again.
    pub(super) fn remove(&mut self, id: ChannelId) -> Option<Channel> {
        let slot = self.slots.get_mut(usize::try_from(id.number).ok()?)?;
        let channel = slot.channel.take_if(|_| slot.generation == id.generation)?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.number);
        self.count -= 1;
        Some(channel)
    }

    /// The peer has given this number to a channel; false if it has another one of that number.
    pub(super) fn take_remote(&mut self, remote: u32) -> bool {
        self.remotes.insert(remote)
    }

    /// The peer may use this number again.
    pub(super) fn free_remote(&mut self, remote: u32) {
        self.remotes.remove(&remote);
    }
}
