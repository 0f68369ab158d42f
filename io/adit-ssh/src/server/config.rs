//! What a server decides for all connections.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::auth;
use adit_ssh_proto::connection::Limits;
use adit_ssh_proto::key::Signer;
use adit_ssh_proto::transport;

use crate::Keepalive;
use crate::machine::preferred;

/// How connections are taken in.
#[derive(Clone)]
pub struct ServerConfig {
    /// Algorithms, renewal of keys, the bounds of a key exchange.
    pub transport: transport::Config,
    /// What the server proves its name with, such as an [`adit_ssh_proto::key::KeySet`].
    pub host_keys: Arc<dyn Signer>,
    /// Tell clients all keys of the host once they are in, and prove them when asked (OpenSSH's
    /// `UpdateHostKeys`): so a key can be replaced before the old one is gone.
    pub tell_host_keys: bool,
    /// Methods of authentication, tries, the banner.
    pub auth: auth::ServerConfig,
    /// Channels, windows and bounds of what waits.
    pub limits: Limits,
    /// Signs of life; `None`: none are asked for.
    pub keepalive: Option<Keepalive>,
    /// Ends a connection when nothing but signs of life has come or gone for so long; `None`: it may
    /// be quiet.
    pub inactivity: Option<Duration>,
    /// How long a client may take until its user is in.
    pub login_grace: Duration,
}

impl ServerConfig {
    /// The defaults, with the algorithms in the order that suits this machine and without
    /// Diffie–Hellman in finite fields: keys alone are offered as a method, two minutes to log in.
    #[must_use]
    pub fn new(host_keys: Arc<dyn Signer>) -> Self {
        let mut limits = Limits::default();
        // A connection is confirmed when its target has answered: those who open many at once
        // have as many that wait.
        limits.pending_opens = limits.channels;
        Self {
            transport: transport::Config::new(preferred().for_server()),
            host_keys,
            tell_host_keys: true,
            auth: auth::ServerConfig::default(),
            limits,
            keepalive: Some(Keepalive::default()),
            inactivity: None,
            login_grace: Duration::from_mins(2),
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
