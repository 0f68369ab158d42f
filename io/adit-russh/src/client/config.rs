//! Client configuration.

use std::sync::Arc;
use std::time::Duration;

use adit_ssh::client::{ClientConfig, HostKeyPolicy, Login};
use adit_ssh::messages::QueueLimits;

use crate::preferred::HostCertificates;
use crate::{Error, Limits, Preferred, SshId, config_conversion};

/// Number of data chunks that wait in one channel before its writer waits.
const MAX_CHUNKS: usize = 64;

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
    /// [`connect`](super::connect()).
    pub nodelay: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            client_id: SshId::default(),
            limits: Limits::default(),
            window_size: config_conversion::DEFAULT_WINDOW,
            maximum_packet_size: config_conversion::DEFAULT_PACKET,
            channel_buffer_size: config_conversion::DEFAULT_QUEUE,
            preferred: Preferred::default(),
            inactivity_timeout: None,
            keepalive_interval: None,
            keepalive_max: config_conversion::DEFAULT_KEEPALIVES,
            nodelay: false,
        }
    }
}

impl Config {
    pub(super) fn to_client_config(
        &self,
        host_key: Arc<dyn HostKeyPolicy>,
    ) -> Result<ClientConfig, Error> {
        let preferred = self.preferred.to_transport(HostCertificates::Listed)?;
        let mut config = ClientConfig::new(host_key, Login::new(""));
        config.transport =
            config_conversion::transport_config(preferred, &self.client_id, &self.limits)?;
        config.limits =
            config_conversion::connection_limits(self.window_size, self.maximum_packet_size);
        config.keepalive =
            config_conversion::keepalive_settings(self.keepalive_interval, self.keepalive_max);
        config.inactivity = self.inactivity_timeout;
        config.timeout = config_conversion::login_timeout(self.inactivity_timeout);
        Ok(config)
    }

    pub(super) const fn queue_limits(&self) -> QueueLimits {
        let mut limits = QueueLimits::new();
        limits.messages = self.channel_buffer_size;
        limits.chunks = MAX_CHUNKS;
        limits
    }
}
