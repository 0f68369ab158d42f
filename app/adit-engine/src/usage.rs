//! The usage of users: payload bytes, datagrams and sessions.

/// Usage of a user since the start, or since the counters were last cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Payload bytes from the client.
    pub up: u64,
    /// Payload bytes to the client.
    pub down: u64,
    /// Datagrams from the client.
    pub packets_up: u64,
    /// Datagrams to the client.
    pub packets_down: u64,
    /// Number of TCP sessions started.
    pub tcp_sessions: u64,
    /// Number of UDP sessions started.
    pub udp_sessions: u64,
}

impl Usage {
    /// Returns the sum of two usages.
    #[must_use]
    pub const fn combined_with(self, other: Self) -> Self {
        Self {
            up: self.up.wrapping_add(other.up),
            down: self.down.wrapping_add(other.down),
            packets_up: self.packets_up.wrapping_add(other.packets_up),
            packets_down: self.packets_down.wrapping_add(other.packets_down),
            tcp_sessions: self.tcp_sessions.wrapping_add(other.tcp_sessions),
            udp_sessions: self.udp_sessions.wrapping_add(other.udp_sessions),
        }
    }

    /// Returns the greater of each two numbers.
    #[must_use]
    pub(crate) fn at_least(self, other: Self) -> Self {
        Self {
            up: self.up.max(other.up),
            down: self.down.max(other.down),
            packets_up: self.packets_up.max(other.packets_up),
            packets_down: self.packets_down.max(other.packets_down),
            tcp_sessions: self.tcp_sessions.max(other.tcp_sessions),
            udp_sessions: self.udp_sessions.max(other.udp_sessions),
        }
    }
}

/// The usage of the user of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCounters {
    /// The name of the user.
    pub name: String,
    /// The user's usage.
    pub usage: Usage,
}

impl Usage {
    /// Returns the counters in the order of their fields.
    #[must_use]
    pub const fn to_counts(self) -> [u64; 6] {
        let Self {
            up,
            down,
            packets_up,
            packets_down,
            tcp_sessions,
            udp_sessions,
        } = self;
        [
            up,
            down,
            packets_up,
            packets_down,
            tcp_sessions,
            udp_sessions,
        ]
    }

    /// Creates a usage from [`Self::to_counts`].
    #[must_use]
    pub const fn from_counts(counts: [u64; 6]) -> Self {
        let [
            up,
            down,
            packets_up,
            packets_down,
            tcp_sessions,
            udp_sessions,
        ] = counts;
        Self {
            up,
            down,
            packets_up,
            packets_down,
            tcp_sessions,
            udp_sessions,
        }
    }

    /// Returns what was added since `before`, an earlier usage of the same user.
    #[must_use]
    pub const fn reduced_by(self, before: Self) -> Self {
        Self {
            up: self.up.wrapping_sub(before.up),
            down: self.down.wrapping_sub(before.down),
            packets_up: self.packets_up.wrapping_sub(before.packets_up),
            packets_down: self.packets_down.wrapping_sub(before.packets_down),
            tcp_sessions: self.tcp_sessions.wrapping_sub(before.tcp_sessions),
            udp_sessions: self.udp_sessions.wrapping_sub(before.udp_sessions),
        }
    }
}

/// Payload bytes in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByteCounts {
    /// Bytes from the client.
    pub up: u64,
    /// Bytes to the client.
    pub down: u64,
}

impl ByteCounts {
    /// Returns the sum of both directions.
    #[must_use]
    pub const fn sum(self) -> u64 {
        self.up.saturating_add(self.down)
    }

    pub(crate) const fn reduced_by(self, before: Self) -> Self {
        Self {
            up: self.up.saturating_sub(before.up),
            down: self.down.saturating_sub(before.down),
        }
    }
}

impl From<Usage> for ByteCounts {
    fn from(usage: Usage) -> Self {
        Self {
            up: usage.up,
            down: usage.down,
        }
    }
}
