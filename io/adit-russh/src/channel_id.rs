//! The name of a channel.

use std::fmt;

use adit_ssh_proto::connection::ChannelId as Id;

/// Names a channel of one session, and never another one of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId(pub(crate) Id);

impl ChannelId {
    /// Its number on the wire, at this end. A number is used again when its channel is gone.
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
