//! Client configuration.

use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::connection::ConnectionLimits;
use adit_ssh_proto::transport;

use super::{HostKeyPolicy, KnownHostsOnly, Login};
use crate::Keepalive;
use crate::cpu::preferred_algorithms;

/// The configuration of a client: how to connect, and as which user.
#[non_exhaustive]
pub struct ClientConfig {
    /// Algorithms, re-keying, and the bounds of a key exchange.
    pub transport: transport::TransportConfig,
    /// The policy for the server's host key. There is no default.
    pub host_key: Arc<dyn HostKeyPolicy>,
    /// The user and their credentials.
    pub login: Login,
    /// Limits on channels, windows and queues.
    pub limits: ConnectionLimits,
    /// Keepalive requests; `None` sends none.
    pub keepalive: Option<Keepalive>,
    /// Time after which a session without traffic (keepalives excepted) ends; `None` means never.
    pub inactivity: Option<Duration>,
    /// Maximum time for each wait for the server until the session is established.
    pub timeout: Duration,
}

impl ClientConfig {
    /// Creates a configuration with the defaults, and the algorithms in the order that suits this
    /// machine.
    #[must_use]
    pub fn new(host_key: Arc<dyn HostKeyPolicy>, login: Login) -> Self {
        let mut limits = ConnectionLimits::default();
        // A server forwards as many connections at once as its own clients open, and each waits here
        // until its target is connected.
        limits.pending_opens = limits.channels;
        Self {
            transport: transport::TransportConfig::new(preferred_algorithms()),
            host_key,
            login,
            limits,
            keepalive: Some(Keepalive::default()),
            inactivity: None,
            timeout: Duration::from_secs(60),
        }
    }
    /// Creates a configuration with the defaults for a host in known-hosts files: its key must be one
    /// of those listed, and a server with several keys is asked for one of them first.
    #[must_use]
    pub fn for_known_host(known: KnownHostsOnly, login: Login) -> Self {
        let mut preferred = preferred_algorithms();
        preferred.host_key = known.0.prefer_known(&preferred.host_key);
        let mut new = Self::new(Arc::new(known), login);
        new.transport.preferred = preferred;
        new
    }
}
