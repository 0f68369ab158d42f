//! Carriers in a build without the feature `kcp`: plans that have one do not start.
//!
//! The types have the functions that the rest of the engine uses, but no values.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use adit_config::{CarrierSettings, Family, FecSettings, KcpSettings, LeftOut, ListenerConfig};
use adit_wire::Target;

use crate::dns::NameResolver;
use crate::handover::{SharedSocketAnswer, SocketSource};
use crate::left_out_connector::impl_left_out_connector;
use crate::listener::{ListenerState, OpenSockets};
use crate::serve::ConnectionHandler;
use crate::{DialError, StartError};

/// The error of a plan with a carrier.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CarrierError(#[from] LeftOut);

const LEFT_OUT: CarrierError = CarrierError(LeftOut(Family::Kcp));

/// The counters of the sessions, of which there are none.
#[derive(Debug, Default)]
pub(crate) struct Counters;

/// The values of the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KcpCounts {
    /// The number of open sessions.
    pub curr_estab: u64,
}

/// The metadata and the value of a counter.
#[derive(Debug)]
pub struct KcpCount {
    /// Name in the style of Prometheus.
    pub key: &'static str,
    /// Description, one sentence.
    pub help: &'static str,
    /// `counter`, or `gauge` for a value that may decrease.
    pub kind: &'static str,
    /// The value.
    pub value: u64,
}

impl Counters {
    pub(crate) const fn counts(&self) -> KcpCounts {
        KcpCounts { curr_estab: 0 }
    }

    pub(crate) const fn add_counts(&self, _: &KcpCounts) {}
}

impl KcpCounts {
    /// Returns no counters.
    #[must_use]
    pub const fn all(&self) -> [KcpCount; 0] {
        []
    }

    /// Returns the values in a process that hands them over: none of them was counted.
    #[must_use]
    pub const fn values(&self) -> [u64; 30] {
        [0; 30]
    }

    /// Creates the counts from those of another process. They are dropped, because nothing shows them.
    #[must_use]
    pub const fn from_values(_: [u64; 30]) -> Self {
        Self { curr_estab: 0 }
    }

    pub(crate) const fn since(&self, _: &Self) -> Self {
        *self
    }
}

/// A hop for datagrams.
#[derive(Debug)]
pub enum FecHop {}

/// A channel of a hop for datagrams.
pub(crate) enum FecChannel {}

/// Streams over sessions of KCP.
#[derive(Debug)]
pub enum KcpCarrier {}

/// Changes the settings of a running listener.
#[derive(Clone)]
pub(crate) enum CarrierControl {}

/// Settings for the sessions that start from now on.
pub(crate) enum CarrierUpdate {}

pub(crate) async fn open_carrier(
    _: &ListenerConfig,
    _: &CarrierSettings,
    _: Option<ConnectionHandler>,
    _: &ListenerState,
    _: &Arc<Counters>,
    _: SocketSource<'_>,
) -> Result<OpenSockets, StartError> {
    Err(LEFT_OUT.into())
}

impl FecHop {
    /// Fails.
    ///
    /// # Errors
    ///
    /// Always, because the build has no carriers.
    pub fn new(
        _: Target,
        _: String,
        _: &FecSettings,
        _: NameResolver,
    ) -> Result<Self, CarrierError> {
        Err(LEFT_OUT)
    }

    pub(crate) async fn open_channel(&self) -> Result<FecChannel, DialError> {
        match *self {}
    }
}

impl FecChannel {
    pub(crate) const fn send(&self, _: &[u8]) -> io::Result<()> {
        match *self {}
    }

    pub(crate) const fn flush(&self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) const fn is_heard(&self) -> bool {
        match *self {}
    }

    pub(crate) fn poll_recv(
        &self,
        _: &mut Context<'_>,
        _: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>> {
        match *self {}
    }
}

impl KcpCarrier {
    /// Fails.
    ///
    /// # Errors
    ///
    /// Always, because the build has no carriers.
    pub(crate) fn new(
        _: Target,
        _: String,
        _: Duration,
        _: &KcpSettings,
        _: Arc<Counters>,
        _: NameResolver,
    ) -> Result<Self, CarrierError> {
        Err(LEFT_OUT)
    }

    pub(crate) fn start_sessions(self: &Arc<Self>) {
        match **self {}
    }
}

impl CarrierControl {
    pub(crate) fn update(&self, _: CarrierUpdate) {
        match *self {}
    }

    pub(crate) fn hand_over(&self) -> SharedSocketAnswer {
        match *self {}
    }

    pub(crate) const fn session_count(&self) -> usize {
        match *self {}
    }
}

impl CarrierUpdate {
    pub(crate) const fn between(
        _: &ListenerConfig,
        _: &ListenerConfig,
        _: &Arc<Counters>,
    ) -> Result<Option<Self>, CarrierError> {
        Ok(None)
    }
}

impl_left_out_connector!(FecHop);
impl_left_out_connector!(KcpCarrier);
