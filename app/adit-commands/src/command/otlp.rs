//! `adit run --otlp`, and `otlp` in `[log]` of a file: the export of metrics and traces.

use std::sync::Arc;

use adit_admin::otlp::{OtlpEndpoint, OtlpExport, OtlpSettings, SpanQueue};
use adit_cli::{Failure, FailureCode};
use adit_config::{OtlpTarget, Plan};
use adit_engine::Engine;

use crate::{args, logging};

/// An export that starts with the engine. Spans are collected already: the first connections come before it starts.
pub(super) struct PendingExport(Option<(OtlpSettings, SpanQueue)>);

impl PendingExport {
    /// Returns the export that the arguments or the file ask for. The arguments take precedence, and the headers of the
    /// file, which may be credentials, are for its own collector alone.
    pub(super) fn new(typed: &args::RunArgs, plan: &Plan) -> Result<Self, Failure> {
        let of_file = plan.log.otlp.as_ref();
        let target = match &typed.otlp {
            Some(url) => {
                let interval = of_file.map(|target| target.interval);
                let mut target = OtlpTarget::new(url);
                target.interval = interval.unwrap_or(target.interval);
                Some(target)
            }
            None => of_file.cloned(),
        };
        let in_file = plan.admin.as_ref().is_some_and(|admin| admin.metrics_users);
        let shows_users = typed.metrics_users || in_file;
        let settings = target.map(|target| to_settings(&target, shows_users, typed.otlp.is_some()));
        let settings = settings.transpose()?;
        Ok(Self(
            settings.map(|settings| (settings, logging::export_spans())),
        ))
    }

    /// Starts it, and returns what ends it.
    pub(super) fn start(self, engine: &Arc<Engine>) -> RunningExport {
        let export = self
            .0
            .map(|(settings, spans)| OtlpExport::start(settings, engine.clone(), spans));
        RunningExport(export)
    }
}

/// A running export, if there is one.
pub(super) struct RunningExport(Option<OtlpExport>);

impl RunningExport {
    /// Exports what is left, and ends.
    pub(super) async fn finish(self) {
        if let Some(export) = self.0 {
            export.finish().await;
        }
    }
}

/// Checks what the file says about the export.
pub(super) fn check_settings(plan: &Plan) -> Result<(), Failure> {
    let target = plan.log.otlp.as_ref();
    target.map_or(Ok(()), |target| to_settings(target, false, false).map(drop))
}

fn to_settings(
    target: &OtlpTarget,
    shows_users: bool,
    is_typed: bool,
) -> Result<OtlpSettings, Failure> {
    let endpoint = target.url.parse::<OtlpEndpoint>().map_err(|why| {
        let (code, place) = match is_typed {
            true => (FailureCode::Usage, "--otlp"),
            false => (FailureCode::Config, "[log] otlp"),
        };
        Failure::new(code, format!("{place}: {why}"))
            .with_hint("collectors listen for OTLP over HTTP at port 4318: http://127.0.0.1:4318")
    })?;
    Ok(OtlpSettings {
        endpoint,
        interval: target.interval,
        shows_users,
        headers: target.headers.clone(),
    })
}
