//! The users whose quota is used up, as the file of this node remembers them: they have no lease and no grace again when
//! the process starts without the store.

use std::collections::BTreeMap;

use adit_fleet::{PeriodLabel, UsedQuota};

use crate::directory::Directory;

/// The users whose quota is used up, and changes that are not in the file yet.
#[derive(Debug, Default)]
pub(crate) struct UsedUpQuotas {
    known: BTreeMap<u32, UsedQuota>,
    unsaved: BTreeMap<u32, UsedQuota>,
}

impl UsedUpQuotas {
    /// Restores what an earlier process has saved, and tells the directory.
    pub(crate) fn restore(saved: &[UsedQuota], directory: &Directory) -> Self {
        let mut restored = Self::default();
        for one in saved {
            // A quota of a period that is over is not used up any more.
            if directory.period_of(one.user) == one.period
                && directory.set_used(one.user, one.used).is_some()
            {
                restored.known.insert(one.user, one.clone());
            }
        }
        restored
    }

    /// Records what a user has used of the quota.
    pub(crate) fn note(&mut self, user: u32, period: &PeriodLabel, used: u64, quota: u64) {
        let is_known = self.known.get(&user);
        let is_known = is_known.is_some_and(|known| known.period == *period);
        let is_used_up = used >= quota;
        if is_known == is_used_up {
            return;
        }
        let now = UsedQuota {
            user,
            period: period.clone(),
            used,
        };
        match is_used_up {
            true => drop(self.known.insert(user, now.clone())),
            false => drop(self.known.remove(&user)),
        }
        self.unsaved.insert(user, now);
    }

    /// Returns what is not in the file yet, which is saved next.
    pub(crate) fn take_unsaved(&mut self) -> Vec<UsedQuota> {
        std::mem::take(&mut self.unsaved).into_values().collect()
    }

    /// Returns all users whose quota is used up.
    pub(crate) fn to_vec(&self) -> Vec<UsedQuota> {
        self.known.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_saved() {
        let period = |text| PeriodLabel::from_text(text).unwrap();
        let (november, december) = (period("2026-11"), period("2026-12"));
        let mut quotas = UsedUpQuotas::default();
        quotas.note(1, &november, 99, 100);
        assert_eq!(quotas.take_unsaved(), []);
        quotas.note(1, &november, 100, 100);
        quotas.note(1, &november, 101, 100);
        assert_eq!(quotas.take_unsaved().len(), 1);
        quotas.note(1, &november, 102, 100);
        assert_eq!(quotas.take_unsaved(), []);
        assert_eq!(quotas.to_vec()[0].used, 100);
        // More quota, and another period.
        quotas.note(1, &november, 102, 200);
        let saved = quotas.take_unsaved();
        assert_eq!((saved[0].used, quotas.to_vec().len()), (102, 0));
        quotas.note(1, &november, 200, 200);
        quotas.note(1, &december, 201, 200);
        assert_eq!(quotas.take_unsaved()[0].period, december);
        assert_eq!(quotas.to_vec()[0].period, december);
    }
}
