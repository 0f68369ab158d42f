//! Server configuration.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::auth;
use adit_ssh_proto::connection::ConnectionLimits;
use adit_ssh_proto::key::Signer;
use adit_ssh_proto::transport;

use crate::Keepalive;
use crate::cpu::preferred_algorithms;

/// The configuration of a server, shared by all its connections.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Algorithms, re-keying, and the bounds of a key exchange.
    pub transport: transport::TransportConfig,
    /// The host keys, such as an [`adit_ssh_proto::key::KeySet`].
    pub host_keys: Arc<dyn Signer>,
    /// True to announce all host keys to clients after login, and to prove them on request (OpenSSH's
    /// `UpdateHostKeys`). This lets you replace a key before the old one is gone.
    pub announce_host_keys: bool,
    /// Authentication methods, the number of attempts, the banner.
    pub auth: auth::ServerAuthConfig,
    /// Limits on channels, windows and queues.
    pub limits: ConnectionLimits,
    /// Keepalive requests; `None` sends none.
    pub keepalive: Option<Keepalive>,
    /// Time after which a connection without traffic (keepalives excepted) ends; `None` means never.
    pub inactivity: Option<Duration>,
    /// Maximum time for a client to log in.
    pub login_grace: Duration,
}

impl ServerConfig {
    /// Creates a configuration with the defaults: the algorithms in the order that suits this machine,
    /// without finite-field Diffie–Hellman; public keys as the only method; two minutes to log in.
    #[must_use]
    pub fn new(host_keys: Arc<dyn Signer>) -> Self {
        let mut limits = ConnectionLimits::default();
        // A channel is confirmed when its target has answered, so a client that opens many at once has
        // that many pending.
        limits.pending_opens = limits.channels;
        Self {
            transport: transport::TransportConfig::new(preferred_algorithms().for_server()),
            host_keys,
            announce_host_keys: true,
            auth: auth::ServerAuthConfig::default(),
            limits,
            keepalive: Some(Keepalive::default()),
            inactivity: None,
            login_grace: Duration::from_secs(120),
        }
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("transport", &self.transport)
            .field("auth", &self.auth)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
