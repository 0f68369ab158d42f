//! Servers.

use std::fmt;

use adit_dns::Transport;
use adit_wire::{Host, Target};

/// A server of a [`DnsClient`](crate::DnsClient).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsServer {
    /// The resolver of the system, through [`DnsPath::look_up_by_system`](crate::DnsPath::look_up_by_system).
    System,
    /// A server of the network.
    Remote(RemoteServer),
}

/// A server of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteServer {
    /// The transport.
    pub transport: Transport,
    /// The address that queries are sent to.
    pub at: Target,
    /// The name or address in the certificate, and in HTTP.
    pub host: Host,
    /// The name in the certificate, if it is another.
    pub server_name: Option<String>,
    /// The path of DNS over HTTPS, with its query; empty for other transports.
    pub path: String,
}

impl RemoteServer {
    /// Creates a server whose host is that of its address, with the path `/dns-query`.
    #[must_use]
    pub fn new(transport: Transport, at: Target) -> Self {
        let path = match transport {
            Transport::Https => "/dns-query",
            _ => "",
        };
        Self {
            transport,
            host: at.host.clone(),
            at,
            server_name: None,
            path: path.to_owned(),
        }
    }
}

impl fmt::Display for DnsServer {
    /// Writes the server without its path, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Remote(remote) => remote.fmt(f),
        }
    }
}

impl fmt::Display for RemoteServer {
    /// Writes the server without its path, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Target::new(self.host.clone(), self.at.port);
        write!(f, "{}://{at}", self.transport.scheme())
    }
}
