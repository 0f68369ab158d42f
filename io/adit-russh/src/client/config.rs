//! What a client decides.

use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::connection;
use adit_ssh_proto::transport;

use crate::engine::Patience;
use crate::preferred::Certified;
use crate::{Error, Limits, Preferred, SshId, settings};

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
    pub(super) fn transport(&self) -> Result<Arc<transport::Config>, Error> {
        let preferred = self.preferred.below(Certified::Listed)?;
        settings::transport(preferred, &self.client_id, &self.limits)
    }

    pub(super) fn connection(&self) -> connection::Limits {
        settings::connection(self.window_size, self.maximum_packet_size)
    }

    pub(super) const fn patience(&self) -> Patience {
        Patience {
            inactivity: self.inactivity_timeout,
            keepalive: self.keepalive_interval,
            missed: self.keepalive_max,
        }
    }
}
