//! The decisions of a fleet about a user, and the usage since the last report.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use adit_net::system;
use adit_wire::QuotaPeriod;

use super::entry::UserEntry;
use super::fleet::{FleetQuota, FleetUsage, FleetUserLimits};
use super::fleet_part::{FleetPart, LeaseSignal, lock};
use super::limits::UserLimits;
use crate::usage::ByteCounts;

/// A lease is renewed when less than 1/`LOW_PART` of it is left.
const LOW_PART: i64 = 4;

impl UserEntry {
    /// Makes the user one of a fleet, or changes what the fleet has decided.
    pub(super) fn set_fleet(&self, decided: &FleetUserLimits, signal: &Arc<LeaseSignal>) {
        let mut record = self.lock();
        let total = || ByteCounts::from(record.total());
        let part = self
            .fleet
            .get_or_init(|| Box::new(FleetPart::new(signal.clone(), total())));
        // Another user may have had the name.
        let is_same = part.id.swap(decided.id, Ordering::Relaxed) == decided.id;
        if !is_same {
            *lock(&part.reported) = total();
            part.devices_elsewhere.store(0, Ordering::Relaxed);
        }
        let has_lease = is_same && matches!(record.fleet_quota, FleetQuota::Lease(_));
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
        self.end_excess_devices(&mut record);
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
    pub(super) fn grant_lease(&self, bytes: u64) {
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
    pub(super) fn block_quota(&self) -> bool {
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
    pub(super) fn take_usage(&self) -> Option<FleetUsage> {
        let part = self.fleet.get()?;
        let id = part.id()?;
        let mut record = self.lock();
        record.settle_accounts();
        let total = ByteCounts::from(record.total());
        let (sessions, devices) = match &record.live {
            Some(live) => (live.sessions, live.networks().collect()),
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
    pub(super) fn leave_fleet(&self) {
        let Some(part) = self.fleet.get() else { return };
        let mut record = self.lock();
        record.is_removed = true;
        record.limits = UserLimits::default().into();
        record.fleet_quota = FleetQuota::None;
        self.apply(&mut record, system::unix_now());
        drop(record);
        part.wake_waiting();
    }

    /// Ends the open sessions, and those that are being opened.
    pub(super) fn kick(&self) {
        let mut record = self.lock();
        let Some(live) = &mut record.live else { return };
        live.kicks = live.kicks.wrapping_add(1);
        for account in &live.accounts {
            account.interrupt_sessions();
        }
    }
}
