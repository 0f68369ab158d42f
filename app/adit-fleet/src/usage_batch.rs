//! Usage in numbered batches, so that each byte is counted once: the node repeats a batch until the store has
//! acknowledged it, and the store adds each number once.
//!
//! ```text
//! add ─▶ pending ── cut ─▶ batch n (persisted) ── store ─▶ acknowledge(n)
//! ```
//!
//! A batch is persisted before it is sent: after a crash its content is the same under the same number.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::period::PeriodLabel;

/// Maximum number of entries of a batch.
pub const MAX_BATCH: usize = 1000;

/// Bytes that a user moved at one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserUsage {
    /// The number of the user.
    pub user: u32,
    /// The period that the bytes belong to.
    pub period: PeriodLabel,
    /// Payload bytes from the client.
    pub up: u64,
    /// Payload bytes to the client.
    pub down: u64,
}

/// Bytes that a user moved in a period, over all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserTotal {
    /// The number of the user.
    pub user: u32,
    /// The period.
    pub period: PeriodLabel,
    /// Payload bytes from the client.
    pub up: u64,
    /// Payload bytes to the client.
    pub down: u64,
}

impl UserTotal {
    /// Returns the bytes of both directions.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.up.saturating_add(self.down)
    }
}

/// A batch of usage. The numbers of a node's batches increase by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageBatch {
    /// The number, from 1 on.
    pub number: u64,
    /// At most [`MAX_BATCH`] entries, each with another user or period.
    pub entries: Vec<UserUsage>,
}

impl UsageBatch {
    /// Returns the bytes of all entries.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sums = self
            .entries
            .iter()
            .map(|entry| entry.up.saturating_add(entry.down));
        sums.fold(0, u64::saturating_add)
    }
}

/// The answer of a store to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReply {
    /// True if this call has added the batch, false if it had been added before.
    pub applied: bool,
    /// The highest number of the node's batches that were added.
    pub last: u64,
    /// The number of the realm's nodes, whether they report or not: each may have a lease.
    pub nodes: u32,
    /// The totals of the batch's entries, in their order, including the batch.
    pub totals: Vec<UserTotal>,
}

/// The usage of a node that the store has not acknowledged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageLedger {
    /// The number of the last batch that was cut.
    last: u64,
    unacknowledged: Option<UsageBatch>,
    pending: BTreeMap<(PeriodLabel, u32), [u64; 2]>,
    /// The last entry that was cut: the next batch begins after it, so that all users have their turn.
    last_cut: Option<(PeriodLabel, u32)>,
}

impl UsageLedger {
    /// Continues after batch number `last`, of which `unacknowledged` is the last one if the store may not have it.
    #[must_use]
    pub fn resume(last: u64, unacknowledged: Option<UsageBatch>) -> Self {
        let cut = unacknowledged.as_ref().map_or(0, |batch| batch.number);
        Self {
            last: last.max(cut),
            unacknowledged,
            pending: BTreeMap::new(),
            last_cut: None,
        }
    }

    /// Returns the usage that no batch contains yet, which is lost if it is not persisted.
    #[must_use]
    pub fn pending(&self) -> Vec<UserUsage> {
        let to_usage = |((period, user), [up, down]): (&(PeriodLabel, u32), &[u64; 2])| UserUsage {
            user: *user,
            period: period.clone(),
            up: *up,
            down: *down,
        };
        self.pending.iter().map(to_usage).collect()
    }

    /// Continues after the number of the last batch in the store, if it is higher: this node has lost its own file.
    pub fn skip_to(&mut self, last_in_store: u64) {
        self.last = self.last.max(last_in_store);
    }

    /// Returns the number of the last batch that was cut.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Counts bytes of a user.
    pub fn add(&mut self, user: u32, period: &PeriodLabel, up: u64, down: u64) {
        if up == 0 && down == 0 {
            return;
        }
        let sums = self.pending.entry((period.clone(), user)).or_default();
        for (sum, more) in sums.iter_mut().zip([up, down]) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Returns the batch to be sent: the unacknowledged one, or a new one of what is pending. `None` if there is
    /// nothing. A new batch must be persisted before it is sent.
    pub fn cut(&mut self) -> Option<&UsageBatch> {
        if self.unacknowledged.is_none() && !self.pending.is_empty() {
            let mut entries = Vec::new();
            while entries.len() < MAX_BATCH {
                let after = self
                    .last_cut
                    .take()
                    .map_or(Bound::Unbounded, Bound::Excluded);
                let next = self.pending.range((after, Bound::Unbounded)).next();
                let next = next.or_else(|| self.pending.first_key_value());
                let Some(key) = next.map(|(key, _)| key.clone()) else {
                    break;
                };
                let [up, down] = self.pending.remove(&key).unwrap_or_default();
                self.last_cut = Some(key.clone());
                let (period, user) = key;
                entries.push(UserUsage {
                    user,
                    period,
                    up,
                    down,
                });
            }
            self.last = self.last.saturating_add(1);
            let number = self.last;
            self.unacknowledged = Some(UsageBatch { number, entries });
        }
        self.unacknowledged.as_ref()
    }

    /// Returns the batch that the store has not acknowledged.
    #[must_use]
    pub const fn unacknowledged(&self) -> Option<&UsageBatch> {
        self.unacknowledged.as_ref()
    }

    /// Records that the store has a batch, and returns true if it is the one that was waited for.
    pub fn acknowledge(&mut self, number: u64) -> bool {
        let is_awaited = self
            .unacknowledged
            .as_ref()
            .is_some_and(|batch| batch.number == number);
        if is_awaited {
            self.unacknowledged = None;
        }
        is_awaited
    }

    /// Returns the bytes that the store has not acknowledged.
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> u64 {
        let pending = self.pending.values().flatten().copied();
        let sent = self.unacknowledged.as_ref().map_or(0, UsageBatch::bytes);
        pending.fold(sent, u64::saturating_add)
    }

    /// Returns the bytes of a user that no batch contains yet.
    #[must_use]
    pub fn pending_of(&self, user: u32, period: &PeriodLabel) -> u64 {
        let sums = self.pending.get(&(period.clone(), user));
        sums.map_or(0, |[up, down]| up.saturating_add(*down))
    }

    /// Returns true if nothing is pending or unacknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.unacknowledged.is_none()
    }
}

#[cfg(test)]
mod tests {
    use adit_wire::{QuotaPeriod, UnixTime};

    use super::*;

    fn total() -> PeriodLabel {
        PeriodLabel::new(QuotaPeriod::Total, UnixTime(0))
    }

    #[test]
    fn a_batch_is_the_same_until_it_is_acknowledged() {
        let mut ledger = UsageLedger::default();
        assert_eq!(ledger.cut(), None);
        ledger.add(1, &total(), 10, 20);
        ledger.add(1, &total(), 1, 2);
        ledger.add(2, &total(), 0, 0);
        let first = ledger.cut().unwrap().clone();
        assert_eq!(
            (first.number, first.bytes(), first.entries.len()),
            (1, 33, 1)
        );
        ledger.add(1, &total(), 100, 0);
        assert_eq!(ledger.cut(), Some(&first));
        assert_eq!(ledger.unacknowledged_bytes(), 133);
        assert_eq!(ledger.pending_of(1, &total()), 100);
        assert!(!ledger.acknowledge(2));
        assert!(ledger.acknowledge(1));
        let second = ledger.cut().unwrap();
        assert_eq!((second.number, second.bytes()), (2, 100));
        assert!(ledger.acknowledge(2) && ledger.is_empty());
    }

    #[test]
    fn a_batch_is_bounded() {
        let mut ledger = UsageLedger::default();
        for user in 0..2500 {
            ledger.add(user, &total(), 1, 0);
        }
        let mut sizes = Vec::new();
        while let Some(batch) = ledger.cut() {
            let (number, size) = (batch.number, batch.entries.len());
            sizes.push(size);
            assert!(ledger.acknowledge(number));
        }
        assert_eq!(sizes, [1000, 1000, 500]);
    }

    #[test]
    fn all_users_have_their_turn() {
        let mut ledger = UsageLedger::default();
        let mut sent = std::collections::BTreeSet::new();
        for _ in 0..3 {
            for user in 0..2500 {
                ledger.add(user, &total(), 1, 0);
            }
            let batch = ledger.cut().unwrap();
            sent.extend(batch.entries.iter().map(|entry| entry.user));
            let number = batch.number;
            assert!(ledger.acknowledge(number));
        }
        assert_eq!(sent.len(), 2500);
        let pending: u64 = ledger.pending().iter().map(|entry| entry.up).sum();
        assert_eq!(pending, 500 * 2 + 1000);
        assert_eq!(ledger.unacknowledged_bytes(), pending);
    }

    #[test]
    fn numbers_continue_after_a_restart() {
        let mut ledger = UsageLedger::default();
        ledger.add(1, &total(), 5, 0);
        let batch = ledger.cut().unwrap().clone();
        let mut resumed = UsageLedger::resume(0, Some(batch.clone()));
        resumed.add(1, &total(), 7, 0);
        assert_eq!(resumed.cut(), Some(&batch));
        resumed.acknowledge(1);
        assert_eq!(resumed.cut().unwrap().number, 2);
        // Without the file, the store's number is the one to continue from.
        let mut lost = UsageLedger::default();
        lost.skip_to(41);
        lost.add(1, &total(), 1, 0);
        assert_eq!(lost.cut().unwrap().number, 42);
    }
}
