//! What a client decides.

use std::sync::Arc;
use std::time::Duration;

use adit_ssh::client::{ClientConfig, HostKeyPolicy, Login};
use adit_ssh::messages::Bounds;

use crate::preferred::Certified;
use crate::{Error, Limits, Preferred, SshId, settings};

/// Pieces of data that wait in one channel before its writer does.
const PIECES: usize = 64;

/// What a client decides.
#[derive(Debug)]
pub struct Config {
    /// The line that it introduces itself with.
    pub client_id: SshId,
    /// When new keys are made.
    pub limits: Limits,
    /// What the server may send in a channel before it is read, octets.
    pub window_size: u32,
    /// The most that the server may put into one message, octets.
    pub maximum_packet_size: u32,
    /// Messages without bytes that wait for a channel's reader; more are only told to the
    /// [`Handler`](super::Handler).
    pub channel_buffer_size: usize,
    /// What is offered.
    pub preferred: Preferred,
    /// Ends the session when nothing has happened for so long.
    pub inactivity_timeout: Option<Duration>,
    /// Asks for a sign of life when nothing has come for so long.
    pub keepalive_interval: Option<Duration>,
    /// So many questions without an answer end the session.
    pub keepalive_max: usize,
    /// Sends small packets at once (`TCP_NODELAY`); for [`connect`](super::connect).
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
