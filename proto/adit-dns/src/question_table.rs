//! A table of values by name and type.

use std::collections::HashMap;

use adit_wire::{narrow_int, subslice, usize_from};

use crate::lru::LruOrder;
use crate::name::MAX_NAME;
use crate::record_type::RecordType;

/// Maximum length of a key: a name as text, and its type.
const MAX_KEY: usize = MAX_NAME + 2;

/// A table of values by name and type, in the order of their use.
///
/// Names are compared as they are.
#[derive(Debug)]
pub(crate) struct QuestionTable<V> {
    /// The slots of the keys: names and types.
    index: HashMap<Box<[u8]>, u32>,
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
    order: LruOrder,
}

#[derive(Debug)]
struct Slot<V> {
    key: Box<[u8]>,
    /// `None` in a free slot.
    value: Option<V>,
}

impl<V> Default for QuestionTable<V> {
    fn default() -> Self {
        Self {
            index: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            order: LruOrder::default(),
        }
    }
}

impl<V> QuestionTable<V> {
    /// Returns the value of a name and a type, which counts as used now.
    pub(crate) fn get(&mut self, name: &str, record_type: RecordType) -> Option<&mut V> {
        let mut room = [0; MAX_KEY];
        let slot = *self.index.get(key(&mut room, name, record_type)?)?;
        self.order.touch(slot);
        self.slots.get_mut(usize_from(slot))?.value.as_mut()
    }

    /// Inserts a value for a name and a type that have none. A name that is longer than names are is not inserted.
    pub(crate) fn insert(&mut self, name: &str, record_type: RecordType, value: V) {
        let mut room = [0; MAX_KEY];
        let Some(key) = key(&mut room, name, record_type) else {
            return;
        };
        debug_assert!(!self.index.contains_key(key), "a second value");
        let filled = Slot {
            key: key.into(),
            value: Some(value),
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => narrow_int(self.slots.len()),
        };
        match self.slots.get_mut(usize_from(slot)) {
            Some(place) => *place = filled,
            None => self.slots.push(filled),
        }
        self.index.insert(key.into(), slot);
        self.order.insert(slot);
    }

    /// Removes the value of a name and a type.
    pub(crate) fn remove(&mut self, name: &str, record_type: RecordType) -> Option<V> {
        let mut room = [0; MAX_KEY];
        let slot = *self.index.get(key(&mut room, name, record_type)?)?;
        self.remove_slot(slot)
    }

    /// Removes the value that has not been used for the longest time.
    pub(crate) fn remove_oldest(&mut self) -> Option<V> {
        let oldest = self.order.oldest()?;
        self.remove_slot(oldest)
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    fn remove_slot(&mut self, slot: u32) -> Option<V> {
        let place = self.slots.get_mut(usize_from(slot))?;
        let value = place.value.take()?;
        self.index.remove(&std::mem::take(&mut place.key));
        self.order.remove(slot);
        self.free.push(slot);
        Some(value)
    }
}

/// Writes the key of a name and a type; `None` if the name is longer than names are.
fn key<'a>(room: &'a mut [u8; MAX_KEY], name: &str, record_type: RecordType) -> Option<&'a [u8]> {
    let (to_name, rest) = room.split_at_mut_checked(name.len())?;
    to_name.copy_from_slice(name.as_bytes());
    *rest.first_chunk_mut()? = record_type.0.to_be_bytes();
    Some(subslice(&*room, ..name.len() + 2))
}
