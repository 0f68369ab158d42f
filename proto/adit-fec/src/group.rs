//! The received shards of one group, and the restoring of lost ones.

use adit_wire::held;

use crate::{
    Code,
    packet::SHARD_HEADER,
    plans::{MAX_SHARDS, Set},
    tune::Kind,
};

/// A payload in a buffer of the pool.
#[derive(Debug)]
pub(crate) struct Shard {
    bytes: Box<[u8]>,
    len: usize,
}

impl Shard {
    pub(crate) fn payload(&self) -> &[u8] {
        held(&self.bytes, ..self.len)
    }
}

/// A pool of buffers of one size. It allocates a buffer only when all are in use, and groups limit the
/// number in use.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Vec<Box<[u8]>>,
    size: usize,
}

impl Pool {
    pub(crate) const fn new(size: usize) -> Self {
        Self {
            free: Vec::new(),
            size,
        }
    }

    /// Returns a buffer whose first `len` bytes, at most all, are to be used. It contains old bytes.
    fn take(&mut self, len: usize) -> Shard {
        let bytes = self.free.pop();
        let bytes = bytes.unwrap_or_else(|| vec![0; self.size].into_boxed_slice());
        let len = len.min(bytes.len());
        Shard { bytes, len }
    }

    /// Returns a buffer that starts with `payload`, or as much of it as fits.
    fn copy(&mut self, payload: &[u8]) -> Shard {
        let mut shard = self.take(payload.len());
        if let (Some(to), Some(from)) = (shard.bytes.get_mut(..shard.len), payload.get(..shard.len))
        {
            to.copy_from_slice(from);
        }
        shard
    }

    pub(crate) fn give(&mut self, shard: Shard) {
        self.free.push(shard.bytes);
    }

    /// Frees the buffers that are not in use.
    pub(crate) fn trim(&mut self) {
        self.free = Vec::new();
    }
}

/// A received shard, as one of several packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lent<'a> {
    pub(crate) packets: &'a [&'a [u8]],
    pub(crate) at: usize,
}

impl<'a> Lent<'a> {
    /// Returns the payload of the shard.
    fn payload(self) -> &'a [u8] {
        debug_assert!(
            self.at < self.packets.len(),
            "the shard must be one of these packets"
        );
        let packet = self.packets.get(self.at).copied().unwrap_or_default();
        held(packet, SHARD_HEADER..)
    }
}

/// A slot of a group.
#[derive(Debug, Default)]
enum Slot {
    /// Its shard has not arrived
    #[default]
    Empty,
    /// The index of its shard in the packets of the current view
    Lent(usize),
    /// A copied shard
    Held(Shard),
}

impl Slot {
    /// Returns the shard, which must have been copied.
    const fn held(&self) -> Option<&Shard> {
        match self {
            Self::Held(shard) => Some(shard),
            Self::Empty | Self::Lent(_) => None,
        }
    }
}

/// The effect of a shard on its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// It waits for others, or is not needed
    Nothing,
    /// All data shards have arrived, none was restored
    Complete,
    /// Lost data shards were restored
    Restored,
    /// The group's shards are inconsistent
    Inconsistent,
}

/// One group. Once its data is complete or given up it holds no buffers. Most groups are complete while
/// their packets are still in view, and never hold any.
#[derive(Debug, Default)]
pub(crate) struct Group {
    slots: Vec<Slot>,
    /// True if some of them are only borrowed.
    lent: bool,
    done: bool,
    data: usize,
    parity: usize,
    /// Length of the parity shards, once there is one.
    len: Option<usize>,
}

impl Group {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            slots: (0..shards).map(|_| Slot::Empty).collect(),
            ..Self::default()
        }
    }

    /// Returns true if shards are stored until others arrive.
    pub(crate) const fn waits(&self) -> bool {
        self.data + self.parity > 0
    }

    /// Discards all shards.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        self.finish(pool);
        self.done = false;
    }

    fn finish(&mut self, pool: &mut Pool) {
        for slot in &mut self.slots {
            if let Slot::Held(shard) = core::mem::take(slot) {
                pool.give(shard);
            }
        }
        (self.done, self.data, self.parity, self.len) = (true, 0, 0, None);
        self.lent = false;
    }

    /// Copies borrowed shards, because their packets go out of view or the shards are needed.
    pub(crate) fn hold(&mut self, packets: &[&[u8]], pool: &mut Pool) {
        if !core::mem::take(&mut self.lent) {
            return;
        }
        for slot in &mut self.slots {
            if let Slot::Lent(at) = *slot {
                *slot = Slot::Held(pool.copy(Lent { packets, at }.payload()));
            }
        }
    }

    /// Adds the shard `lent`, of at most the pool's size; restored shards are appended to `ready`.
    pub(crate) fn add(
        &mut self,
        place: usize,
        kind: Kind,
        lent: Lent<'_>,
        code: &mut Code,
        pool: &mut Pool,
        ready: &mut Vec<Shard>,
    ) -> Added {
        let len = lent.payload().len();
        let Some(slot @ Slot::Empty) = self.slots.get_mut(place).filter(|_| !self.done) else {
            return Added::Nothing;
        };
        match kind {
            Kind::Data => self.data += 1,
            Kind::Parity if self.len.is_some_and(|known| known != len) => {
                return Added::Inconsistent;
            }
            Kind::Parity => {
                self.parity += 1;
                self.len = Some(len);
            }
        }
        if self.data == code.data() {
            self.finish(pool);
            return Added::Complete;
        }
        *slot = Slot::Lent(lent.at);
        self.lent = true;
        if self.data + self.parity < code.data() {
            return Added::Nothing;
        }
        self.hold(lent.packets, pool);
        let restored = self.restore(code, pool, ready);
        self.finish(pool);
        restored.map_or(Added::Inconsistent, |()| Added::Restored)
    }

    /// Restores the lost data shards from as many shards as the code has data shards, including parity.
    fn restore(&mut self, code: &mut Code, pool: &mut Pool, ready: &mut Vec<Shard>) -> Option<()> {
        let len = self.len?;
        let mut at_hand = Set::default();
        let mut inputs = [&[] as &[u8]; MAX_SHARDS];
        let (data, parity) = self.slots.split_at_mut_checked(code.data())?;
        let parity = parity.iter().zip(code.data()..);
        let mut parity = parity.filter_map(|(slot, place)| Some((slot.held()?, place)));
        let first = ready.len();
        for ((place, slot), input) in data.iter_mut().enumerate().zip(&mut inputs) {
            if let Slot::Held(shard) = slot {
                // Parity is computed over the longest payload, with the others zero-padded.
                shard.bytes.get_mut(shard.len..len)?.fill(0);
                at_hand.insert(place);
                *input = shard.bytes.get(..len)?;
            } else {
                let (shard, place) = parity.next()?;
                at_hand.insert(place);
                *input = shard.payload();
                ready.push(pool.take(len));
            }
        }
        let mut lost: [&mut [u8]; MAX_SHARDS] = core::array::from_fn(|_| Default::default());
        let mut count = 0;
        for (output, shard) in lost.iter_mut().zip(ready.iter_mut().skip(first)) {
            *output = shard.bytes.get_mut(..len)?;
            count += 1;
        }
        let inputs = inputs.get(..code.data())?;
        code.repair(at_hand, inputs, lost.get_mut(..count)?).ok()
    }
}

#[cfg(test)]
impl Pool {
    pub(crate) fn stock(&self) -> usize {
        self.free.len()
    }
}

#[cfg(test)]
impl Group {
    pub(crate) fn held(&self) -> usize {
        self.slots.iter().filter_map(Slot::held).count()
    }
}
