//! Serving the plan of a file, which is read again on SIGHUP, on a change of the file, and on request of the API.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adit_admin::api::{Api, ReloadReply, ReloadRequests};
use adit_cli::{
    CommandResult, Failure, FileVersions, FileWatch, SignalRequest, Signals, notify_service_manager,
};
use adit_config::{Plan, Problem, RecordingSources, RuleSetSource};
use adit_engine::{Engine, ReloadSummary};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::rule_sets::PlanRuleSets;
use super::upgrade::{UpgradeHost, UpgradeOutcome, UpgradeTrigger};
use super::{admin, convert, fleet_node, run};
use crate::logging;

/// The plan of a file, with everything that was read for it.
pub(super) struct PlanFile {
    path: PathBuf,
    /// The files that the plan was built from.
    read: FileVersions,
    pub(super) plan: Plan,
}

impl PlanFile {
    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

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
    let plan = convert::plan_from_file_with(path, &sources)?;
    let read = sources.into_files();
    let lists = plan.sets.iter().filter_map(|set| match &set.source {
        RuleSetSource::File(list) => Some(list.as_path()),
        RuleSetSource::Url(_) => None,
    });
    let files = read.iter().map(PathBuf::as_path).chain([path]).chain(lists);
    let read = before.of(files);
    Ok(PlanFile {
        path: path.to_owned(),
        read,
        plan,
    })
}

/// A running plan whose file is read again.
pub(super) struct ReloadableRun {
    pub(super) engine: Arc<Engine>,
    pub(super) file: PlanFile,
    /// Refreshes the rule sets.
    pub(super) sets: PlanRuleSets,
    /// The API, which has to know the keys of the current plan, and its requests.
    pub(super) api: Option<(Arc<Api>, ReloadRequests)>,
    /// Hands over to another process.
    pub(super) upgrades: UpgradeHost,
    /// The node of a fleet, which reports the servers of the current plan.
    pub(super) node: Option<fleet_node::FleetControl>,
}

/// The reason why a running plan does something.
enum RunEvent {
    /// The file is read again; the reply is for a client of the API.
    Reload(Option<ReloadReply>),
    Upgrade(UpgradeTrigger),
    /// The listeners that a drain of the node has closed are opened again; the reply is true if they are.
    Resume(oneshot::Sender<bool>),
    /// Open connections have this time to end.
    End(Duration),
}

impl ReloadableRun {
    /// Serves until a signal ends it.
    pub(super) async fn serve(mut self, mut signals: Signals) -> CommandResult {
        let mut watch = self.new_watch();
        let (mut is_due, mut upgrade_is_due) = (false, false);
        let mut missed_reload = false;
        let admin_at_start = self.file.plan.admin.clone();
        let otlp_at_start = self.file.plan.log.otlp.clone();
        let fleet_at_start = self.file.plan.fleet.clone();
        loop {
            let drain = self.file.plan.run.drain;
            let event = tokio::select! {
                () = std::future::ready(()), if is_due => RunEvent::Reload(None),
                () = std::future::ready(()), if upgrade_is_due && !is_due => {
                    upgrade_is_due = false;
                    RunEvent::Upgrade(UpgradeTrigger::default())
                }
                request = signals.next_request() => match (request, drain_time(request, drain)) {
                    (_, Some(drain)) => RunEvent::End(drain),
                    (SignalRequest::Upgrade, None) => RunEvent::Upgrade(UpgradeTrigger::default()),
                    (_, None) => RunEvent::Reload(None),
                },
                () = wait_for_change(watch.as_mut()) => RunEvent::Reload(None),
                reply = next_api_request(self.api.as_mut()) => RunEvent::Reload(Some(reply)),
                trigger = self.upgrades.next_request() => RunEvent::Upgrade(trigger),
                order = next_resume(self.node.as_ref()) => RunEvent::Resume(order),
            };
            let reply = match event {
                RunEvent::Reload(reply) if self.is_drained() => {
                    missed_reload = true;
                    is_due = false;
                    refuse_reload(reply);
                    continue;
                }
                RunEvent::Reload(reply) => reply,
                RunEvent::Resume(order) => {
                    let is_open = self.resume().await;
                    is_due |= is_open && std::mem::take(&mut missed_reload);
                    // The node may have stopped to wait: its next request finds open listeners.
                    let _ = order.send(is_open);
                    continue;
                }
                RunEvent::End(drain) => {
                    return drain_engine(&self.engine, Some(&self.upgrades), drain, signals).await;
                }
                RunEvent::Upgrade(trigger) => {
                    let engine = &self.engine;
                    match self.upgrades.perform(trigger, engine, &mut signals).await {
                        UpgradeOutcome::Replaced(successor) => {
                            return successor.drain(engine, drain, signals).await;
                        }
                        UpgradeOutcome::Failed { reload } => is_due |= reload,
                        UpgradeOutcome::Ended(request) => {
                            let drain = drain_time(request, drain).unwrap_or(drain);
                            return drain_engine(engine, Some(&self.upgrades), drain, signals)
                                .await;
                        }
                    }
                    continue;
                }
            };
            is_due = false;
            // The download of a list must not delay the end.
            let result = {
                let mut reload = pin!(self.reload());
                loop {
                    tokio::select! {
                        result = &mut reload => break Ok(result),
                        request = signals.next_request() => match drain_time(request, drain) {
                            Some(drain) => break Err(drain),
                            None if request == SignalRequest::Upgrade => upgrade_is_due = true,
                            None => is_due = true,
                        },
                    }
                }
            };
            let result = match result {
                Ok(result) => result,
                Err(drain) => {
                    return drain_engine(&self.engine, Some(&self.upgrades), drain, signals).await;
                }
            };
            // After an error the watch goes on: the next version of the file may be the right one.
            let is_new = result.is_ok();
            if let Some(reply) = reply {
                // The client may have closed the connection.
                let _ = reply.send(result);
            }
            if is_new {
                watch = self.new_watch();
                if self.file.plan.log.otlp != otlp_at_start {
                    warn!(
                        "`otlp` in `[log]` is not what adit started with: restart it to apply the change"
                    );
                }
                if self.file.plan.admin != admin_at_start {
                    warn!(
                        "`[admin]` is not what adit started with: restart it to apply the change"
                    );
                }
                if self.file.plan.fleet != fleet_at_start {
                    warn!(
                        "`[fleet]` is not what adit started with: restart it to apply the change"
                    );
                }
            }
        }
    }

    /// Returns true if the node was drained, and its listeners are closed.
    fn is_drained(&self) -> bool {
        self.node.is_some() && self.engine.is_draining() && self.engine.listeners().is_empty()
    }

    /// Opens the listeners of the running plan again. Returns true if they are open.
    async fn resume(&self) -> bool {
        let plan = &self.file.plan;
        if let Err(why) = self.engine.resume(plan).await {
            error!("the listeners of this node are not opened again: {why}");
            return false;
        }
        if let Some(node) = &self.node {
            fleet_node::set_plan(node, &self.engine, plan);
        }
        true
    }

    fn new_watch(&self) -> Option<FileWatch> {
        let run = self.file.plan.run;
        run.watch.then(|| FileWatch::new(self.file.read.clone()))
    }

    /// Reads the file again and applies it. Logs the result in one line.
    async fn reload(&mut self) -> Result<ReloadSummary, String> {
        let name = self.file.path.display().to_string();
        report_state(&adit_cli::reloading_state());
        let result = self.apply_file().await;
        report_state("READY=1");
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
            Ok(Err(problems)) => return Err(to_log_line(&problems)),
            Err(why) => return Err(why.to_string()),
        };
        let before = &self.file.plan;
        let running = self.engine.rule_sets();
        // Wrong settings must not leave a part of the file applied.
        admin::check_webhooks(&file.plan)?;
        let loaded = self.sets.load_again(&file.plan, before, &running).await;
        let table = loaded.map_err(|problems| to_log_line(&problems))?;
        let applied = self
            .engine
            .apply_with_rule_sets(before, &file.plan, table.clone())
            .await;
        let summary = applied.map_err(|why| why.to_string())?;
        logging::apply_settings_or_warn(&file.plan.log);
        run::print_warnings(&file.plan);
        self.sets.follow(&file.plan, table, self.engine.names());
        if let Some((api, _)) = &self.api {
            api.set_plan(&file.plan);
        }
        if let Some(node) = &self.node {
            fleet_node::set_plan(node, &self.engine, &file.plan);
        }
        if let Some(webhooks) = self.upgrades.webhooks() {
            admin::set_webhooks(webhooks, &file.plan)?;
        }
        self.file = file;
        Ok(summary)
    }
}

/// Refuses to read the file while the node is drained: its listeners would be opened.
fn refuse_reload(reply: Option<ReloadReply>) {
    let why = "this node is drained: the file is read when it serves again";
    // The service manager waits for both.
    report_state(&adit_cli::reloading_state());
    report_state("READY=1");
    info!("{why}");
    if let Some(reply) = reply {
        // The client may have closed the connection.
        let _ = reply.send(Err(why.to_owned()));
    }
}

/// Reports a state to the service manager: `systemctl reload` waits for the end of the reload.
fn report_state(state: &str) {
    if let Err(why) = notify_service_manager(state) {
        warn!("cannot report to the service manager: {why}");
    }
}

fn to_log_line(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_log_line).collect();
    lines.join("; ")
}

/// Returns the time that open connections have after a request to end; `None` for other requests.
pub(super) fn drain_time(request: SignalRequest, drain: Duration) -> Option<Duration> {
    match request {
        SignalRequest::Reload | SignalRequest::Upgrade => None,
        SignalRequest::Drain => Some(drain.max(SHORTEST_DRAIN)),
        SignalRequest::Stop => Some(Duration::ZERO),
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

async fn next_resume(node: Option<&fleet_node::FleetControl>) -> oneshot::Sender<bool> {
    match node {
        Some(node) => node.next_resume().await,
        None => pending().await,
    }
}

/// `drain` of at least this time tells SIGTERM from an interrupt.
const SHORTEST_DRAIN: Duration = Duration::from_millis(1);
/// Time for plugins to end after an interrupt; then they are killed.
const INTERRUPT_TIME: Duration = Duration::from_millis(80);

/// Time that the service manager waits beyond `drain`.
const STOP_TIME: Duration = Duration::from_secs(15);

/// Stops accepting, and lets open connections continue for at most `drain`, or until a further signal. Zero is an
/// interrupt, whose exit code is 130. `upgrades` is the host of this process's upgrades, if it can have succeeded another
/// one, whose connections continue too.
pub(super) async fn drain_engine(
    engine: &Engine,
    upgrades: Option<&UpgradeHost>,
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
    // The service manager would kill what does not end within its own time.
    report_state(&adit_cli::stopping_state(drain + STOP_TIME));
    // When this process ends, the service manager ends the other one.
    let all = async {
        let others = async {
            if let Some(upgrades) = upgrades {
                // A process that stalls is not waited for.
                let _ = timeout(drain, upgrades.wait_for_predecessor()).await;
            }
        };
        tokio::join!(stop, others);
    };
    tokio::select! {
        () = all => {}
        _ = signals.next_end() => {}
    }
    Ok(())
}
