//! The export of metrics and traces in a build without the feature `otlp`.

use std::sync::Arc;

use adit_cli::{Failure, FailureCode};
use adit_config::{Family, LeftOut, Plan};
use adit_engine::Engine;

use crate::args;

/// An export: there is none.
pub(super) struct PendingExport;

impl PendingExport {
    /// Fails if the arguments ask for an export; a plan that does has an error.
    pub(super) fn new(typed: &args::RunArgs, _: &Plan) -> Result<Self, Failure> {
        if typed.otlp.is_some() {
            let what = LeftOut(Family::Otlp).to_string();
            return Err(Failure::new(FailureCode::Usage, what)
                .with_hint("build adit with it: `cargo build --release -p adit --features otlp`"));
        }
        Ok(Self)
    }

    pub(super) const fn start(self, _: &Arc<Engine>) -> RunningExport {
        RunningExport
    }
}

/// A running export: there is none.
pub(super) struct RunningExport;

impl RunningExport {
    #[allow(clippy::unused_async, reason = "that of an export waits")]
    pub(super) async fn finish(self) {}
}

/// Checks nothing: a plan with an export has an error.
pub(super) const fn check_settings(_: &Plan) -> Result<(), Failure> {
    Ok(())
}
