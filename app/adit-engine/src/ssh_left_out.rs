//! SSH in a build without the feature `ssh`: plans that have it do not start.
//!
//! The types have the functions that the rest of the engine uses, but no values.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{Family, LeftOut, ServerHop, SshHop as Plan, SshServer};
use adit_stream::BoxStream;

use crate::acceptor::{InboundRequest, RequestAcceptor};
use crate::connector::Connector;
use crate::credentials::ListenerCredentials;
use crate::handshake_limiter::HandshakeSlot;
use crate::left_out_connector::impl_left_out_connector;
use crate::{AcceptError, BoxFuture, ConnectionAddrs};

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

impl_left_out_connector!(SshHop);

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
