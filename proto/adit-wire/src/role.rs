//! The two ends of a connection.

use core::fmt;

/// An end of a connection. Protocols use it where the ends have different rights, numbers or keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The end that initiates the connection.
    Client,
    /// The end that accepts the connection.
    Server,
}

impl Role {
    /// Returns the opposite end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// `client` or `server`.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}
