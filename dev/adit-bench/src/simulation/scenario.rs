//! The scenario of a simulation: nodes, users, their traffic, changes of users, and faults.

use adit_fleet::lease::RecentBytes;

use super::event_queue::Micros;

pub(crate) const MILLISECOND: Micros = 1_000;
pub(crate) const SECOND: Micros = 1_000_000;

/// Returns the lease of a user at a node, in bytes: from the quota, the bytes used of it, the number of nodes, and the
/// bytes of the last second at this node.
pub(crate) type LeaseRule = fn(quota: u64, used: u64, nodes: u32, recent: RecentBytes) -> u64;

/// A simulation. The same scenario with the same seed has the same outcome.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) nodes: u32,
    /// Users have the numbers from 1 on.
    pub(crate) users: u32,
    /// The quota of every user.
    pub(crate) quota: Option<u64>,
    pub(crate) lease: LeaseRule,
    pub(crate) flows: Vec<Flow>,
    /// Time for which there is traffic; after it, the nodes have [`Scenario::settle`] to report it.
    pub(crate) duration: Micros,
    pub(crate) settle: Micros,
    /// Bounds of the time that a message takes in one direction.
    pub(crate) delay: (Micros, Micros),
    /// Changes of users per second: each replaces the record of a user, adds a user or removes one.
    pub(crate) changes_per_second: u32,
    pub(crate) faults: Faults,
}

/// The traffic of a user at a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) node: u32,
    pub(crate) user: u32,
    /// Bytes per second.
    pub(crate) rate: u64,
    /// Time between two pieces.
    pub(crate) every: Micros,
    /// The times at which it begins, pauses and continues.
    pub(crate) start: Micros,
    pub(crate) pause: Micros,
    pub(crate) resume: Micros,
}

impl Flow {
    /// Returns a flow in pieces of 64 KiB, or of 10 ms if it is faster, from the start to the end.
    pub(crate) fn new(node: u32, user: u32, rate: u64) -> Self {
        let piece = SECOND * (64 << 10) / rate.max(1);
        Self {
            node,
            user,
            rate,
            every: piece.clamp(50, SECOND),
            start: 0,
            pause: Micros::MAX,
            resume: Micros::MAX,
        }
    }

    /// Returns the flow with one piece every `every`.
    pub(crate) const fn in_pieces(mut self, every: Micros) -> Self {
        self.every = every;
        self
    }

    /// Returns true if it moves bytes at this time.
    pub(super) const fn is_active(&self, now: Micros) -> bool {
        now >= self.start && (now < self.pause || now >= self.resume)
    }
}

/// Faults, none by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// Requests that are lost, in thousandths.
    pub(crate) lost_requests: u16,
    /// Replies that are lost, in thousandths.
    pub(crate) lost_replies: u16,
    /// A random node is killed this often, and starts again after a second; 0 means never.
    pub(crate) kill_every: Micros,
    /// The first nodes, this many, cannot reach the store from the first time to the second.
    pub(crate) partition: Option<(u32, Micros, Micros)>,
    /// The store does not answer from the first time to the second; it keeps its data.
    pub(crate) stalls: Vec<(Micros, Micros)>,
    /// The store is emptied at this time, and seeded by a node after the time that follows.
    pub(crate) flush: Option<(Micros, Micros)>,
    /// A backup is taken at the first time, and restored at the second.
    pub(crate) old_backup: Option<(Micros, Micros)>,
}
