//! Why a channel is not opened (RFC 4254 section 5.1).

use adit_ssh_proto::connection::OpenFailure;

/// Why a channel is not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelOpenFailure {
    /// The policy forbids it.
    AdministrativelyProhibited,
    /// The connection behind it failed.
    ConnectFailed,
    /// Nobody knows this type.
    UnknownChannelType,
    /// Too many channels.
    ResourceShortage,
    /// A code without a name.
    Other {
        /// The code.
        code: u32,
        /// Words about it.
        reason: String,
    },
}

impl ChannelOpenFailure {
    /// The code on the wire.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.below().code()
    }

    /// Words about it.
    #[must_use]
    pub fn description(&self) -> &str {
        match self {
            Self::AdministrativelyProhibited => "not allowed",
            Self::ConnectFailed => "the connection failed",
            Self::UnknownChannelType => "unknown type of channel",
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
