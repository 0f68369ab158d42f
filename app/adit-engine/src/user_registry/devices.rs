//! The devices of a user, and the end of those beyond the limit.

use std::net::IpAddr;
use std::sync::Arc;

use tracing::info;

use super::UserRefusal;
use super::entry::{LiveState, Record, UserEntry};

/// A client network with open sessions or connections.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) network: IpAddr,
    /// Number of its sessions and connections.
    pub(super) count: u32,
    /// True once it is beyond the limit of the user: its sessions end, and it gets no further ones.
    pub(super) is_ended: bool,
}

impl Device {
    /// Returns a device with its first session or connection.
    pub(super) const fn new(network: IpAddr) -> Self {
        Self {
            network,
            count: 1,
            is_ended: false,
        }
    }
}

impl LiveState {
    /// Returns the networks that count for the limit, in the order of their arrival.
    pub(super) fn networks(&self) -> impl Iterator<Item = IpAddr> {
        let counted = self.devices.iter().filter(|device| !device.is_ended);
        counted.map(|device| device.network)
    }

    pub(super) fn device_count(&self) -> u32 {
        u32::try_from(self.networks().count()).unwrap_or(u32::MAX)
    }
}

/// An open session of a user, or a connection that has none yet; it is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct SessionPermit {
    entry: Arc<UserEntry>,
    network: IpAddr,
    is_session: bool,
    /// The kicks before it: the session may be opened for seconds before it can be told of one.
    kicks: u32,
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        let mut record = self.entry.lock();
        let Some(live) = &mut record.live else {
            return;
        };
        live.sessions = live.sessions.saturating_sub(self.is_session.into());
        let mut devices = live.devices.iter_mut();
        if let Some(device) = devices.find(|device| device.network == self.network) {
            device.count = device.count.saturating_sub(1);
        }
        live.devices.retain(|device| device.count > 0);
        record.release_memory();
    }
}

impl SessionPermit {
    pub(super) const fn new(
        entry: Arc<UserEntry>,
        network: IpAddr,
        is_session: bool,
        kicks: u32,
    ) -> Self {
        Self {
            entry,
            network,
            is_session,
            kicks,
        }
    }

    /// Returns true if the session ends because its device is beyond the limit of the user.
    pub(crate) fn is_beyond_devices(&self) -> bool {
        let record = self.entry.lock();
        record
            .live
            .as_ref()
            .is_some_and(|live| self.is_beyond(live))
    }

    /// Returns true if the session ends, for that or because of a kick.
    pub(crate) fn is_ended(&self) -> bool {
        let record = self.entry.lock();
        let live = record.live.as_ref();
        live.is_some_and(|live| live.kicks != self.kicks || self.is_beyond(live))
    }

    fn is_beyond(&self, live: &LiveState) -> bool {
        let mut devices = live.devices.iter();
        devices.any(|device| device.is_ended && device.network == self.network)
    }
}

impl UserEntry {
    /// Ends the sessions of the devices beyond the limit, which came last.
    pub(super) fn end_excess_devices(&self, record: &mut Record) {
        let limit = usize::try_from(record.limits.devices).unwrap_or(usize::MAX);
        let mut counted = 0;
        self.end_devices(record, |_| {
            counted += 1;
            counted > limit
        });
    }

    /// Ends the sessions of the devices that `is_beyond` returns true for.
    pub(super) fn end_devices(
        &self,
        record: &mut Record,
        mut is_beyond: impl FnMut(IpAddr) -> bool,
    ) {
        let Some(live) = &mut record.live else { return };
        let mut ended = 0_usize;
        for device in live.devices.iter_mut().filter(|device| !device.is_ended) {
            device.is_ended = is_beyond(device.network);
            ended += usize::from(device.is_ended);
        }
        if ended == 0 {
            return;
        }
        for account in &live.accounts {
            account.recheck_sessions();
        }
        info!(
            user = self.name(),
            "{}: the sessions of {ended} devices end",
            UserRefusal::TooManyDevices.text()
        );
    }
}
