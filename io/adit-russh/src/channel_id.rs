//! Channel identifiers.

use std::fmt;

use adit_ssh_proto::connection::ChannelId as Id;

/// The identifier of a channel, unique within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId(pub(crate) Id);

impl ChannelId {
    /// Returns the channel number on the wire, at this end. Numbers are reused after their channels
    /// have closed.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.0.number()
    }
}

impl From<ChannelId> for u32 {
    fn from(id: ChannelId) -> Self {
        id.number()
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
