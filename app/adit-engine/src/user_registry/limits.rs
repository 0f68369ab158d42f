//! The limits of a user.

use adit_wire::{QuotaPeriod, UnixTime};

use crate::usage::{ByteCounts, Usage};

/// The limits of a user. A user without limits has the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserLimits {
    /// Payload bytes of both directions together in each period.
    pub quota: Option<u64>,
    /// The period of the quota.
    pub period: QuotaPeriod,
    /// The time from which on the user is refused.
    pub expires: Option<UnixTime>,
    /// Payload bytes per second, in each direction.
    pub rate: Option<u64>,
    /// Maximum number of sessions that are open at once: streams, and associations of datagrams.
    pub sessions: Option<u32>,
    /// Maximum number of client addresses at once: IPv4 addresses, and IPv6 networks of 64 bits.
    pub devices: Option<u32>,
}

/// The state of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserState {
    /// The user may start sessions.
    Active,
    /// The quota of the period is used up.
    OverQuota,
    /// The time of the user has expired.
    Expired,
}

impl UserState {
    /// Returns the name of the state: `active`, `over-quota` or `expired`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::OverQuota => "over-quota",
            Self::Expired => "expired",
        }
    }
}

/// A user, with their limits and their usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserReport {
    /// The name of the user.
    pub name: String,
    /// The limits.
    pub limits: UserLimits,
    /// Usage since the start of the period, or since it was last reset.
    pub used_in_period: ByteCounts,
    /// All usage.
    pub total: Usage,
    /// Number of open sessions.
    pub sessions: u32,
    /// Number of client addresses with an open session.
    pub devices: u32,
    /// The state.
    pub state: UserState,
}
