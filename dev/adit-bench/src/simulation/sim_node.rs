//! A node of a simulation: the leases of its users, the batches that it has not been answered, and its table.

use std::collections::BTreeMap;
use std::time::Duration;

use adit_fleet::lease::{RecentBytes, UserLease};
use adit_fleet::{PeriodLabel, UsageBatch, UsageLedger, UserTotal};

use super::event_queue::Micros;
use super::ledger::Ledger;
use super::node_table::NodeTable;
use super::scenario::LeaseRule;

/// A node, whose memory is lost when it is killed; the batch without an answer is on its disk.
#[derive(Debug)]
pub(super) struct SimNode {
    pub(super) id: u32,
    /// The number of its process. Messages and timers of earlier processes are void.
    pub(super) life: u32,
    pub(super) is_up: bool,
    meters: BTreeMap<u32, Meter>,
    usage: UsageLedger,
    /// The time at which usage was last given to the batches.
    gathered_at: Micros,
    /// True while a batch is under way.
    pub(super) is_flushing: bool,
    /// True if a lease ran low, or more is pending than fits into a batch.
    wants_flush: bool,
    /// Users whose totals the node does not know.
    new_users: Vec<u32>,
    pub(super) table: NodeTable,
    /// The number of the question for changes that is open.
    pub(super) question: u64,
}

/// The state of a user with traffic at a node.
#[derive(Debug, Default)]
struct Meter {
    /// Bytes that were moved.
    counted: u64,
    /// Bytes among them that were given to the batches.
    gathered: u64,
    /// The value of `counted` when the last batch with this user was cut.
    cut: u64,
    recent: RecentBytes,
    lease: UserLease,
    /// True once the store has said how much of the quota is used.
    is_known: bool,
    /// True once the quota is used up.
    is_over: bool,
}

/// The rule of leases, with its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leases {
    pub(super) rule: LeaseRule,
    pub(super) quota: Option<u64>,
    pub(super) nodes: u32,
}

impl SimNode {
    pub(super) fn new(id: u32, table: NodeTable) -> Self {
        Self {
            id,
            life: 0,
            is_up: true,
            meters: BTreeMap::new(),
            usage: UsageLedger::default(),
            gathered_at: 0,
            is_flushing: false,
            wants_flush: false,
            new_users: Vec::new(),
            table,
            question: 0,
        }
    }

    /// Ends the process: what no batch on the disk contains is lost.
    pub(super) fn kill(&mut self, period: &PeriodLabel, ledger: &mut Ledger) {
        for (user, meter) in std::mem::take(&mut self.meters) {
            let ungathered = meter.counted - meter.gathered;
            ledger.add_lost(user, ungathered + self.usage.pending_of(user, period));
        }
        self.usage = UsageLedger::resume(self.usage.last(), self.usage.unacknowledged().cloned());
        self.is_up = false;
        self.life += 1;
        self.is_flushing = false;
        self.wants_flush = false;
        self.new_users.clear();
    }

    /// Moves up to `wanted` bytes of a user; returns the number that the lease allows.
    pub(super) fn move_bytes(&mut self, user: u32, wanted: u64, has_quota: bool) -> u64 {
        let is_new = !self.meters.contains_key(&user);
        let meter = self.meters.entry(user).or_default();
        if !has_quota {
            meter.counted += wanted;
            return wanted;
        }
        if is_new {
            self.new_users.push(user);
        }
        if !meter.is_known || meter.is_over {
            return 0;
        }
        let moved = wanted.min(meter.lease.left(meter.counted));
        meter.counted += moved;
        self.wants_flush |=
            meter.lease.is_low(meter.counted) || meter.lease.left(meter.counted) == 0;
        moved
    }

    /// Takes the users whose totals the node does not know.
    pub(super) fn take_new_users(&mut self) -> Option<Vec<u32>> {
        (!self.new_users.is_empty()).then(|| std::mem::take(&mut self.new_users))
    }

    /// Asks for these users again.
    pub(super) fn ask_again(&mut self, users: &[u32]) {
        let unknown = |user: &&u32| self.meters.get(user).is_some_and(|meter| !meter.is_known);
        let users: Vec<u32> = users.iter().filter(unknown).copied().collect();
        self.new_users.extend(users);
    }

    /// Returns true if a batch should be sent at once.
    pub(super) const fn is_flush_due(&self) -> bool {
        self.is_up && self.wants_flush && !self.is_flushing
    }

    /// Returns the batch to send: the one without an answer, or the next. It is on the disk from now on.
    pub(super) fn batch_to_send(
        &mut self,
        period: &PeriodLabel,
        now: Micros,
    ) -> Option<UsageBatch> {
        if let Some(batch) = self.usage.unacknowledged() {
            return Some(batch.clone());
        }
        // The usage of all users at once, so that those behind in the order of the batches have their turn too.
        if self.usage.is_empty() {
            let time = Duration::from_micros(now - self.gathered_at);
            self.gathered_at = now;
            for (user, meter) in &mut self.meters {
                let bytes = meter.counted - meter.gathered;
                self.usage.add(*user, period, 0, bytes);
                meter.gathered = meter.counted;
                meter.recent.add(bytes, time);
            }
        }
        self.wants_flush = false;
        let batch = self.usage.cut()?.clone();
        for entry in &batch.entries {
            if let Some(meter) = self.meters.get_mut(&entry.user) {
                meter.cut = meter.gathered;
            }
        }
        Some(batch)
    }

    /// Returns true if the batch with this number is under way.
    pub(super) fn is_under_way(&self, number: u64) -> bool {
        let batch = self.usage.unacknowledged();
        self.is_flushing && batch.is_some_and(|batch| batch.number == number)
    }

    /// Takes the answer to a batch.
    pub(super) fn take_batch_answer(&mut self, number: u64, totals: &[UserTotal], leases: Leases) {
        if self.usage.acknowledge(number) {
            self.is_flushing = false;
            self.wants_flush |= !self.usage.is_empty();
            self.take_totals(totals, leases);
        }
    }

    /// Takes what users have used: new leases count from the cut of the batch.
    pub(super) fn take_totals(&mut self, totals: &[UserTotal], leases: Leases) {
        let Some(quota) = leases.quota else {
            return;
        };
        for total in totals {
            // The batch may be that of an earlier process.
            let Some(meter) = self.meters.get_mut(&total.user) else {
                continue;
            };
            let lease = (leases.rule)(quota, total.sum(), leases.nodes, meter.recent);
            meter.lease.renew(meter.cut, lease);
            meter.is_known = true;
            meter.is_over = lease == 0;
            let left = meter.lease.left(meter.counted);
            self.wants_flush |= !meter.is_over && (left == 0 || meter.lease.is_low(meter.counted));
        }
    }

    /// Returns the time to the next regular batch: a second, a tenth more or less.
    pub(super) const fn flush_interval(random: u64) -> Micros {
        900_000 + random % 200_000
    }
}
