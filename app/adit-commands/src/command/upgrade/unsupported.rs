//! Systems without the handover of sockets.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adit_admin::api::{ApiListener, ApiListenerControl, ApiListenerError, Upgraded};
use adit_cli::{CommandResult, Failure, Signals};
use adit_engine::{Engine, Inheritance, PreparedEngine};

use super::{Exchange, PredecessorEnd, ProcessFiles};

/// A process that this one succeeds; there is none.
pub(crate) struct Predecessor {
    pub(crate) inheritance: Inheritance,
    none: Infallible,
}

/// The state of a predecessor; there is none.
pub(crate) struct Handover(Infallible);

/// The socket of a predecessor's API; there is none.
pub(crate) struct InheritedApi(Infallible);

/// A process that succeeds this one; there is none.
pub(crate) struct Successor {
    pub(crate) about: Upgraded,
    none: Infallible,
}

impl Predecessor {
    pub(crate) async fn from_environment() -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    pub(crate) fn take_api(&mut self) -> Option<InheritedApi> {
        match self.none {}
    }

    pub(crate) async fn refuse(self, _: Failure) -> Failure {
        match self.none {}
    }

    pub(crate) async fn wait_for_start(&mut self, _: bool) -> Result<Handover, Failure> {
        match self.none {}
    }

    pub(crate) fn follow(self, _: Arc<Engine>) -> PredecessorEnd {
        match self.none {}
    }
}

impl Handover {
    pub(crate) fn start(self, _: PreparedEngine) -> Engine {
        match self.0 {}
    }
}

impl InheritedApi {
    pub(crate) async fn continue_at(
        self,
        _: &str,
        _: bool,
    ) -> Result<Option<ApiListener>, ApiListenerError> {
        match self.0 {}
    }
}

impl Successor {
    pub(crate) async fn start(
        _: &Path,
        _: &Engine,
        _: Option<&ApiListenerControl>,
        _: Option<PredecessorEnd>,
        _: &ProcessFiles,
    ) -> Exchange<Self> {
        Err("only a process on Linux can be upgraded".to_owned())
    }

    pub(crate) async fn drain(self, _: &Engine, _: Duration, _: Signals) -> CommandResult {
        match self.none {}
    }
}
