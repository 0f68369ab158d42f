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
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use adit_net::system;
use tokio::sync::Notify;

use super::UserRegistry;
use super::entry::UserEntry;
use super::limits::{QuotaPeriod, UserLimits};
use crate::usage::ByteCounts;

/// A lease is renewed when less than 1/`LOW_PART` of it is left.
const LOW_PART: i64 = 4;

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

/// The numbers of users whose lease is nearly used up.
#[derive(Debug, Default)]
pub(super) struct LeaseSignal {
    wanted: Mutex<Vec<u32>>,
    notify: Notify,
}

impl LeaseSignal {
    fn request(&self, id: u32) {
        let mut wanted = lock(&self.wanted);
        if !wanted.contains(&id) {
            wanted.push(id);
        }
        drop(wanted);
        self.notify.notify_one();
    }
}

/// The part of an entry whose user is one of a fleet.
#[derive(Debug)]
pub(super) struct FleetPart {
    /// The number of the user; 0 after the user was removed, and reported for the last time.
    id: AtomicU32,
    /// The rest of the lease at which a new one is requested; `i64::MIN` once it was.
    low: AtomicI64,
    /// Number of devices at other nodes.
    pub(super) devices_elsewhere: AtomicU32,
    /// The tasks that wait for a lease.
    waiting: Mutex<Vec<Waker>>,
    /// Usage that was reported.
    reported: Mutex<ByteCounts>,
    signal: Arc<LeaseSignal>,
}

impl FleetPart {
    fn new(signal: Arc<LeaseSignal>, used: ByteCounts) -> Self {
        Self {
            id: AtomicU32::new(0),
            low: AtomicI64::new(i64::MIN),
            devices_elsewhere: AtomicU32::new(0),
            waiting: Mutex::default(),
            // What was counted before is not the fleet's.
            reported: Mutex::new(used),
            signal,
        }
    }

    /// Returns the number of the user; `None` if the user is not one of a fleet any more.
    pub(super) fn id(&self) -> Option<u32> {
        Some(self.id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Requests a lease if less than a quarter of the last one is left.
    pub(super) fn check_lease(&self, left: i64) {
        let low = self.low.load(Ordering::Relaxed);
        if left <= low {
            self.request_lease();
        }
    }

    #[cold]
    fn request_lease(&self) {
        if self.low.swap(i64::MIN, Ordering::Relaxed) == i64::MIN {
            return;
        }
        if let Some(id) = self.id() {
            self.signal.request(id);
        }
    }

    /// Wakes the task of `cx` when there is a lease again.
    pub(super) fn poll_lease(&self, cx: &Context<'_>, left: impl Fn() -> i64) -> Poll<()> {
        let mut waiting = lock(&self.waiting);
        // It may have been granted meanwhile.
        if left() > 0 {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        drop(waiting);
        self.request_lease();
        Poll::Pending
    }

    /// Wakes the tasks that wait for a lease.
    pub(super) fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns the bytes of `total` that were not reported.
    pub(super) fn unreported(&self, total: ByteCounts) -> ByteCounts {
        total.reduced_by(*lock(&self.reported))
    }
}

impl UserEntry {
    /// Makes the user one of a fleet, or changes what the fleet has decided.
    pub(super) fn set_fleet(&self, decided: &FleetUserLimits, signal: &Arc<LeaseSignal>) {
        let mut record = self.lock();
        let total = || ByteCounts::from(record.total());
        let part = self
            .fleet
            .get_or_init(|| Box::new(FleetPart::new(signal.clone(), total())));
        if part.id.swap(decided.id, Ordering::Relaxed) == 0 {
            *lock(&part.reported) = total();
        }
        let has_lease = matches!(record.fleet_quota, FleetQuota::Lease(_));
        record.limits = UserLimits {
            quota: None,
            period: QuotaPeriod::Total,
            ..decided.limits
        }
        .into();
        record.is_removed = false;
        // A lease in use is worth more than the first one of a new user.
        if !(has_lease && matches!(decided.quota, FleetQuota::Lease(_))) {
            record.fleet_quota = decided.quota;
            if let FleetQuota::Lease(bytes) = decided.quota {
                self.put_lease(part, bytes, 0);
                // The first lease is small.
                part.request_lease();
            }
        }
        self.apply(&mut record, system::unix_now());
        drop(record);
        part.wake_waiting();
    }

    /// Sets the lease. `spent` bytes of it are spent already.
    fn put_lease(&self, part: &FleetPart, bytes: u64, spent: u64) {
        let lease = i64::try_from(bytes).unwrap_or(i64::MAX);
        let left = lease.saturating_sub(i64::try_from(spent).unwrap_or(i64::MAX));
        self.budget.store(left, Ordering::Relaxed);
        part.low.store(lease / LOW_PART, Ordering::Relaxed);
    }

    /// Grants a lease, of which everything is spent that was counted since the last report.
    fn grant_lease(&self, bytes: u64) {
        let Some(part) = self.fleet.get().filter(|part| part.id().is_some()) else {
            return;
        };
        let mut record = self.lock();
        let spent = part.unreported(record.total().into()).sum();
        self.put_lease(part, bytes, spent);
        if !matches!(record.fleet_quota, FleetQuota::Lease(_)) {
            record.fleet_quota = FleetQuota::Lease(bytes);
            self.apply(&mut record, system::unix_now());
        }
        drop(record);
        part.wake_waiting();
        part.check_lease(self.budget.load(Ordering::Relaxed));
    }

    /// Ends the quota: open sessions end. Returns false if it had ended before.
    fn block_quota(&self) -> bool {
        let Some(part) = self.fleet.get().filter(|part| part.id().is_some()) else {
            return false;
        };
        let mut record = self.lock();
        if record.fleet_quota == FleetQuota::UsedUp {
            return false;
        }
        record.fleet_quota = FleetQuota::UsedUp;
        self.apply(&mut record, system::unix_now());
        drop(record);
        part.wake_waiting();
        true
    }

    /// Returns what the user has done since the last report; `None` for a user who is not one of a fleet.
    fn take_usage(&self) -> Option<FleetUsage> {
        let part = self.fleet.get()?;
        let id = part.id()?;
        let mut record = self.lock();
        record.settle_accounts();
        let total = ByteCounts::from(record.total());
        let (sessions, devices) = match &record.live {
            Some(live) => {
                let devices = live.devices.iter().map(|(network, _)| *network);
                (live.sessions, devices.collect())
            }
            None => (0, Vec::new()),
        };
        let is_last = record.is_removed && record.live.is_none();
        if is_last {
            part.id.store(0, Ordering::Relaxed);
        }
        let lease = matches!(record.fleet_quota, FleetQuota::Lease(_));
        drop(record);
        let mut reported = lock(&part.reported);
        let bytes = total.reduced_by(*reported);
        *reported = total;
        Some(FleetUsage {
            id,
            name: self.name().into(),
            bytes,
            lease: lease.then(|| self.budget.load(Ordering::Relaxed)),
            sessions,
            devices,
            is_last,
        })
    }

    /// Marks the user as removed. What is not reported yet stays until it is.
    fn leave_fleet(&self) {
        let Some(part) = self.fleet.get() else { return };
        let mut record = self.lock();
        record.is_removed = true;
        record.limits = UserLimits::default().into();
        record.fleet_quota = FleetQuota::None;
        self.apply(&mut record, system::unix_now());
        drop(record);
        part.wake_waiting();
    }

    /// Ends the open sessions.
    fn interrupt(&self) {
        let record = self.lock();
        for account in record.live.iter().flat_map(|live| &live.accounts) {
            account.interrupt_sessions();
        }
    }
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

    /// Applies a change of a user of the fleet. A user that has not connected needs no change.
    pub fn update_fleet_user(&self, name: &str, decided: &FleetUserLimits) {
        if let Some(entry) = self.find(name) {
            entry.set_fleet(decided, &self.lease_signal);
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

    /// Ends the open sessions of a user, who may start others. Returns false if no such user is known.
    pub fn kick(&self, name: &str) -> bool {
        let entry = self.find(name);
        if let Some(entry) = &entry {
            entry.interrupt();
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

/// Ignores poisoning: a panic of another thread leaves the value intact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::future::poll_fn;
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

    fn registry(quota: FleetQuota) -> (Arc<UserRegistry>, FleetUserLimits) {
        let decided = FleetUserLimits {
            id: 7,
            limits: UserLimits::default(),
            quota,
        };
        let source = Source::default();
        lock(&source.0).insert("ann".to_owned(), decided);
        let registry = Arc::new(UserRegistry::default());
        registry.use_fleet(Arc::new(source));
        (registry, decided)
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
        assert!(ann.run_until_ended(async {}).await.is_some());
        registry.block_fleet_user("ann");
        assert!(ann.run_until_ended(async {}).await.is_none());
        assert!(ann.admit_session(here).is_err());
        registry.grant_lease("ann", 10);
        assert!(ann.admit_session(here).is_ok());
    }

    #[test]
    fn usage_is_reported_once_and_stored_elsewhere() {
        let (registry, decided) = registry(FleetQuota::None);
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
        registry.update_fleet_user("ann", &decided);
    }

    #[test]
    fn devices_at_other_nodes_count() {
        let (registry, decided) = registry(FleetQuota::None);
        let ann = registry.new_account("ann", "ann");
        let limits = UserLimits {
            devices: Some(2),
            ..UserLimits::default()
        };
        registry.update_fleet_user("ann", &FleetUserLimits { limits, ..decided });
        registry.set_devices_elsewhere("ann", 1);
        let (a, b) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let _here = ann.admit_session(a).unwrap();
        assert!(ann.admit_session(b).is_err());
        registry.set_devices_elsewhere("ann", 0);
        assert!(ann.admit_session(b).is_ok());
    }
}
