//! Defaults, and conversions of both sides' configurations.

use std::time::Duration;

use adit_ssh::Keepalive;
use adit_ssh_proto::algorithm::Preferred;
use adit_ssh_proto::{connection, transport};

use crate::{Error, Limits, SshId};

/// Default window of a channel, in bytes.
pub(crate) const WINDOW: u32 = 2 << 20;
/// Default maximum size of one data message, in bytes.
pub(crate) const PACKET: u32 = 32 << 10;
/// Default number of messages other than data that wait for a channel's reader.
pub(crate) const MAILBOX: usize = 100;
/// Default number of unanswered keepalive requests.
pub(crate) const KEEPALIVES: usize = 3;
/// A time longer than any wait.
const FOREVER: Duration = Duration::from_hours(24 * 365 * 30);

pub(crate) fn transport(
    preferred: Preferred,
    id: &SshId,
    limits: &Limits,
) -> Result<transport::Config, Error> {
    let mut config = transport::Config::new(preferred);
    config.software = id.software()?.to_owned();
    config.rekey_bytes = Some(limits.octets());
    config.rekey_after = Some(limits.rekey_time_limit);
    Ok(config)
}

pub(crate) fn connection(window: u32, packet: u32) -> connection::Limits {
    let defaults = connection::Limits::default();
    connection::Limits {
        window,
        max_window: defaults.max_window.max(window),
        max_packet: packet,
        ..defaults
    }
}

/// Converts the settings of keepalive requests.
pub(crate) fn keepalive(interval: Option<Duration>, missed: usize) -> Option<Keepalive> {
    let missed = u32::try_from(missed).unwrap_or(u32::MAX);
    interval.map(|interval| Keepalive { interval, missed })
}

/// Returns the maximum time for the peer until the user is authenticated.
pub(crate) fn patience(inactivity: Option<Duration>) -> Duration {
    inactivity.unwrap_or(FOREVER).min(FOREVER)
}

/// Converts a port. SSH's ports have 32 bits, TCP's have 16.
pub(crate) fn port(port: u32) -> Result<u16, Error> {
    port.try_into().map_err(|_| Error::Inconsistent)
}
