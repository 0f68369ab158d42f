//! The truth of a simulation: what was really moved, and what the outcome must therefore be.

use std::collections::BTreeMap;

use super::event_queue::Micros;

/// The bytes of each user as the sinks see them, and those that were lost with the memory of killed nodes.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    users: BTreeMap<u32, UserTruth>,
}

/// The bytes of one user.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserTruth {
    /// Bytes that all nodes together have moved.
    pub(super) moved: u64,
    /// Bytes among them that a node had not put into a numbered batch when it was killed.
    pub(super) lost: u64,
    /// The time at which the last byte of the quota was moved.
    pub(super) reached: Option<Micros>,
    /// The time of the last byte of all.
    pub(super) last: Micros,
}

impl Ledger {
    /// Adds bytes that a node has moved.
    pub(super) fn add_moved(&mut self, user: u32, bytes: u64, quota: Option<u64>, now: Micros) {
        let truth = self.users.entry(user).or_default();
        truth.moved += bytes;
        truth.last = now;
        if truth.reached.is_none() && quota.is_some_and(|quota| truth.moved >= quota) {
            truth.reached = Some(now);
        }
    }

    /// Adds bytes that no batch will report.
    pub(super) fn add_lost(&mut self, user: u32, bytes: u64) {
        self.users.entry(user).or_default().lost += bytes;
    }

    /// Returns the users with traffic.
    pub(super) fn users(&self) -> impl Iterator<Item = (u32, UserTruth)> {
        self.users.iter().map(|(user, truth)| (*user, *truth))
    }
}
