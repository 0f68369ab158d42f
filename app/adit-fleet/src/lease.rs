//! Leases: the part of a user's quota that a node may use up without asking the store.
//!
//! Leases are no reservations: each node has one at the same time, and the bytes beyond the quota are bounded by the
//! number of nodes times the lease. With N nodes:
//!
//! ```text
//! lease = min(remaining, max(1 MiB, min(remaining / 2N, quota / 36N, max(64 MiB, recent))))
//! bytes beyond the quota <= N x lease <= max(quota / 36, N x 1 MiB), and 0 with one node
//! ```
//!
//! `recent` is what the user has moved at the node within the last second, in which the node asks the store anyway: the
//! lease of a fast user lasts until then too. With 64 MiB, a user of 1 GiB/s needed 26 leases per second, and 12 % more
//! processor time on the data path.
//!
//! In addition there is what sessions had read when the lease ended. A node knows of a new one with its next batch of
//! usage, so a lease from before it has the earlier size for a second.

use std::time::Duration;

/// Maximum lease of a user who moves no more than this within a second, in bytes.
pub const MAX_LEASE: u64 = 64 << 20;
/// Minimum lease while more than this remains, in bytes.
pub const MIN_LEASE: u64 = 1 << 20;
/// The part of the quota that all leases have together. A user may exceed the quota by a 32nd; the difference is for what
/// sessions had read: with a 32nd for the leases, 16 nodes exceeded 1 GiB by 32.2 MiB.
const PART_OF_QUOTA: u64 = 36;

/// Returns the lease of a user who has used `used` bytes of `quota`, in a realm of `nodes` nodes, `recent` of them at
/// this node within the last second. Nodes that do not report count too: they still have the lease that they were
/// granted.
#[must_use]
pub fn lease(quota: u64, used: u64, nodes: u32, recent: RecentBytes) -> u64 {
    let nodes = u64::from(nodes.max(1));
    let remaining = quota.saturating_sub(used);
    let share = (remaining / (2 * nodes))
        .min(MAX_LEASE.max(recent.0))
        .min(quota / (PART_OF_QUOTA * nodes));
    share.max(MIN_LEASE).min(remaining)
}

/// The bytes that a user has moved at this node within the last second. Those before fade out evenly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecentBytes(u64);

impl RecentBytes {
    const SECOND: u128 = Duration::from_secs(1).as_micros();

    /// Adds the bytes that were moved within the `time` since the last call.
    pub fn add(&mut self, bytes: u64, time: Duration) {
        let (before, bytes) = (u128::from(self.0), u128::from(bytes));
        let now = match time.as_micros() {
            time if time < Self::SECOND => before - before * time / Self::SECOND + bytes,
            time => bytes * Self::SECOND / time,
        };
        self.0 = u64::try_from(now).unwrap_or(u64::MAX);
    }
}

/// The lease of a user at this node, in terms of a counter that only increases: the bytes the user has moved here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserLease {
    granted: u64,
    /// The value of the counter at which the lease is used up.
    limit: u64,
}

impl UserLease {
    /// Replaces the lease by a new one, which counts from `counted_at_cut`: the value of the counter when the batch
    /// was cut to which the store answered. What was moved since is a part of the new lease.
    pub const fn renew(&mut self, counted_at_cut: u64, lease: u64) {
        self.granted = lease;
        self.limit = counted_at_cut.saturating_add(lease);
    }

    /// Returns the bytes that are left when the counter is at `counted`.
    #[must_use]
    pub const fn left(&self, counted: u64) -> u64 {
        self.limit.saturating_sub(counted)
    }

    /// Returns the bytes that were moved beyond the lease.
    #[must_use]
    pub const fn beyond(&self, counted: u64) -> u64 {
        counted.saturating_sub(self.limit)
    }

    /// Returns true if less than a quarter is left, so that usage is sent at once.
    #[must_use]
    pub const fn is_low(&self, counted: u64) -> bool {
        self.left(counted) < self.granted / 4
    }

    /// Returns the size of the lease.
    #[must_use]
    pub const fn granted(&self) -> u64 {
        self.granted
    }
}

/// The bytes and the time that each user has beyond the lease while the store does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// Bytes for each user.
    pub bytes: u64,
    /// Time since the store was lost.
    pub time: Duration,
}

impl Grace {
    /// Returns the bytes that a user may still move after `beyond` bytes beyond the lease, when the store was lost
    /// `outage` ago.
    #[must_use]
    pub fn left(&self, beyond: u64, outage: Duration) -> u64 {
        match outage < self.time {
            true => self.bytes.saturating_sub(beyond),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_lease_shrinks_with_the_rest() {
        let slow = |quota, used, nodes| lease(quota, used, nodes, RecentBytes::default());
        assert_eq!(slow(1 << 30, 0, 16), (1 << 30) / 576);
        assert_eq!(slow(1 << 40, 0, 1), MAX_LEASE);
        assert_eq!(slow(1 << 40, (1 << 40) - (8 << 20), 2), 2 << 20);
        assert_eq!(slow(1 << 30, (1 << 30) - 5, 16), 5);
        assert_eq!(slow(1 << 30, 1 << 30, 16), 0);
        assert_eq!(slow(1 << 30, u64::MAX, 0), 0);
    }

    #[test]
    fn the_lease_of_a_fast_user_lasts_a_second() {
        let fast = RecentBytes(1 << 30);
        assert_eq!(lease(1 << 40, 0, 1, fast), 1 << 30);
        assert_eq!(lease(1 << 40, 0, 1, RecentBytes(1 << 20)), MAX_LEASE);
        // Within the part of the quota, and of what remains.
        assert_eq!(lease(1 << 30, 0, 16, fast), (1 << 30) / 576);
        let used = (1 << 40) - (256 << 20);
        assert_eq!(lease(1 << 40, used, 2, fast), 64 << 20);
    }

    #[test]
    fn recent_bytes_are_those_of_a_second() {
        let mut recent = RecentBytes::default();
        let tenth = Duration::from_millis(100);
        for _ in 0..100 {
            recent.add(1000, tenth);
        }
        assert!((9_900..=10_000).contains(&recent.0), "{recent:?}");
        recent.add(0, Duration::from_millis(500));
        assert!((4_900..=5_000).contains(&recent.0), "{recent:?}");
        recent.add(3000, Duration::from_secs(3));
        assert_eq!(recent, RecentBytes(1000));
        recent.add(u64::MAX, Duration::ZERO);
        recent.add(u64::MAX, Duration::ZERO);
        assert_eq!(recent, RecentBytes(u64::MAX));
    }

    #[test]
    fn bytes_since_the_cut_belong_to_the_new_lease() {
        let mut lease = UserLease::default();
        assert_eq!((lease.left(0), lease.beyond(3)), (0, 3));
        lease.renew(100, 40);
        assert_eq!((lease.left(110), lease.beyond(110)), (30, 0));
        assert!(!lease.is_low(130) && lease.is_low(131));
        lease.renew(130, 40);
        assert_eq!(lease.left(140), 30);
        assert_eq!(lease.beyond(175), 5);
    }

    #[test]
    fn grace_ends_by_bytes_and_by_time() {
        let grace = Grace {
            bytes: 10,
            time: Duration::from_secs(5),
        };
        assert_eq!(grace.left(4, Duration::from_secs(4)), 6);
        assert_eq!(grace.left(11, Duration::from_secs(4)), 0);
        assert_eq!(grace.left(0, Duration::from_secs(5)), 0);
    }

    proptest! {
        /// Nodes move bytes, send them, and receive leases, in any order: the quota is exceeded by no more than the
        /// bound of the module's documentation.
        #[test]
        fn the_quota_is_exceeded_by_a_bounded_amount(
            quota in 1u64..(4 << 30),
            nodes in 1usize..20,
            steps in proptest::collection::vec((any::<prop::sample::Index>(), any::<u64>(), any::<bool>()), 1..400),
            recent in prop::sample::select(vec![0, 200 << 20, u64::MAX]),
        ) {
            let recent = RecentBytes(recent);
            let live = u32::try_from(nodes).unwrap();
            // Per node: counter, counter at the last cut, lease.
            let mut state = vec![(0u64, 0u64, UserLease::default()); nodes];
            let mut used = 0u64;
            for node in &mut state {
                node.2.renew(0, lease(quota, 0, live, recent));
            }
            for (index, bytes, sends) in steps {
                let node = &mut state[index.index(nodes)];
                node.0 += bytes % (node.2.left(node.0) + 1);
                if sends {
                    used += node.0 - node.1;
                    node.1 = node.0;
                    node.2.renew(node.0, lease(quota, used, live, recent));
                }
            }
            // All remaining leases are used up.
            let moved: u64 = state.iter().map(|node| node.0 + node.2.left(node.0)).sum();
            let bound = match nodes {
                1 => 0,
                _ => (quota / PART_OF_QUOTA).max(u64::from(live) * MIN_LEASE),
            };
            prop_assert!(moved <= quota.saturating_add(bound), "{moved} of {quota}");
        }
    }
}
