//! The received shards of one group, and the restoring of lost ones.

use alloc::{boxed::Box, vec, vec::Vec};

use adit_wire::subslice;

use crate::{
    ErasureCode,
    group_size::ShardKind,
    packet::SHARD_HEADER,
    repair_plans::{MAX_SHARDS, ShardSet},
};

/// A payload in a buffer of the pool.
#[derive(Debug)]
pub(crate) struct Shard {
    bytes: Box<[u8]>,
    len: usize,
}

impl Shard {
    pub(crate) fn payload(&self) -> &[u8] {
        subslice(&self.bytes, ..self.len)
    }
}

/// A pool of buffers of one size. It allocates a buffer only when all are in use, and groups limit the
/// number in use.
#[derive(Debug)]
pub(crate) struct BufferPool {
    free: Vec<Box<[u8]>>,
    size: usize,
}

impl BufferPool {
    pub(crate) const fn new(size: usize) -> Self {
        Self {
            free: Vec::new(),
            size,
        }
    }

    /// Returns a buffer whose first `len` bytes, at most all, are to be used. It contains old bytes.
    fn take_buffer(&mut self, len: usize) -> Shard {
        let bytes = self.free.pop();
        let bytes = bytes.unwrap_or_else(|| vec![0; self.size].into_boxed_slice());
        let len = len.min(bytes.len());
        Shard { bytes, len }
    }

    /// Returns a buffer that starts with `payload`, or as much of it as fits.
    fn copy_payload(&mut self, payload: &[u8]) -> Shard {
        let mut shard = self.take_buffer(payload.len());
        if let (Some(to), Some(from)) = (shard.bytes.get_mut(..shard.len), payload.get(..shard.len))
        {
            to.copy_from_slice(from);
        }
        shard
    }

    pub(crate) fn return_buffer(&mut self, shard: Shard) {
        self.free.push(shard.bytes);
    }

    /// Frees the buffers that are not in use.
    pub(crate) fn release_free(&mut self) {
        self.free = Vec::new();
    }
}

/// A received shard, as one of several packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BorrowedShard<'a> {
    pub(crate) packets: &'a [&'a [u8]],
    pub(crate) at: usize,
}

impl<'a> BorrowedShard<'a> {
    /// Returns the payload of the shard.
    fn payload(self) -> &'a [u8] {
        debug_assert!(
            self.at < self.packets.len(),
            "the shard must be one of these packets"
        );
        let packet = self.packets.get(self.at).copied().unwrap_or_default();
        subslice(packet, SHARD_HEADER..)
    }
}

/// A slot of a group.
#[derive(Debug, Default)]
enum Slot {
    /// Its shard has not arrived
    #[default]
    Empty,
    /// The index of its shard in the packets of the current view
    Borrowed(usize),
    /// A copied shard
    Copied(Shard),
}

impl Slot {
    /// Returns the shard, which must have been copied.
    const fn copied(&self) -> Option<&Shard> {
        match self {
            Self::Copied(shard) => Some(shard),
            Self::Empty | Self::Borrowed(_) => None,
        }
    }
}

/// The effect of a shard on its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddResult {
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
    has_borrowed: bool,
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
    pub(crate) const fn is_waiting(&self) -> bool {
        self.data + self.parity > 0
    }

    /// Discards all shards.
    pub(crate) fn discard_shards(&mut self, pool: &mut BufferPool) {
        self.mark_done(pool);
        self.done = false;
    }

    fn mark_done(&mut self, pool: &mut BufferPool) {
        for slot in &mut self.slots {
            if let Slot::Copied(shard) = core::mem::take(slot) {
                pool.return_buffer(shard);
            }
        }
        (self.done, self.data, self.parity, self.len) = (true, 0, 0, None);
        self.has_borrowed = false;
    }

    /// Copies borrowed shards, because their packets go out of view or the shards are needed.
    pub(crate) fn copy_borrowed(&mut self, packets: &[&[u8]], pool: &mut BufferPool) {
        if !core::mem::take(&mut self.has_borrowed) {
            return;
        }
        for slot in &mut self.slots {
            if let Slot::Borrowed(at) = *slot {
                *slot = Slot::Copied(pool.copy_payload(BorrowedShard { packets, at }.payload()));
            }
        }
    }

    /// Adds the shard `lent`, of at most the pool's size; restored shards are appended to `ready`.
    pub(crate) fn add_shard(
        &mut self,
        place: usize,
        kind: ShardKind,
        lent: BorrowedShard<'_>,
        code: &mut ErasureCode,
        pool: &mut BufferPool,
        ready: &mut Vec<Shard>,
    ) -> AddResult {
        let len = lent.payload().len();
        let Some(slot @ Slot::Empty) = self.slots.get_mut(place).filter(|_| !self.done) else {
            return AddResult::Nothing;
        };
        match kind {
            ShardKind::Data => self.data += 1,
            ShardKind::Parity if self.len.is_some_and(|known| known != len) => {
                return AddResult::Inconsistent;
            }
            ShardKind::Parity => {
                self.parity += 1;
                self.len = Some(len);
            }
        }
        if self.data == code.data_shards() {
            self.mark_done(pool);
            return AddResult::Complete;
        }
        *slot = Slot::Borrowed(lent.at);
        self.has_borrowed = true;
        if self.data + self.parity < code.data_shards() {
            return AddResult::Nothing;
        }
        self.copy_borrowed(lent.packets, pool);
        let restored = self.restore_lost(code, pool, ready);
        self.mark_done(pool);
        restored.map_or(AddResult::Inconsistent, |()| AddResult::Restored)
    }

    /// Restores the lost data shards from as many shards as the code has data shards, including parity.
    fn restore_lost(
        &mut self,
        code: &mut ErasureCode,
        pool: &mut BufferPool,
        ready: &mut Vec<Shard>,
    ) -> Option<()> {
        let len = self.len?;
        let mut at_hand = ShardSet::default();
        let mut inputs = [&[] as &[u8]; MAX_SHARDS];
        let (data, parity) = self.slots.split_at_mut_checked(code.data_shards())?;
        let parity = parity.iter().zip(code.data_shards()..);
        let mut parity = parity.filter_map(|(slot, place)| Some((slot.copied()?, place)));
        let first = ready.len();
        for ((place, slot), input) in data.iter_mut().enumerate().zip(&mut inputs) {
            if let Slot::Copied(shard) = slot {
                // Parity is computed over the longest payload, with the others zero-padded.
                shard.bytes.get_mut(shard.len..len)?.fill(0);
                at_hand.insert(place);
                *input = shard.bytes.get(..len)?;
            } else {
                let (shard, place) = parity.next()?;
                at_hand.insert(place);
                *input = shard.payload();
                ready.push(pool.take_buffer(len));
            }
        }
        let mut lost: [&mut [u8]; MAX_SHARDS] = core::array::from_fn(|_| Default::default());
        let mut count = 0;
        for (output, shard) in lost.iter_mut().zip(ready.iter_mut().skip(first)) {
            *output = shard.bytes.get_mut(..len)?;
            count += 1;
        }
        let inputs = inputs.get(..code.data_shards())?;
        code.repair_shards(at_hand, inputs, lost.get_mut(..count)?)
            .ok()
    }
}

#[cfg(test)]
impl BufferPool {
    pub(crate) fn stock(&self) -> usize {
        self.free.len()
    }
}

#[cfg(test)]
impl Group {
    pub(crate) fn held(&self) -> usize {
        self.slots.iter().filter_map(Slot::copied).count()
    }
}
