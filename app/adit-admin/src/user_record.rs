//! The serialized form of a user with limits and usage, in the store and between a process and its successor.

use adit_engine::{ByteCounts, StoredUser, Usage, UserLimits};
use adit_wire::{QuotaPeriod, UnixTime};
use serde::{Deserialize, Serialize};

/// A user without the name.
#[derive(Debug, Serialize, Deserialize)]
pub struct UserRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quota: Option<u64>,
    /// The name of the [`QuotaPeriod`].
    period: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sessions: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    devices: Option<u32>,
    period_start: u64,
    /// Bytes from the client and to the client before the period.
    before_period: [u64; 2],
    /// The fields of [`Usage`], in their order.
    total: [u64; 6],
}

/// The error of a record with a period that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error("unknown period {0:?}")]
pub struct UnknownPeriod(pub String);

impl From<&StoredUser> for UserRecord {
    fn from(user: &StoredUser) -> Self {
        let StoredUser { limits, .. } = user;
        Self {
            quota: limits.quota,
            period: limits.period.name().to_owned(),
            expires: limits.expires.map(|at| at.0),
            rate: limits.rate,
            sessions: limits.sessions,
            devices: limits.devices,
            period_start: user.period_start.0,
            before_period: [user.before_period.up, user.before_period.down],
            total: user.total.to_counts(),
        }
    }
}

impl UserRecord {
    /// Returns the user of this record.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownPeriod`] if another version has written the record.
    pub fn into_user(self, name: String) -> Result<StoredUser, UnknownPeriod> {
        let Some(period) = QuotaPeriod::from_name(&self.period) else {
            return Err(UnknownPeriod(self.period));
        };
        let [up, down] = self.before_period;
        Ok(StoredUser {
            name,
            limits: UserLimits {
                quota: self.quota,
                period,
                expires: self.expires.map(UnixTime),
                rate: self.rate,
                sessions: self.sessions,
                devices: self.devices,
            },
            period_start: UnixTime(self.period_start),
            before_period: ByteCounts { up, down },
            total: Usage::from_counts(self.total),
        })
    }
}
