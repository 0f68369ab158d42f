//! The reasons why a user gets no session.

use crate::FailureCause;

/// The reason why a user gets no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserRefusal {
    OverQuota,
    Expired,
    TooManySessions,
    TooManyDevices,
}

impl UserRefusal {
    /// Returns the bit of `UserEntry::logged`.
    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns the text for logs and clients.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::OverQuota => "the quota of the user is used up",
            Self::Expired => "the time of the user has expired",
            Self::TooManySessions => "the user has too many open sessions",
            Self::TooManyDevices => "the user is connected from too many addresses",
        }
    }

    /// Returns the typed cause.
    pub(crate) const fn cause(self) -> FailureCause {
        match self {
            Self::OverQuota => FailureCause::OverQuota,
            Self::Expired => FailureCause::Expired,
            Self::TooManySessions => FailureCause::TooManySessions,
            Self::TooManyDevices => FailureCause::TooManyDevices,
        }
    }
}
