//! The outcome of a simulation, and what must be true of it.

use super::event_queue::Micros;
use super::ledger::UserTruth;

/// The outcome of a simulation.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Events that were handled.
    pub(crate) events: u64,
    /// Batches that reached the store, and the users in them.
    pub(crate) batches: u64,
    pub(crate) batch_users: u64,
    /// Batches that were sent again for want of an answer.
    pub(crate) repeated_batches: u64,
    /// Questions for changes that reached the store.
    pub(crate) questions: u64,
    /// Times that the whole table was read.
    pub(crate) snapshots: u64,
    pub(crate) heartbeats: u64,
    /// Answers that showed a node that the store had gone back.
    pub(crate) regressions: u64,
    pub(crate) kills: u64,
    /// Bytes that were moved, counted, and lost with the memory of killed nodes.
    pub(crate) moved: u64,
    pub(crate) counted: u64,
    pub(crate) lost: u64,
    /// Users of whom the store has counted more than was moved.
    pub(crate) counted_twice: u32,
    /// Users of whom the store has counted neither what was moved, nor that without what was lost.
    pub(crate) miscounted: u32,
    /// The most bytes that a user has moved beyond the quota.
    pub(crate) overshoot: u64,
    /// The longest time from the last byte of a quota to the last byte of its user.
    pub(crate) cut_after: Micros,
    /// Users who have used less than their quota.
    pub(crate) below_quota: u32,
    /// Times from the write of a change to each node's table.
    pub(crate) propagation: Vec<Micros>,
    /// Nodes whose table differs from that of the store at the end.
    pub(crate) differing_tables: usize,
    pub(crate) users_at_end: usize,
}

impl Outcome {
    pub(super) fn add_user(&mut self, truth: UserTruth, counted: u64, quota: Option<u64>) {
        self.moved += truth.moved;
        self.lost += truth.lost;
        self.counted += counted;
        self.counted_twice += u32::from(counted > truth.moved);
        self.miscounted += u32::from(counted != truth.moved - truth.lost);
        if let Some(quota) = quota {
            self.overshoot = self.overshoot.max(truth.moved.saturating_sub(quota));
            self.below_quota += u32::from(truth.moved < quota);
        }
        if let Some(reached) = truth.reached {
            self.cut_after = self.cut_after.max(truth.last - reached);
        }
    }

    /// Returns the time within which 99 of 100 changes were applied.
    pub(crate) fn propagation_p99(&self) -> Option<Micros> {
        let mut times = self.propagation.clone();
        times.sort_unstable();
        let at = times.len().checked_sub(1)? * 99 / 100;
        times.get(at).copied()
    }
}
