//! A cache of failed lookups.

use core::time::Duration;

use adit_wire::Time;

use crate::name::MAX_NAME;
use crate::question_table::QuestionTable;
use crate::record_type::RecordType;

/// The pause after the first failure (RFC 9520 section 3.2: at least 1 s).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause (at most 5 min): a name is found again soon after its servers work.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// A cache of failed lookups by name and type (RFC 9520): during a pause, which grows from 1 s to 30 s with each further
/// failure, a lookup fails for the same reason and no server is asked.
///
/// Names are compared as they are, so all have to be in the form of [`ClientQuery::name`](crate::ClientQuery::name).
///
/// # Examples
///
/// ```
/// use adit_dns::{FailureCache, RecordType};
/// use adit_wire::Time;
///
/// let mut failures = FailureCache::new(1024);
/// failures.insert("a.test", RecordType::A, "no answer", Time(0));
/// assert_eq!(failures.get("a.test", RecordType::A, Time(999_999)), Some("no answer"));
/// assert_eq!(failures.get("a.test", RecordType::A, Time(1_000_000)), None);
/// ```
#[derive(Debug)]
pub struct FailureCache<E> {
    failures: QuestionTable<Failure<E>>,
    capacity: usize,
    recoveries: u64,
}

#[derive(Debug)]
struct Failure<E> {
    why: E,
    since: Time,
    pause: Duration,
    /// The number of recoveries before it.
    recoveries: u64,
}

impl<E> Failure<E> {
    /// Returns the end of the pause.
    fn until(&self, recoveries: u64) -> Time {
        match self.recoveries == recoveries {
            true => self.since + self.pause,
            false => self.since + FIRST_PAUSE,
        }
    }
}

impl<E: Clone> FailureCache<E> {
    /// Creates a cache of up to `capacity` failures; it allocates as it fills.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            failures: QuestionTable::default(),
            capacity,
            recoveries: 0,
        }
    }

    /// Returns the reason why the last lookup failed, if a new one has to wait at `now`.
    pub fn get(&mut self, name: &str, record_type: RecordType, now: Time) -> Option<E> {
        let recoveries = self.recoveries;
        let failure = self.failures.get(name, record_type)?;
        (failure.until(recoveries) > now).then(|| failure.why.clone())
    }

    /// Inserts a failure. Its pause is twice as long as that of the last one, if that has ended less than 30 s ago. A
    /// failure during the pause of another one changes nothing.
    pub fn insert(&mut self, name: &str, record_type: RecordType, why: E, now: Time) {
        let recoveries = self.recoveries;
        let mut pause = FIRST_PAUSE;
        if let Some(before) = self.failures.get(name, record_type) {
            let until = before.until(recoveries);
            if until > now {
                return;
            }
            if before.recoveries == recoveries && until + MAX_PAUSE > now {
                pause = (before.pause * 2).min(MAX_PAUSE);
            }
            self.failures.remove(name, record_type);
        }
        if self.capacity == 0 || name.len() > MAX_NAME {
            return;
        }
        if self.failures.len() >= self.capacity {
            self.failures.remove_oldest();
        }
        let failure = Failure {
            why,
            since: now,
            pause,
            recoveries,
        };
        self.failures.insert(name, record_type, failure);
    }

    /// Removes the failure of a name that has been looked up.
    pub fn remove(&mut self, name: &str, record_type: RecordType) {
        self.failures.remove(name, record_type);
    }

    /// Shortens all pauses to 1 s, because a server works again.
    pub const fn shorten_pauses(&mut self) {
        self.recoveries += 1;
    }

    /// Removes all failures, for example in another network.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }
}
