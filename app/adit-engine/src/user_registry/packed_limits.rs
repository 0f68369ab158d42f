//! The limits of a user in an entry.

use adit_wire::{QuotaPeriod, UnixTime};

use super::limits::UserLimits;

/// The limits of a user in less memory: the maximum of a type is no limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedLimits {
    pub(super) quota: u64,
    pub(super) expires: u64,
    pub(super) rate: u64,
    pub(super) sessions: u32,
    pub(super) devices: u32,
    pub(super) period: QuotaPeriod,
}

impl Default for PackedLimits {
    fn default() -> Self {
        UserLimits::default().into()
    }
}

impl From<UserLimits> for PackedLimits {
    fn from(limits: UserLimits) -> Self {
        Self {
            quota: limits.quota.unwrap_or(u64::MAX),
            expires: limits.expires.map_or(u64::MAX, |at| at.0),
            rate: limits.rate.unwrap_or(u64::MAX),
            sessions: limits.sessions.unwrap_or(u32::MAX),
            devices: limits.devices.unwrap_or(u32::MAX),
            period: limits.period,
        }
    }
}

impl From<PackedLimits> for UserLimits {
    fn from(packed: PackedLimits) -> Self {
        let long = |n: u64| (n != u64::MAX).then_some(n);
        let short = |n: u32| (n != u32::MAX).then_some(n);
        Self {
            quota: long(packed.quota),
            period: packed.period,
            expires: long(packed.expires).map(UnixTime),
            rate: long(packed.rate),
            sessions: short(packed.sessions),
            devices: short(packed.devices),
        }
    }
}
