//! Defaults, and conversions of both sides' configurations.

use std::time::Duration;

use adit_ssh::Keepalive;
use adit_ssh_proto::algorithm::AlgorithmPreferences;
use adit_ssh_proto::{connection, transport};

use crate::{Error, Limits, SshId};

/// Default window of a channel, in bytes.
pub(crate) const DEFAULT_WINDOW: u32 = 2 << 20;
/// Default maximum size of one data message, in bytes.
pub(crate) const DEFAULT_PACKET: u32 = 32 << 10;
/// Default number of messages other than data that wait for a channel's reader.
pub(crate) const DEFAULT_QUEUE: usize = 100;
/// Default number of unanswered keepalive requests.
pub(crate) const DEFAULT_KEEPALIVES: usize = 3;
/// A time longer than any wait.
const FOREVER: Duration = Duration::from_secs(3600 * 24 * 365 * 30);

pub(crate) fn transport_config(
    preferred: AlgorithmPreferences,
    id: &SshId,
    limits: &Limits,
) -> Result<transport::TransportConfig, Error> {
    let mut config = transport::TransportConfig::new(preferred);
    config.software = id.software_version()?.to_owned();
    config.rekey_bytes = Some(limits.rekey_bytes());
    config.rekey_after = Some(limits.rekey_time_limit);
    Ok(config)
}

pub(crate) fn connection_limits(window: u32, packet: u32) -> connection::ConnectionLimits {
    let mut limits = connection::ConnectionLimits::default();
    limits.window = window;
    limits.max_window = limits.max_window.max(window);
    limits.max_packet = packet;
    limits
}

/// Converts the settings of keepalive requests.
pub(crate) fn keepalive_settings(interval: Option<Duration>, missed: usize) -> Option<Keepalive> {
    let missed = u32::try_from(missed).unwrap_or(u32::MAX);
    interval.map(|interval| Keepalive {
        interval,
        max_missed: missed,
    })
}

/// Returns the maximum time for the peer until the user is authenticated.
pub(crate) fn login_timeout(inactivity: Option<Duration>) -> Duration {
    inactivity.unwrap_or(FOREVER).min(FOREVER)
}

/// Converts a port. SSH's ports have 32 bits, TCP's have 16.
pub(crate) fn to_tcp_port(port: u32) -> Result<u16, Error> {
    port.try_into().map_err(|_| Error::Inconsistent)
}
