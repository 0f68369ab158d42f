//! A cache of answers.

use core::time::Duration;
use std::sync::Arc;

use adit_wire::Time;

use crate::answer::Answer;
use crate::name::MAX_NAME;
use crate::question_table::QuestionTable;
use crate::record_type::RecordType;

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
    entries: QuestionTable<Entry>,
    bytes: usize,
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
            entries: QuestionTable::default(),
            bytes: 0,
        }
    }

    /// Returns the answer for a name and a type that is still valid at `now`.
    pub fn get(&mut self, name: &str, record_type: RecordType, now: Time) -> Option<CachedAnswer> {
        let entry = self.entries.get(name, record_type)?;
        if entry.until <= now {
            self.remove(name, record_type);
            return None;
        }
        Some(CachedAnswer {
            answer: entry.answer.clone(),
            age: now.duration_since(entry.since),
        })
    }

    /// Inserts the answer for a name and a type, if it may be cached: failures, refusals, truncated answers and
    /// those with a time to live of 0 are not.
    pub fn insert(&mut self, name: &str, record_type: RecordType, answer: Arc<Answer>, now: Time) {
        self.remove(name, record_type);
        let limits = &self.limits;
        let ttl = match answer.is_negative() {
            true => answer.ttl().min(limits.max_negative_ttl),
            false => answer.ttl().max(limits.min_ttl).min(limits.max_ttl),
        };
        let key = name.len() + size_of::<RecordType>();
        let bytes = ENTRY_OVERHEAD + 2 * key + answer.memory();
        let unfit = answer.is_truncated() || !answer.is_about_the_name() || name.len() > MAX_NAME;
        if unfit || ttl.is_zero() || bytes > limits.bytes || limits.entries == 0 {
            return;
        }
        while self.len() >= self.limits.entries || self.bytes + bytes > self.limits.bytes {
            let Some(oldest) = self.entries.remove_oldest() else {
                break;
            };
            self.bytes -= oldest.bytes;
        }
        let entry = Entry {
            answer,
            since: now,
            until: now + ttl,
            bytes,
        };
        self.entries.insert(name, record_type, entry);
        self.bytes += bytes;
    }

    /// Removes all answers, for example in another network.
    pub fn clear(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Returns the number of answers, including those that have expired and were not looked up since.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there are no answers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of the answers, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn remove(&mut self, name: &str, record_type: RecordType) {
        if let Some(entry) = self.entries.remove(name, record_type) {
            self.bytes -= entry.bytes;
        }
    }
}
