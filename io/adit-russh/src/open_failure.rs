//! Reasons to refuse a channel (RFC 4254 section 5.1).

use adit_ssh_proto::connection::OpenFailureReason;

/// The reason why a channel was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelOpenFailure {
    /// The policy prohibits it.
    AdministrativelyProhibited,
    /// The connection behind the channel failed.
    ConnectFailed,
    /// The channel type is unknown.
    UnknownChannelType,
    /// Too many channels are open.
    ResourceShortage,
    /// A code without a name.
    Other {
        /// The code.
        code: u32,
        /// The explanation.
        reason: String,
    },
}

impl ChannelOpenFailure {
    /// Returns the code on the wire.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.to_open_failure().code()
    }

    /// Returns an explanation.
    #[must_use]
    pub fn description(&self) -> &str {
        match self {
            Self::AdministrativelyProhibited => "not allowed",
            Self::ConnectFailed => "the connection failed",
            Self::UnknownChannelType => "unknown channel type",
            Self::ResourceShortage => "too many channels",
            Self::Other { reason, .. } => reason,
        }
    }

    pub(crate) const fn to_open_failure(&self) -> OpenFailureReason {
        match self {
            Self::AdministrativelyProhibited => OpenFailureReason::Prohibited,
            Self::ConnectFailed => OpenFailureReason::ConnectFailed,
            Self::UnknownChannelType => OpenFailureReason::UnknownType,
            Self::ResourceShortage => OpenFailureReason::Shortage,
            Self::Other { code, .. } => OpenFailureReason::Other(*code),
        }
    }

    pub(crate) fn from_open_failure(reason: OpenFailureReason, text: &str) -> Self {
        match reason {
            OpenFailureReason::Prohibited => Self::AdministrativelyProhibited,
            OpenFailureReason::ConnectFailed => Self::ConnectFailed,
            OpenFailureReason::UnknownType => Self::UnknownChannelType,
            OpenFailureReason::Shortage => Self::ResourceShortage,
            OpenFailureReason::Other(code) => Self::Other {
                code,
                reason: text.to_owned(),
            },
        }
    }
}
