//! What a client decides.

use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::connection::Limits;
use adit_ssh_proto::transport;

use super::{HostKeyPolicy, KnownHostsOnly, Login};
use crate::Keepalive;
use crate::machine::preferred;

/// How to connect, and as whom.
pub struct ClientConfig {
    /// Algorithms, renewal of keys, the bounds of a key exchange.
    pub transport: transport::Config,
    /// Whose key the server may have. There is no default.
    pub host_key: Arc<dyn HostKeyPolicy>,
    /// The user, and how he shows that he is.
    pub login: Login,
    /// Channels, windows and bounds of what waits.
    pub limits: Limits,
    /// Signs of life; `None`: none are asked for.
    pub keepalive: Option<Keepalive>,
    /// Ends the session when nothing but signs of life has come or gone for so long; `None`: it may
    /// be quiet.
    pub inactivity: Option<Duration>,
    /// The longest wait for the server before the session is there, each time.
    pub timeout: Duration,
}

impl ClientConfig {
    /// The defaults, with the algorithms in the order that suits this machine.
    #[must_use]
    pub fn new(host_key: Arc<dyn HostKeyPolicy>, login: Login) -> Self {
        let mut limits = Limits::default();
        // What a server forwards comes as its own clients do, many at once, and each waits for its
        // target here.
        limits.pending_opens = limits.channels;
        Self {
            transport: transport::Config::new(preferred()),
            host_key,
            login,
            limits,
            keepalive: Some(Keepalive::default()),
            inactivity: None,
            timeout: Duration::from_mins(1),
        }
    }
    /// The defaults for a host that is known by files: its key has to be one of them, and a server
    /// that has several is asked for one of these first.
    #[must_use]
    pub fn known(known: KnownHostsOnly, login: Login) -> Self {
        let mut preferred = preferred();
        preferred.host_key = known.0.prefer(&preferred.host_key);
        let mut new = Self::new(Arc::new(known), login);
        new.transport.preferred = preferred;
        new
    }
}
