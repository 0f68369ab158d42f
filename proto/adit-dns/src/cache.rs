//! A cache of answers.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;

use adit_wire::{Time, narrow_int, subslice, usize_from};

use crate::answer::Answer;
use crate::lru::LruOrder;
use crate::record_type::RecordType;

/// Maximum length of a key: a name as text, and its type.
const MAX_KEY: usize = 255 + 2;
/// Memory of an entry besides its name and its answer, in bytes: the tables and their free space.
const ENTRY_OVERHEAD: usize = 160;

/// The limits of a [`Cache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLimits {
    /// Maximum number of answers.
    pub entries: usize,
    /// Maximum memory, in bytes.
    pub bytes: usize,
    /// Minimum time for which answers with records are cached, even if their time to live is shorter.
    pub min_ttl: Duration,
    /// Maximum time for which answers with records are cached.
    pub max_ttl: Duration,
    /// Maximum time for which negative answers are cached.
    pub max_negative_ttl: Duration,
}

impl Default for CacheLimits {
    /// 4,096 answers in 4 MiB; times to live up to a day, of negative answers up to five minutes.
    fn default() -> Self {
        Self {
            entries: 4096,
            bytes: 4 << 20,
            min_ttl: Duration::ZERO,
            max_ttl: Duration::from_secs(24 * 3600),
            max_negative_ttl: Duration::from_secs(5 * 60),
        }
    }
}

/// An answer of a [`Cache`].
#[derive(Debug, Clone)]
pub struct CachedAnswer {
    /// The answer as it was inserted.
    pub answer: Arc<Answer>,
    /// The time since it was inserted, for [`Answer::reply_to`].
    pub age: Duration,
}

/// A cache of answers by name and type, for their time to live; the least recently used ones are dropped
/// when it is full.
///
/// Names are compared as they are, so all have to be in the form of [`ClientQuery::name`](crate::ClientQuery::name).
#[derive(Debug)]
pub struct Cache {
    limits: CacheLimits,
    /// The slots of the keys: names and types.
    index: HashMap<Box<[u8]>, u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    order: LruOrder,
    bytes: usize,
}

#[derive(Debug)]
struct Slot {
    key: Box<[u8]>,
    /// `None` in a free slot.
    entry: Option<Entry>,
}

#[derive(Debug)]
struct Entry {
    answer: Arc<Answer>,
    since: Time,
    until: Time,
    bytes: usize,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new(CacheLimits::default())
    }
}

impl Cache {
    /// Creates an empty cache; it allocates as it fills.
    #[must_use]
    pub fn new(limits: CacheLimits) -> Self {
        Self {
            limits,
            index: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            order: LruOrder::default(),
            bytes: 0,
        }
    }

    /// Returns the answer for a name and a type that is still valid at `now`.
    pub fn get(&mut self, name: &str, record_type: RecordType, now: Time) -> Option<CachedAnswer> {
        let mut room = [0; MAX_KEY];
        let slot = *self.index.get(key(&mut room, name, record_type)?)?;
        let entry = self.slots.get(usize_from(slot))?.entry.as_ref()?;
        if entry.until <= now {
            self.remove(slot);
            return None;
        }
        let found = CachedAnswer {
            answer: entry.answer.clone(),
            age: now.duration_since(entry.since),
        };
        self.order.touch(slot);
        Some(found)
    }

    /// Inserts the answer for a name and a type, if it may be cached: failures, refusals, truncated answers and
    /// those with a time to live of 0 are not.
    pub fn insert(&mut self, name: &str, record_type: RecordType, answer: Arc<Answer>, now: Time) {
        let mut room = [0; MAX_KEY];
        let Some(key) = key(&mut room, name, record_type) else {
            return;
        };
        if let Some(slot) = self.index.get(key) {
            self.remove(*slot);
        }
        let limits = &self.limits;
        let ttl = match answer.is_negative() {
            true => answer.ttl().min(limits.max_negative_ttl),
            false => answer.ttl().max(limits.min_ttl).min(limits.max_ttl),
        };
        let bytes = ENTRY_OVERHEAD + 2 * key.len() + answer.memory();
        let unfit = answer.is_truncated() || !answer.is_about_the_name();
        if unfit || ttl.is_zero() || bytes > limits.bytes || limits.entries == 0 {
            return;
        }
        while self.index.len() >= self.limits.entries || self.bytes + bytes > self.limits.bytes {
            let Some(oldest) = self.order.oldest() else {
                break;
            };
            self.remove(oldest);
        }
        let filled = Slot {
            key: key.into(),
            entry: Some(Entry {
                answer,
                since: now,
                until: now + ttl,
                bytes,
            }),
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
        self.bytes += bytes;
    }

    /// Removes all answers, for example in another network.
    pub fn clear(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Returns the number of answers, including those that have expired and were not looked up since.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True if there are no answers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the memory of the answers, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn remove(&mut self, slot: u32) {
        let Some(place) = self.slots.get_mut(usize_from(slot)) else {
            return;
        };
        if let Some(entry) = place.entry.take() {
            self.index.remove(&std::mem::take(&mut place.key));
            self.order.remove(slot);
            self.free.push(slot);
            self.bytes -= entry.bytes;
        }
    }
}

/// Writes the key of a name and a type; `None` if the name is longer than names are.
fn key<'a>(room: &'a mut [u8; MAX_KEY], name: &str, record_type: RecordType) -> Option<&'a [u8]> {
    let (to_name, rest) = room.split_at_mut_checked(name.len())?;
    to_name.copy_from_slice(name.as_bytes());
    *rest.first_chunk_mut()? = record_type.0.to_be_bytes();
    Some(subslice(&*room, ..name.len() + 2))
}
