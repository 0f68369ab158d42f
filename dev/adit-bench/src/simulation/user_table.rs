//! The table of a node in a simulation: the change that wrote each user, without the records, so that a thousand nodes
//! with a million users fit into memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use adit_fleet::{Change, ChangeBatch, ChangeOp, SealedRecord, Snapshot};

/// The users at the version of a snapshot, which nodes share.
type Base = Arc<BTreeMap<u32, u64>>;

/// The users of a node, and the change that wrote each.
#[derive(Debug, Clone, Default)]
pub(super) struct UserVersions {
    version: u64,
    base: Base,
    /// The differences from the base; `None` is a user who was deleted.
    changed: BTreeMap<u32, Option<u64>>,
}

/// The effect of a batch of changes on a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// These changes were applied.
    Applied(Vec<u64>),
    /// Changes are missing, or all users were written again: the store is read anew.
    Gap,
    /// The store has gone back: the table stays as it is.
    Regression,
}

impl UserVersions {
    /// Creates the table of a snapshot.
    pub(super) fn from_snapshot(snapshot: &Snapshot) -> Self {
        let number = |record: &SealedRecord| record.number().map(|number| number.0);
        let users = snapshot.users.iter();
        let users = users.filter_map(|(id, record)| Some((*id, number(record)?)));
        Self {
            version: snapshot.version.0,
            base: Arc::new(users.collect()),
            changed: BTreeMap::new(),
        }
    }

    /// Returns the number of the last change that was applied.
    pub(super) const fn version(&self) -> u64 {
        self.version
    }

    /// Applies the changes that follow the version.
    pub(super) fn take(&mut self, batch: &ChangeBatch) -> News {
        if batch.head.0 < self.version {
            return News::Regression;
        }
        let first = batch
            .changes
            .first()
            .map_or(batch.head.0 + 1, |change| change.number.0);
        let is_restored = |change: &Change| change.op == Some(ChangeOp::Restored);
        if first > self.version + 1 || batch.changes.iter().any(is_restored) {
            return News::Gap;
        }
        let mut applied = Vec::new();
        for change in &batch.changes {
            let number = change.number.0;
            if number != self.version + 1 {
                continue;
            }
            match change.op {
                Some(ChangeOp::Put) => drop(self.changed.insert(change.target, Some(number))),
                Some(ChangeOp::Delete) => drop(self.changed.insert(change.target, None)),
                _ => {}
            }
            self.version = number;
            applied.push(number);
        }
        News::Applied(applied)
    }

    /// Returns the number of users.
    pub(super) fn len(&self) -> usize {
        let added = |user: &u32| !self.base.contains_key(user);
        let more = self
            .changed
            .iter()
            .filter(|(user, at)| at.is_some() && added(user));
        let fewer = self
            .changed
            .iter()
            .filter(|(user, at)| at.is_none() && !added(user));
        self.base.len() + more.count() - fewer.count()
    }

    fn get(&self, user: u32) -> Option<u64> {
        match self.changed.get(&user) {
            Some(changed) => *changed,
            None => self.base.get(&user).copied(),
        }
    }

    /// Returns true if both have the same users, each written by the same change.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let users = |table: &Self| -> Vec<u32> {
            let base: Vec<u32> = match Arc::ptr_eq(&self.base, &other.base) {
                true => Vec::new(),
                false => table.base.keys().copied().collect(),
            };
            table.changed.keys().copied().chain(base).collect()
        };
        let mut all = users(self).into_iter().chain(users(other));
        all.all(|user| self.get(user) == other.get(user))
    }
}

#[cfg(test)]
mod tests {
    use adit_fleet::ChangeId;

    use super::*;

    fn change(number: u64, op: ChangeOp, target: u32) -> Change {
        Change {
            number: ChangeId(number),
            op: Some(op),
            target,
            sealed: SealedRecord::from_bytes(Vec::new()),
        }
    }

    #[test]
    fn tables_with_the_same_users_are_equal() {
        let base: Base = Arc::new((1..=3).map(|user| (user, u64::from(user))).collect());
        let mut table = UserVersions {
            version: 3,
            base,
            changed: BTreeMap::new(),
        };
        let batch = ChangeBatch {
            head: ChangeId(6),
            changes: vec![
                change(4, ChangeOp::Put, 2),
                change(5, ChangeOp::Delete, 3),
                change(6, ChangeOp::Put, 9),
            ],
        };
        let before = table.clone();
        assert_eq!(table.take(&batch), News::Applied(vec![4, 5, 6]));
        assert_eq!((table.len(), table.version()), (3, 6));
        assert!(!table.equals(&before) && !before.equals(&table));
        let users = [(1, 1), (2, 4), (9, 6)].into_iter().collect();
        let other = UserVersions {
            version: 6,
            base: Arc::new(users),
            changed: BTreeMap::new(),
        };
        assert!(table.equals(&other) && other.equals(&table));
        let mut take = |head, changes| {
            let head = ChangeId(head);
            table.take(&ChangeBatch { head, changes })
        };
        assert_eq!(take(9, vec![change(9, ChangeOp::Put, 1)]), News::Gap);
        assert_eq!(take(7, vec![change(7, ChangeOp::Restored, 0)]), News::Gap);
        assert_eq!(take(2, vec![]), News::Regression);
        assert_eq!(take(6, vec![]), News::Applied(vec![]));
    }
}
