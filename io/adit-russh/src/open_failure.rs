//! Reasons to refuse a channel (RFC 4254 section 5.1).

use adit_ssh_proto::connection::OpenFailure;

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
        self.below().code()
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

    pub(crate) const fn below(&self) -> OpenFailure {
        match self {
            Self::AdministrativelyProhibited => OpenFailure::Prohibited,
            Self::ConnectFailed => OpenFailure::ConnectFailed,
            Self::UnknownChannelType => OpenFailure::UnknownType,
            Self::ResourceShortage => OpenFailure::Shortage,
            Self::Other { code, .. } => OpenFailure::Other(*code),
        }
    }

    pub(crate) fn of(reason: OpenFailure, text: &str) -> Self {
        match reason {
            OpenFailure::Prohibited => Self::AdministrativelyProhibited,
            OpenFailure::ConnectFailed => Self::ConnectFailed,
            OpenFailure::UnknownType => Self::UnknownChannelType,
            OpenFailure::Shortage => Self::ResourceShortage,
            OpenFailure::Other(code) => Self::Other {
                code,
                reason: text.to_owned(),
            },
        }
    }
}
