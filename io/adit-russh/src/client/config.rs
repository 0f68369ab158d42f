//! Client configuration.

use std::sync::Arc;
use std::time::Duration;

use adit_ssh::client::{ClientConfig, HostKeyPolicy, Login};
use adit_ssh::messages::Bounds;

use crate::preferred::Certified;
use crate::{Error, Limits, Preferred, SshId, settings};

/// Number of data chunks that wait in one channel before its writer waits.
const PIECES: usize = 64;

/// The configuration of a client.
#[derive(Debug)]
pub struct Config {
    /// The client's identification string.
    pub client_id: SshId,
    /// Limits for key re-exchange.
    pub limits: Limits,
    /// Window of a channel: what the server may send before it is read, in bytes.
    pub window_size: u32,
    /// Maximum size of one data message from the server, in bytes.
    pub maximum_packet_size: u32,
    /// Number of messages other than data that wait for a channel's reader; further ones are passed to
    /// the [`Handler`](super::Handler) alone.
    pub channel_buffer_size: usize,
    /// The offered algorithms.
    pub preferred: Preferred,
    /// Ends the session when it was idle for this time.
    pub inactivity_timeout: Option<Duration>,
    /// Sends a keepalive request when the server was silent for this time.
    pub keepalive_interval: Option<Duration>,
    /// Number of unanswered keepalive requests that end the session.
    pub keepalive_max: usize,
    /// Sets `TCP_NODELAY`, so that small packets are sent immediately. Used by
    /// [`connect`](super::connect).
    pub nodelay: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            client_id: SshId::default(),
            limits: Limits::default(),
            window_size: settings::WINDOW,
            maximum_packet_size: settings::PACKET,
            channel_buffer_size: settings::MAILBOX,
            preferred: Preferred::default(),
            inactivity_timeout: None,
            keepalive_interval: None,
            keepalive_max: settings::KEEPALIVES,
            nodelay: false,
        }
    }
}

impl Config {
    pub(super) fn below(&self, host_key: Arc<dyn HostKeyPolicy>) -> Result<ClientConfig, Error> {
        let preferred = self.preferred.below(Certified::Listed)?;
        let mut config = ClientConfig::new(host_key, Login::new(""));
        config.transport = settings::transport(preferred, &self.client_id, &self.limits)?;
        config.limits = settings::connection(self.window_size, self.maximum_packet_size);
        config.keepalive = settings::keepalive(self.keepalive_interval, self.keepalive_max);
        config.inactivity = self.inactivity_timeout;
        config.timeout = settings::patience(self.inactivity_timeout);
        Ok(config)
    }

    pub(super) const fn bounds(&self) -> Bounds {
        Bounds {
            messages: self.channel_buffer_size,
            pieces: PIECES,
        }
    }
}
