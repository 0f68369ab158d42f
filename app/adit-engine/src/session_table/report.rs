//! Open sessions as panels show them.

use std::net::SocketAddr;
use std::time::Duration;

/// The open sessions of a process.
#[derive(Debug, Clone)]
pub struct SessionList {
    /// Number of all open sessions.
    pub total: usize,
    /// The newest of them, newest first.
    pub sessions: Vec<SessionReport>,
}

/// An open session.
#[derive(Debug, Clone)]
pub struct SessionReport {
    /// Its number, unique in the process.
    pub id: u64,
    /// Its kind.
    pub kind: SessionKind,
    /// The name of its user; empty without one.
    pub user: String,
    /// The route that it belongs to.
    pub route: String,
    /// The bound address of its listener.
    pub listen: SocketAddr,
    /// The class of its destination; for datagrams, that of the first one.
    pub class: TargetClass,
    /// The port of its destination; 0 if the destination is unknown.
    pub port: u16,
    /// Time since it has started.
    pub age: Duration,
    /// Payload bytes from the client.
    pub up: u64,
    /// Payload bytes to the client.
    pub down: u64,
}

/// The kind of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// A stream of a TCP or KCP connection.
    Tcp,
    /// A UDP association.
    Udp,
    /// A channel of an SSH connection.
    Ssh,
}

/// The class of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetClass {
    /// A host name.
    Name,
    /// A public IPv4 address.
    IPv4,
    /// A public IPv6 address.
    IPv6,
    /// An address of a private network or of this machine.
    Private,
    /// Each datagram has its own, and none has arrived yet.
    Unknown,
}

impl SessionReport {
    /// Returns the class and the port of the destination, such as `name:443`.
    #[must_use]
    pub fn target(&self) -> String {
        format!("{}:{}", self.class.name(), self.port)
    }
}

impl SessionKind {
    /// Returns the name: `tcp`, `udp` or `ssh`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Ssh => "ssh",
        }
    }
}

impl TargetClass {
    /// Returns the name: `name`, `IPv4`, `IPv6`, `private` or `unknown`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::IPv4 => "IPv4",
            Self::IPv6 => "IPv6",
            Self::Private => "private",
            Self::Unknown => "unknown",
        }
    }
}
