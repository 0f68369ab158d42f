//! Serving the plan of a file, which is read again on SIGHUP, on a change of the file, and on request of the API.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adit_admin::api::{Api, ReloadReply, ReloadRequests};
use adit_cli::{CommandResult, Failure, FileVersions, FileWatch, SignalRequest, Signals};
use adit_config::{Plan, Problem, RecordingSources};
use adit_convert::ConvertOptions;
use adit_engine::{Engine, ReloadSummary};
use tokio::time::timeout;
use tracing::{error, info};

use super::{convert, run};

/// The plan of a file, with everything that was read for it.
pub(super) struct PlanFile {
    path: PathBuf,
    /// The files that the plan was built from.
    read: FileVersions,
    pub(super) plan: Plan,
}

impl PlanFile {
    /// Reads a file, and prints notes of its conversion.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        Ok(read_file(path, &FileVersions::default())?)
    }
}

/// Reads a file, for which `known` files were read the last time.
fn read_file(path: &Path, known: &FileVersions) -> Result<PlanFile, Vec<Problem>> {
    // Taken before they are read: a change in between must be found later.
    let before = FileVersions::current(known.files().chain([path]));
    let sources = RecordingSources::default();
    let options = ConvertOptions::default();
    let (plan, notes) = adit_convert::plan_from_file_with(path, &options, &sources)?;
    convert::print_notes(&notes);
    let read = sources.into_files();
    let files = read.iter().map(PathBuf::as_path).chain([path]);
    Ok(PlanFile {
        path: path.to_owned(),
        read: before.of(files),
        plan,
    })
}

/// A running plan whose file is read again.
pub(super) struct ReloadableRun {
    pub(super) engine: Arc<Engine>,
    pub(super) file: PlanFile,
    /// The API, which has to know the keys of the current plan, and its requests.
    pub(super) api: Option<(Arc<Api>, ReloadRequests)>,
}

impl ReloadableRun {
    /// Serves until a signal ends it.
    pub(super) async fn serve(mut self, mut signals: Signals) -> CommandResult {
        let mut watch = self.new_watch();
        loop {
            let reply = tokio::select! {
                request = signals.next_request() => match request {
                    SignalRequest::Reload => None,
                    SignalRequest::Drain => {
                        let drain = self.file.plan.run.drain;
                        return drain_engine(&self.engine, drain.max(SHORTEST_DRAIN), signals).await;
                    }
                    SignalRequest::Stop => {
                        return drain_engine(&self.engine, Duration::ZERO, signals).await;
                    }
                },
                () = wait_for_change(watch.as_mut()) => None,
                reply = next_api_request(self.api.as_mut()) => Some(reply),
            };
            let result = self.reload().await;
            // After an error the watch goes on: the next version of the file may be the right one.
            let is_new = result.is_ok();
            if let Some(reply) = reply {
                // The client may have closed the connection.
                let _ = reply.send(result);
            }
            if is_new {
                watch = self.new_watch();
            }
        }
    }

    fn new_watch(&self) -> Option<FileWatch> {
        let run = self.file.plan.run;
        run.watch.then(|| FileWatch::new(self.file.read.clone()))
    }

    /// Reads the file again and applies it. Logs the result in one line.
    async fn reload(&mut self) -> Result<ReloadSummary, String> {
        let name = self.file.path.display().to_string();
        let result = self.apply_file().await;
        match &result {
            Ok(done) => info!("reloaded {name}: {done}"),
            Err(why) => {
                error!("{name} was not reloaded, the running configuration is unchanged: {why}");
            }
        }
        result
    }

    async fn apply_file(&mut self) -> Result<ReloadSummary, String> {
        let (path, known) = (self.file.path.clone(), self.file.read.clone());
        let read = tokio::task::spawn_blocking(move || read_file(&path, &known)).await;
        let file = match read {
            Ok(Ok(file)) => file,
            Ok(Err(problems)) => {
                let lines: Vec<String> = problems.iter().map(Problem::to_log_line).collect();
                return Err(lines.join("; "));
            }
            Err(why) => return Err(why.to_string()),
        };
        let applied = self.engine.apply(&self.file.plan, &file.plan).await;
        let summary = applied.map_err(|why| why.to_string())?;
        run::print_warnings(&file.plan);
        if let Some((api, _)) = &self.api {
            api.set_plan(&file.plan);
        }
        self.file = file;
        Ok(summary)
    }
}

async fn wait_for_change(watch: Option<&mut FileWatch>) {
    match watch {
        Some(watch) => watch.changed().await,
        None => pending().await,
    }
}

async fn next_api_request(api: Option<&mut (Arc<Api>, ReloadRequests)>) -> ReloadReply {
    match api {
        Some((_, requests)) => match requests.recv().await {
            Some(reply) => reply,
            None => pending().await,
        },
        None => pending().await,
    }
}

/// `drain` of at least this time tells SIGTERM from an interrupt.
const SHORTEST_DRAIN: Duration = Duration::from_millis(1);
/// Time for plugins to end after an interrupt; then they are killed.
const INTERRUPT_TIME: Duration = Duration::from_millis(80);

/// Stops accepting, and lets open connections continue for at most `drain`, or until a further signal. Zero is an
/// interrupt, whose exit code is 130.
pub(super) async fn drain_engine(
    engine: &Engine,
    drain: Duration,
    mut signals: Signals,
) -> CommandResult {
    let stop = engine.drain_and_stop(drain);
    if drain.is_zero() {
        let _ = timeout(INTERRUPT_TIME, stop).await;
        return adit_cli::result_of_end(drain);
    }
    let open = engine.open_connections();
    if open > 0 {
        info!("{open} open connections have {drain:?} to end; a second signal ends them");
    }
    tokio::select! {
        () = stop => {}
        _ = signals.next_end() => {}
    }
    Ok(())
}
