//! The task that sends usage to the store, and grants leases.
//!
//! ```text
//! registry ── usage since the last flush ──▶ ledger ── numbered batch, persisted ──▶ store
//! registry ◀── lease, or the end of the quota ──────────────────────────── totals ──┘
//! ```
//!
//! While the store does not answer, users with a quota have a grace, which ends by bytes and by time.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use adit_engine::FleetUsage;
use adit_fleet::lease::MAX_LEASE;
use adit_fleet::{
    ActivityTotal, PeriodLabel, RateScope, StoreCall, StoreError, UsageLedger, UserActivity,
    UserTotal, lease,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use crate::active_users::ActiveUsers;
use crate::local::LocalFile;
use crate::metrics::CutReason;
use crate::state::{Shared, lock};
use crate::used_up::UsedUpQuotas;

/// Interval at which usage is sent, on average.
const FLUSH: Duration = Duration::from_secs(1);
/// Minimum time between two flushes: leases of many sessions run low together.
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Minimum time between two looks for users whose devices have changed, which flushes of leases must not multiply.
const LOOK: Duration = Duration::from_millis(500);
/// Interval at which sessions and devices are reported, and the totals of users that were cut are read again.
const REPORT: Duration = Duration::from_secs(5);
/// Maximum number of users of one question.
const MANY: usize = 1000;
/// Time for the last flush of a process that ends or hands over.
const LAST_FLUSH: Duration = Duration::from_millis(1500);

/// A command for the task.
pub(crate) enum UsageCommand {
    /// Send everything, give sessions what they may move without this node, and close the file.
    Close(oneshot::Sender<()>),
}

/// Sends usage until it is closed.
pub(crate) struct UsageTask {
    node: Arc<Shared>,
    local: Arc<LocalFile>,
    ledger: UsageLedger,
    outage: Outage,
    used_up: UsedUpQuotas,
    active: ActiveUsers,
    /// The time at which usage was last counted.
    collected: Instant,
    /// The last report of each to the store.
    reported: HashMap<u32, UserActivity>,
    /// The last look for users whose devices have changed.
    looked: Instant,
    /// True once the totals of all users with a quota were read.
    knows_totals: bool,
    /// True once the number of the last batch was compared with the store's.
    knows_last_batch: bool,
}

/// The bytes that users were granted while the store does not answer.
#[derive(Default)]
struct Outage {
    granted: HashMap<u32, u64>,
    /// Users that were cut.
    cut: HashSet<u32>,
}

impl UsageTask {
    pub(crate) fn new(
        node: Arc<Shared>,
        local: Arc<LocalFile>,
        ledger: UsageLedger,
        used_up: UsedUpQuotas,
    ) -> Self {
        Self {
            node,
            local,
            ledger,
            outage: Outage::default(),
            used_up,
            active: ActiveUsers::default(),
            collected: Instant::now(),
            reported: HashMap::new(),
            looked: Instant::now(),
            knows_totals: false,
            knows_last_batch: false,
        }
    }

    /// Runs until the node is closed.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<UsageCommand>) {
        let registry = self.node.users.registry().clone();
        let mut next_report = Instant::now();
        loop {
            let due = Instant::now().min(self.looked) + spread(FLUSH);
            let wanted = tokio::select! {
                command = commands.recv() => {
                    let Some(UsageCommand::Close(reply)) = command else { return };
                    self.close().await;
                    // The process may not wait.
                    let _ = reply.send(());
                    return;
                }
                wanted = registry.lease_wanted() => wanted,
                () = sleep_until(due) => Vec::new(),
            };
            self.flush(&wanted).await;
            if Instant::now() >= next_report {
                next_report = Instant::now() + spread(REPORT);
                self.report().await;
            }
            self.save_used_up().await;
            tokio::time::sleep(MIN_PAUSE).await;
        }
    }

    async fn save_used_up(&mut self) {
        let changed = self.used_up.take_unsaved();
        if !changed.is_empty() {
            self.local.save_used_up(changed).await;
        }
    }

    /// Sends all usage, and renews leases. `wanted` are users whose lease is nearly used up.
    async fn flush(&mut self, wanted: &[u32]) {
        let collected = self.collect();
        match self.send(wanted).await {
            Ok(()) => {
                self.end_outage().await;
                if self.looked.elapsed() >= LOOK {
                    self.looked = Instant::now();
                    self.report_activity(false).await;
                }
            }
            // Of other faults an operator has to mend, users know nothing.
            Err(_) => {
                self.looked = Instant::now();
                self.grant_grace(wanted);
                if collected {
                    self.local.save_pending(self.ledger.pending()).await;
                }
            }
        }
        let bytes = self.ledger.unacknowledged_bytes();
        self.node
            .facts
            .unacknowledged_bytes
            .store(bytes, Ordering::Relaxed);
    }

    /// Counts what the users have done since the last time. Returns true if they have moved bytes.
    fn collect(&mut self) -> bool {
        let taken = self.node.users.registry().take_fleet_usage();
        let time = std::mem::replace(&mut self.collected, Instant::now()).elapsed();
        let mut has_bytes = false;
        for usage in &taken {
            has_bytes |= usage.bytes.sum() > 0;
            let period = self.node.directory.period_of(usage.id);
            self.ledger
                .add(usage.id, &period, usage.bytes.up, usage.bytes.down);
        }
        self.active.update(taken, time);
        has_bytes
    }

    async fn send(&mut self, wanted: &[u32]) -> Result<(), StoreError> {
        let node = self.node.clone();
        if !self.knows_last_batch {
            let last = node.store.last_batch(node.node.id);
            let last = node.call(StoreCall::Usage, last).await?;
            self.ledger.skip_to(last);
            self.knows_last_batch = true;
        }
        let mut answered = HashSet::new();
        while let Some(batch) = self.ledger.cut().cloned() {
            // Before it is sent: after a crash, the same batch has the same number.
            self.local
                .save_batch(batch.clone(), self.ledger.pending())
                .await;
            let adding = node.store.add_usage(node.node.id, &batch);
            let reply = node.call(StoreCall::AddUsage, adding).await?;
            self.ledger.acknowledge(batch.number);
            if !reply.applied {
                self.ledger.skip_to(reply.last);
            }
            // Before leases are renewed: a fleet that has just grown has smaller ones.
            node.facts.nodes.store(reply.nodes, Ordering::Relaxed);
            for total in &reply.totals {
                answered.insert(total.user);
                self.renew(total);
            }
            self.local.save_acknowledged(batch.number).await;
        }
        let others = wanted.iter().filter(|id| !answered.contains(*id)).copied();
        self.ask_totals(others.collect()).await
    }

    /// Reads the totals of these users, and renews their leases.
    async fn ask_totals(&mut self, users: Vec<u32>) -> Result<(), StoreError> {
        let node = self.node.clone();
        let mut by_period: HashMap<PeriodLabel, Vec<u32>> = HashMap::new();
        for id in users {
            by_period
                .entry(node.directory.period_of(id))
                .or_default()
                .push(id);
        }
        for (period, ids) in &by_period {
            for some in ids.chunks(MANY) {
                let usage = node.store.usage(period, Some(some));
                for total in node.call(StoreCall::Usage, usage).await? {
                    self.renew(&total);
                }
            }
        }
        Ok(())
    }

    /// Renews the lease of a user, or ends the quota.
    fn renew(&mut self, total: &UserTotal) {
        let node = &self.node;
        // Usage of a period that is over decides nothing.
        if total.period != node.directory.period_of(total.user) {
            return;
        }
        let used = total.sum();
        let Some((name, quota)) = node.directory.set_used(total.user, used) else {
            return;
        };
        self.used_up.note(total.user, &total.period, used, quota);
        let nodes = node.facts.nodes.load(Ordering::Relaxed);
        let recent = self.active.recent(total.user);
        let registry = node.users.registry();
        match lease(quota, used, nodes, recent) {
            0 => {
                if registry.block_fleet_user(&name) {
                    node.counters.count_cut(CutReason::Quota);
                }
            }
            // What is not sent yet is a part of the lease.
            bytes => {
                let pending = self.ledger.pending_of(total.user, &total.period);
                registry.grant_lease(&name, bytes.saturating_sub(pending));
            }
        }
    }

    /// Lets users move more, or cuts them: the store does not answer.
    fn grant_grace(&mut self, wanted: &[u32]) {
        let node = &self.node;
        let outage = node.facts.outage().unwrap_or_default();
        let registry = node.users.registry();
        for id in wanted {
            let Some(user) = node
                .directory
                .user(*id)
                .filter(|user| user.limits.quota.is_some())
            else {
                continue;
            };
            let granted = self.outage.granted.entry(*id).or_default();
            let left = match node.settings.open_quota {
                true => MAX_LEASE,
                false => node.settings.grace.left(*granted, outage).min(MAX_LEASE),
            };
            if left > 0 {
                *granted = granted.saturating_add(left);
                registry.grant_lease(&user.name, left);
            } else if self.outage.cut.insert(*id) {
                warn!(
                    user = user.name,
                    "cut: the store of the fleet does not answer, and the grace is used up"
                );
                registry.block_fleet_user(&user.name);
                node.counters.count_cut(CutReason::Outage);
            }
        }
    }

    /// Decides anew about users that were cut, or granted something, while the store did not answer.
    async fn end_outage(&mut self) {
        let Outage { granted, cut } = &self.outage;
        if granted.is_empty() && cut.is_empty() {
            return;
        }
        let users: Vec<u32> = granted.keys().chain(cut).copied().collect();
        if self.ask_totals(users).await.is_ok() {
            self.outage = Outage::default();
        }
    }

    /// Reports sessions and devices, and reads totals that others may have changed.
    async fn report(&mut self) {
        let node = self.node.clone();
        if !self.knows_totals && node.facts.has_synced.load(Ordering::Relaxed) {
            let users = node.directory.users_with_quota();
            let users = users.into_iter().flat_map(|(_, ids)| ids).collect();
            self.knows_totals = self.ask_totals(users).await.is_ok();
        }
        // A new period, a reset, or a store that was restored.
        let cut = node.directory.over_quota();
        if !cut.is_empty() {
            // The next report asks again.
            let _ = self.ask_totals(cut).await;
        }
        if node.facts.store_is_up.load(Ordering::Relaxed) && node.regression().is_none() {
            self.local.save_contact().await;
        }
        self.local
            .shorten_with(&node, &self.ledger, &self.used_up)
            .await;
        self.report_activity(true).await;
        self.active.remove_idle();
    }

    /// Reports sessions and devices: those of all active users, or of users whose devices or limit of them have changed.
    async fn report_activity(&mut self, all: bool) {
        let node = self.node.clone();
        let each = self.active.all();
        let each = each.filter_map(|usage| self.activity_of(usage));
        let activity: Vec<UserActivity> = each.filter(|now| all || self.is_news(now)).collect();
        for some in activity.chunks(MANY) {
            let reporting = node.store.report_activity(node.node.id, some);
            let Ok(totals) = node.call(StoreCall::ReportActivity, reporting).await else {
                return;
            };
            for (here, total) in some.iter().zip(&totals) {
                self.apply_activity(here, total);
                match here.devices.is_empty() {
                    true => drop(self.reported.remove(&here.user)),
                    false => drop(self.reported.insert(here.user, here.clone())),
                }
            }
        }
    }

    /// Returns true if the store has to decide about the devices of a user.
    fn is_news(&self, now: &UserActivity) -> bool {
        match self.reported.get(&now.user) {
            _ if now.max_devices.is_none() => false,
            None => !now.devices.is_empty(),
            Some(before) => {
                (&before.devices, before.max_devices) != (&now.devices, now.max_devices)
            }
        }
    }

    /// Returns what other nodes need to know about a user.
    fn activity_of(&self, usage: &FleetUsage) -> Option<UserActivity> {
        let limits = self.node.directory.limits(usage.id)?;
        let shares_rate = limits.rate.is_some() && limits.rate_scope == RateScope::Fleet;
        if limits.devices.is_none() && !shares_rate {
            return None;
        }
        let devices = self.digests_of(&usage.devices);
        let before = self.reported.get(&usage.id);
        let before = before.iter().flat_map(|before| &before.devices);
        let gone = before.filter(|device| !devices.contains(device));
        Some(UserActivity {
            user: usage.id,
            sessions: usage.sessions,
            max_devices: limits.devices,
            gone: gone.copied().collect(),
            devices,
        })
    }

    /// Returns what the store knows networks of clients by.
    fn digests_of(&self, networks: &[IpAddr]) -> Vec<[u8; 8]> {
        let feed = lock(&self.node.feed);
        let digest = |network: &IpAddr| match network {
            IpAddr::V4(v4) => feed.cipher().device_digest(&v4.octets()),
            IpAddr::V6(v6) => feed.cipher().device_digest(&v6.octets()),
        };
        networks.iter().map(digest).collect()
    }

    fn apply_activity(&self, here: &UserActivity, total: &ActivityTotal) {
        let node = &self.node;
        let Some(user) = node.directory.user(total.user) else {
            return;
        };
        let registry = node.users.registry();
        let own = u32::try_from(here.devices.len()).unwrap_or(u32::MAX);
        let own = own.saturating_sub(u32::try_from(total.refused.len()).unwrap_or(0));
        registry.set_devices_elsewhere(&user.name, total.devices.saturating_sub(own));
        if !total.refused.is_empty() {
            let active = self.active.usage(total.user);
            let networks = active.iter().flat_map(|usage| &usage.devices);
            let refused = here.devices.iter().zip(networks);
            let refused = refused.filter(|(digest, _)| total.refused.contains(digest));
            let refused: Vec<IpAddr> = refused.map(|(_, network)| *network).collect();
            registry.end_fleet_devices(&user.name, &refused);
        }
        if node.directory.set_nodes(total.user, total.nodes) {
            registry.update_fleet_user(&user.name);
        }
    }

    /// Sends everything, and closes the file. Sessions that are open continue without this node for a while.
    async fn close(&mut self) {
        let flush = self.flush(&[]);
        if tokio::time::timeout(LAST_FLUSH, flush).await.is_err() {
            warn!("the store of the fleet does not answer: usage stays in the file of this node");
        }
        if !self.ledger.is_empty() {
            self.local.save_pending(self.ledger.pending()).await;
        }
        self.save_used_up().await;
        let node = &self.node;
        let registry = node.users.registry();
        for FleetUsage { id, .. } in self.active.all() {
            let Some(user) = node.directory.user(*id) else {
                continue;
            };
            if let Some(quota) = user.limits.quota {
                let left = quota.saturating_sub(node.directory.used(*id));
                registry.grant_lease(&user.name, left.min(node.settings.grace.bytes));
            }
        }
        self.local.close().await;
    }
}

/// Returns an interval that differs by up to a tenth, so that nodes do not send at the same time.
fn spread(interval: Duration) -> Duration {
    use adit_wire::Entropy;
    let mut byte = [0];
    adit_net::system::ThreadRng.fill(&mut byte);
    // From 90 % to 110 %.
    interval * (2295 + 2 * u32::from(byte[0])) / 2550
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_differ_by_a_tenth() {
        for _ in 0..100 {
            let some = spread(Duration::from_secs(10));
            assert!(
                (9..=11).contains(&some.as_secs()) && some <= Duration::from_secs(11),
                "{some:?}"
            );
        }
    }
}
