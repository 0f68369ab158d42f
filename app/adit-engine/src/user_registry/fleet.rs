//! The users of a fleet in the registry: their limits come from the fleet, and their quota is a lease.
//!
//! ```text
//! session ── spends ──▶ lease ── below a quarter ──▶ lease_wanted ──▶ node ── usage ──▶ store server
//!    ▲                    ▲                                             │
//!    └── waits at zero    └──────────── grant_lease, block ◀────────────┘
//! ```
//!
//! The node of the fleet reads usage with [`UserRegistry::take_fleet_usage`], and answers with leases. Nothing here
//! waits for it but the sessions of a user whose lease is used up.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::UserRegistry;
use super::fleet_part::lock;
use super::limits::UserLimits;
use crate::usage::ByteCounts;

/// The decision of a fleet about a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetUserLimits {
    /// The number of the user in the fleet, at least 1.
    pub id: u32,
    /// The limits; the quota of the fleet is in `quota` instead.
    pub limits: UserLimits,
    /// The bytes that the user may move.
    pub quota: FleetQuota,
}

/// The bytes that a user may move at this node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FleetQuota {
    /// Any number.
    #[default]
    None,
    /// This number, until the node grants more.
    Lease(u64),
    /// None: the quota of the period is used up.
    UsedUp,
}

/// Knows the users of a fleet.
pub trait FleetLimitSource: Send + Sync + std::fmt::Debug {
    /// Returns the limits of the user of this name; `None` if the fleet has no such user.
    fn limits_of(&self, name: &str) -> Option<FleetUserLimits>;
}

/// The usage of a user of a fleet since the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetUsage {
    /// The number of the user in the fleet.
    pub id: u32,
    /// The name.
    pub name: Box<str>,
    /// The bytes since the last report.
    pub bytes: ByteCounts,
    /// The rest of the lease, in bytes; `None` without one.
    pub lease: Option<i64>,
    /// Number of open sessions.
    pub sessions: u32,
    /// The networks of clients with open sessions.
    pub devices: Vec<IpAddr>,
    /// True if the user was removed, and this is the last report.
    pub is_last: bool,
}

impl UserRegistry {
    /// Takes the limits of users from a fleet, for all names that it knows. Only the first source counts.
    pub fn use_fleet(&self, source: Arc<dyn FleetLimitSource>) {
        // The process is a node of one fleet at most.
        let _ = self.fleet_source.set(source);
    }

    /// Returns true if the name is that of a user of the fleet, whose limits this registry does not decide.
    #[must_use]
    pub fn is_fleet_user(&self, name: &str) -> bool {
        self.fleet_limits(name).is_some()
    }

    pub(super) fn fleet_limits(&self, name: &str) -> Option<FleetUserLimits> {
        self.fleet_source.get()?.limits_of(name)
    }

    /// Applies what the fleet decides now about one of its users. A user that has not connected needs no change.
    pub fn update_fleet_user(&self, name: &str) {
        if let Some(entry) = self.find(name)
            && let Some(decided) = self.fleet_limits(name)
        {
            entry.set_fleet(&decided, &self.lease_signal);
            self.deadlines_changed.notify_one();
        }
    }

    /// Removes a user of the fleet. Listeners end the sessions.
    pub fn remove_fleet_user(&self, name: &str) {
        if let Some(entry) = self.find(name) {
            entry.leave_fleet();
        }
    }

    /// Grants a user of the fleet a lease: `bytes` since the last [`take_fleet_usage`](Self::take_fleet_usage).
    pub fn grant_lease(&self, name: &str, bytes: u64) {
        if let Some(entry) = self.find(name) {
            entry.grant_lease(bytes);
        }
    }

    /// Ends the quota of a user of the fleet, and their open sessions. Returns false if it had ended before, or the user
    /// has not connected.
    pub fn block_fleet_user(&self, name: &str) -> bool {
        self.find(name).is_some_and(|entry| entry.block_quota())
    }

    /// Sets the number of a user's devices at other nodes.
    pub fn set_devices_elsewhere(&self, name: &str, count: u32) {
        if let Some(entry) = self.find(name)
            && let Some(part) = entry.fleet.get()
        {
            part.devices_elsewhere.store(count, Ordering::Relaxed);
        }
    }

    /// Ends the sessions of these devices of a user, which are beyond the limit over all nodes.
    pub fn end_fleet_devices(&self, name: &str, networks: &[IpAddr]) {
        if let Some(entry) = self.find(name) {
            let mut record = entry.lock();
            entry.end_devices(&mut record, |network| networks.contains(&network));
        }
    }

    /// Ends the open sessions of a user, who may start others. Returns false if no such user is known.
    pub fn kick(&self, name: &str) -> bool {
        let entry = self.find(name);
        if let Some(entry) = &entry {
            entry.kick();
        }
        entry.is_some()
    }

    /// Returns what the users of the fleet have done since the last call: those who have moved bytes, have a lease or
    /// open sessions, or were removed.
    #[must_use]
    pub fn take_fleet_usage(&self) -> Vec<FleetUsage> {
        if self.fleet_source.get().is_none() {
            return Vec::new();
        }
        let each = self.entries();
        let each = each.iter().filter_map(|entry| entry.take_usage());
        each.filter(|usage| usage.bytes.sum() > 0 || usage.sessions > 0 || usage.is_last)
            .collect()
    }

    /// Returns the numbers of users whose lease is nearly used up, as soon as there are any.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe: the numbers are returned by the next call.
    pub async fn lease_wanted(&self) -> Vec<u32> {
        loop {
            let wanted = std::mem::take(&mut *lock(&self.lease_signal.wanted));
            if !wanted.is_empty() {
                return wanted;
            }
            self.lease_signal.notify.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::future::poll_fn;
    use std::sync::Mutex;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::user_registry::QueueTicket;

    #[derive(Debug, Default)]
    struct Source(Mutex<HashMap<String, FleetUserLimits>>);

    impl FleetLimitSource for Source {
        fn limits_of(&self, name: &str) -> Option<FleetUserLimits> {
            lock(&self.0).get(name).copied()
        }
    }

    fn registry(quota: FleetQuota) -> (Arc<UserRegistry>, Arc<Source>) {
        let decided = FleetUserLimits {
            id: 7,
            limits: UserLimits::default(),
            quota,
        };
        let source = Arc::new(Source::default());
        lock(&source.0).insert("ann".to_owned(), decided);
        let registry = Arc::new(UserRegistry::default());
        registry.use_fleet(source.clone());
        (registry, source)
    }

    #[tokio::test]
    async fn a_session_waits_for_a_lease_and_ends_with_the_quota() {
        let (registry, _) = registry(FleetQuota::Lease(100));
        let ann = registry.new_account("ann", "ann");
        let here = IpAddr::from([192, 0, 2, 1]);
        let _permit = ann.admit_session(here).unwrap();
        assert_eq!(registry.lease_wanted().await, [7]);
        ann.count_bytes(100, true);
        let ticket = QueueTicket::default();
        let turn = || poll_fn(|cx| ann.poll_allowance(cx, true, &ticket));
        let wait = Duration::from_millis(50);
        timeout(wait, turn())
            .await
            .expect_err("the lease is used up");
        let used = registry.take_fleet_usage();
        assert_eq!(
            (used[0].id, used[0].bytes.up, used[0].sessions),
            (7, 100, 1)
        );
        assert_eq!(used[0].devices, [here]);
        registry.grant_lease("ann", 1000);
        assert!(timeout(wait, turn()).await.unwrap() > 0);
        // Spent since the report: the lease contains it.
        ann.count_bytes(800, false);
        assert_eq!(registry.lease_wanted().await, [7]);
        registry.grant_lease("ann", 900);
        assert_eq!(registry.take_fleet_usage()[0].lease, Some(100));
        assert!(ann.run_until_ended(None, async {}).await.is_some());
        registry.block_fleet_user("ann");
        assert!(ann.run_until_ended(None, async {}).await.is_none());
        assert!(ann.admit_session(here).is_err());
        registry.grant_lease("ann", 10);
        assert!(ann.admit_session(here).is_ok());
    }

    #[tokio::test]
    async fn until_the_next_lease_a_whole_pipe_moves_at_once() {
        const MIB: usize = 1 << 20;
        let (registry, _) = registry(FleetQuota::Lease(64 << 20));
        let ann = registry.new_account("ann", "ann");
        let ticket = QueueTicket::default();
        let turn = || poll_fn(|cx| ann.poll_allowance(cx, true, &ticket));
        assert_eq!(turn().await, 4 << 20);
        ann.count_bytes(48 * MIB, true);
        assert_eq!(turn().await, 1 << 20);
        ann.count_bytes(15 * MIB, true);
        assert_eq!(turn().await, 64 << 10, "a part of the last MiB");
    }

    #[test]
    fn usage_is_reported_once_and_stored_elsewhere() {
        let (registry, _) = registry(FleetQuota::None);
        let ann = registry.new_account("ann", "ann");
        ann.count_bytes(5, true);
        ann.count_bytes(7, false);
        let taken = registry.take_fleet_usage();
        assert_eq!(taken[0].bytes, ByteCounts { up: 5, down: 7 });
        assert_eq!(registry.take_fleet_usage(), []);
        assert_eq!(
            registry.to_stored().count(),
            0,
            "not in the store of one node"
        );
        registry.set_limits(
            "ann",
            UserLimits {
                rate: Some(1),
                ..UserLimits::default()
            },
        );
        assert_eq!(registry.limits("ann"), Some(UserLimits::default()));
        ann.count_bytes(1, true);
        registry.remove_fleet_user("ann");
        let last = registry.take_fleet_usage();
        assert_eq!((last[0].bytes.up, last[0].is_last), (1, false));
        drop(ann);
        assert!(registry.take_fleet_usage()[0].is_last);
        registry.update_fleet_user("ann");
    }

    #[test]
    fn another_user_of_the_name_begins_anew() {
        let (registry, source) = registry(FleetQuota::Lease(1 << 20));
        let ann = registry.new_account("ann", "ann");
        ann.count_bytes(5, true);
        registry.set_devices_elsewhere("ann", 9);
        registry.grant_lease("ann", 64 << 20);
        lock(&source.0).get_mut("ann").unwrap().id = 8;
        registry.update_fleet_user("ann");
        ann.count_bytes(3, true);
        let taken = registry.take_fleet_usage();
        let (id, bytes, lease) = (taken[0].id, taken[0].bytes.sum(), taken[0].lease);
        assert_eq!((id, bytes, lease), (8, 3, Some((1 << 20) - 3)));
        lock(&source.0).get_mut("ann").unwrap().limits.devices = Some(1);
        registry.update_fleet_user("ann");
        assert!(ann.admit_session(IpAddr::from([192, 0, 2, 1])).is_ok());
    }

    #[test]
    fn devices_at_other_nodes_count() {
        let (registry, source) = registry(FleetQuota::None);
        let ann = registry.new_account("ann", "ann");
        lock(&source.0).get_mut("ann").unwrap().limits.devices = Some(2);
        registry.update_fleet_user("ann");
        registry.set_devices_elsewhere("ann", 1);
        let (a, b) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let _here = ann.admit_session(a).unwrap();
        assert!(ann.admit_session(b).is_err());
        registry.set_devices_elsewhere("ann", 0);
        assert!(ann.admit_session(b).is_ok());
    }
}
