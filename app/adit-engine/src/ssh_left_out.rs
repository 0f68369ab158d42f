//! SSH in a build without the feature `ssh`: plans that have it do not start.
//!
//! The types have the functions that the rest of the engine uses, but no values.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{Family, LeftOut, ServerHop, SshHop as Plan, SshServer};
use adit_stream::BoxStream;
use adit_wire::Target;

use crate::acceptor::{InboundRequest, RequestAcceptor};
use crate::connector::{ConnectedStream, Connector};
use crate::credentials::ListenerCredentials;
use crate::handshake_limiter::HandshakeSlot;
use crate::udp::BoxDatagramPath;
use crate::{AcceptError, BoxFuture, ConnectionAddrs, DialError};

/// The error of a plan with SSH.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SshPlanError(#[from] LeftOut);

/// Reaches targets through an SSH server.
#[derive(Debug)]
pub enum SshHop {}

impl SshHop {
    /// Fails.
    ///
    /// # Errors
    ///
    /// Always, because the build has no SSH.
    pub fn new(_: &ServerHop, _: &Plan, _: Arc<dyn Connector>) -> Result<Self, SshPlanError> {
        Err(SshPlanError(LeftOut(Family::Ssh)))
    }
}

impl Connector for SshHop {
    fn connect<'a>(
        &'a self,
        _: &'a Target,
        _: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        match *self {}
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        match *self {}
    }
}

/// An SSH server that only serves streams.
pub(crate) enum SshAcceptor {}

impl SshAcceptor {
    pub(crate) fn new(
        _: &SshServer,
        _: ListenerCredentials,
        _: Duration,
    ) -> Result<Self, SshPlanError> {
        Err(SshPlanError(LeftOut(Family::Ssh)))
    }
}

impl RequestAcceptor for SshAcceptor {
    fn accept_request(
        &self,
        _: BoxStream,
        _: ConnectionAddrs,
        _: HandshakeSlot,
    ) -> BoxFuture<'_, Result<InboundRequest, AcceptError>> {
        match *self {}
    }
}
