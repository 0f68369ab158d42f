//! `adit run`: listeners and chains from URLs or a file.

#![cfg_attr(
    not(feature = "admin"),
    allow(
        unused_mut,
        unused_variables,
        reason = "without the management API there is nothing to serve it with"
    )
)]

use std::borrow::Borrow;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adit_admin::api::Api;
use adit_admin::selection_file::SelectionFile;
use adit_cli::{CommandResult, EndRequest, Failure, FailureCode, Signals, notify_service_manager};
use adit_config::{Endpoint, Plan, Route, RouteOption, Warning, WarningKind};
use adit_engine::{Engine, Inheritance, PreparedEngine, RuleSetTable, SharedSockets};
use adit_net::memory;
use serde_json::json;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::plan_keys::plan_keys;
use super::reload::{PlanFile, ReloadableRun, drain_engine, drain_time};
use super::rule_sets::PlanRuleSets;
use super::upgrade::{
    Predecessor, ProcessFiles, UpgradeHost, UpgradeOutcome, UpgradeTrigger, program_of_this_process,
};
use super::{admin, convert, fleet_node, otlp};
use crate::{args, json, logging};

/// Time for the response to a request of the API that has ended this process.
const LAST_RESPONSE: Duration = Duration::from_secs(1);

pub(super) fn run_plan(typed: &args::RunArgs) -> CommandResult {
    let program = program_of_this_process();
    adit_cli::block_on(|mut signals| async {
        let mut predecessor = Predecessor::from_environment().await?;
        let prepared = PreparedRun::new(typed, predecessor.as_mut());
        let prepared = match (signals.run_until_ended(prepared).await, predecessor) {
            (Err(why), Some(predecessor)) => return Err(predecessor.refuse(why).await),
            (prepared, before) => {
                predecessor = before;
                prepared?
            }
        };
        prepared.run(program, predecessor, signals).await
    })
}

/// The plan of the arguments, ready to accept connections.
struct PreparedRun {
    source: PlanSource,
    /// True if the start is printed as JSON.
    is_json: bool,
    admin: Option<admin::AdminApi>,
    export: otlp::PendingExport,
    selections: Option<SelectionFile>,
    sets: PlanRuleSets,
    table: RuleSetTable,
    engine: PreparedEngine,
    /// The store of users; that of a predecessor is opened when it hands over.
    store: Option<admin::OpenStore>,
    /// The node of a fleet; its file is opened when a predecessor hands over.
    node: Option<fleet_node::PendingNode>,
}

/// The origin of a plan.
enum PlanSource {
    /// The arguments.
    Arguments(Box<Plan>),
    /// A file, which can be reloaded.
    File(Box<PlanFile>),
}

impl PlanSource {
    fn read(typed: &args::PlanArgs) -> Result<Self, Failure> {
        let Some(path) = plan_file(typed) else {
            return Ok(Self::Arguments(Box::new(plan_from_args(typed)?)));
        };
        let file = PlanFile::read(path)?;
        apply_log_settings(&file.plan)?;
        Ok(Self::File(Box::new(file)))
    }

    /// Returns the file of the selections in manual groups. Without a state folder, or a configuration file, they
    /// last until the process ends.
    fn selection_file(&self) -> Option<SelectionFile> {
        let Self::File(file) = self else {
            return None;
        };
        let state = adit_cli::state_folder(None).ok()?;
        Some(SelectionFile::in_state_folder(&state, file.path()))
    }

    const fn plan(&self) -> &Plan {
        match self {
            Self::Arguments(plan) => plan,
            Self::File(file) => &file.plan,
        }
    }
}

fn apply_log_settings(plan: &Plan) -> Result<(), Failure> {
    logging::apply_settings(&plan.log).map_err(|why| {
        let path = plan.log.file.as_ref().map(|file| file.path.display());
        let path = path.map(|path| path.to_string()).unwrap_or_default();
        Failure::new(
            FailureCode::Config,
            format!("cannot open the log file {path}: {why}"),
        )
        .with_hint("its folder must exist, and this account must be able to write there")
    })
}

impl PreparedRun {
    /// Reads the plan, and opens its listeners, or continues those of a predecessor.
    async fn new(
        typed: &args::RunArgs,
        mut predecessor: Option<&mut Predecessor>,
    ) -> Result<Self, Failure> {
        let source = PlanSource::read(&typed.plan)?;
        let plan = source.plan();
        if !typed.json.json {
            print_warnings(plan);
        }
        admin::check_webhooks(plan).map_err(admin::webhook_failure)?;
        // Otherwise the largest part of the memory in use at the peak would be code for arguments and files.
        release_start_memory();
        let export = otlp::PendingExport::new(typed, plan)?;
        let api = predecessor.as_mut().and_then(|before| before.take_api());
        let admin = admin::AdminApi::open(typed, plan.admin.as_ref(), api).await?;
        let store = match predecessor {
            None => admin::OpenStore::open(plan.admin.as_ref()).await?,
            Some(_) => None,
        };
        let is_successor = predecessor.is_some();
        let inherited = predecessor.map(|before| std::mem::take(&mut before.inheritance));
        let mut inherited = inherited.unwrap_or_default();
        let selections = source.selection_file();
        if let Some(file) = &selections {
            inherited.selections = file.read();
        }
        let (sets, table) = PlanRuleSets::load(plan).await?;
        let mut node = fleet_node::PendingNode::load(plan)?;
        let users = fleet_node::PendingNode::users(node.as_ref());
        let engine = Engine::prepare_with_fleet(plan, table.clone(), &inherited, users).await?;
        if let Some(node) = node.as_mut().filter(|_| !is_successor) {
            node.open(engine.engine()).await?;
        }
        Ok(Self {
            source,
            is_json: typed.json.json,
            admin,
            export,
            selections,
            sets,
            table,
            engine,
            store,
            node,
        })
    }

    /// Accepts connections until a signal, or until another process continues.
    async fn run(
        mut self,
        program: Result<PathBuf, String>,
        predecessor: Option<Predecessor>,
        mut signals: Signals,
    ) -> CommandResult {
        let plan = self.source.plan();
        let mut predecessor_end = None;
        let engine = match predecessor {
            None => {
                if let Some(store) = &mut self.store {
                    store.restore(self.engine.engine());
                }
                Arc::new(self.engine.start(SharedSockets::default()))
            }
            Some(mut predecessor) => {
                let api = self
                    .admin
                    .as_ref()
                    .is_some_and(admin::AdminApi::is_continued);
                let handover = signals.run_until_ended(predecessor.wait_for_start(api));
                let handover = handover.await?;
                self.store = admin::OpenStore::open(plan.admin.as_ref()).await?;
                if let Some(store) = &mut self.store {
                    store.restore(self.engine.engine());
                }
                if let Some(node) = &mut self.node {
                    node.open(self.engine.engine()).await?;
                }
                let engine = Arc::new(handover.start(self.engine));
                predecessor_end = Some(predecessor.follow(engine.clone()));
                engine
            }
        };
        print_start(plan, &engine);
        if self.is_json {
            let listeners = engine.listeners();
            let listener = |at: &adit_engine::ListenerInfo| json!({ "route": at.route, "listen": at.addr.to_string() });
            let started = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "listeners": listeners.iter().map(listener).collect::<Vec<_>>(),
                "keys": plan_keys(plan),
                "api": self.admin.as_ref().map(admin::AdminApi::address),
                "warnings": json::warnings_of(plan),
            });
            json::print_event("run", "listening", &started);
        }
        release_start_memory();
        if predecessor_end.is_none() {
            report_start();
        }
        let node = self.node.map(|node| node.follow(&engine, plan));
        let mut sets = self.sets;
        sets.follow(plan, self.table, engine.names());
        let webhooks = match &self.source {
            PlanSource::File(file) if cfg!(feature = "admin") => {
                Some(admin::start_webhooks(plan, file.path(), &engine)?)
            }
            PlanSource::File(_) | PlanSource::Arguments(_) => None,
        };
        let nodes = node.as_ref().zip(webhooks.as_ref());
        let _announced = nodes.map(|(node, hub)| fleet_node::announce_changes(node, hub));
        let mut api = None;
        let mut upgrade_api = None;
        if let Some(admin) = &mut self.admin {
            let control = admin.control();
            let (mut served, requests) = admin.api(engine.clone(), plan).with_upgrade();
            if let Some(file) = self.selections {
                served = served.with_selection_file(file);
            }
            if self.store.is_some() {
                served = served.with_kept_limits();
            }
            if let Some(node) = &node {
                served = fleet_node::with_node(served, node);
            }
            if let Some(webhooks) = &webhooks {
                served = admin::announce_users(served, webhooks);
            }
            upgrade_api = Some((control, requests));
            api = Some(served);
        }
        let export = self.export.start(&engine);
        let store = self.store.map(|store| store.follow(&engine));
        let files = ProcessFiles {
            store,
            fleet: node.clone(),
            webhooks,
        };
        let upgrades =
            UpgradeHost::new(program, upgrade_api, predecessor_end).with_files(files.clone());
        let done = match self.source {
            PlanSource::Arguments(_) => {
                let run = serve_arguments(engine, upgrades, signals);
                serve_with_api(self.admin.zip(api.map(Arc::new)), run).await
            }
            PlanSource::File(file) => {
                let (api, reloads) = api.map(Api::with_reload).unzip();
                let api = api.map(Arc::new);
                let run = ReloadableRun {
                    engine,
                    file: *file,
                    sets,
                    api: api.clone().zip(reloads),
                    upgrades,
                    node: node.clone(),
                };
                serve_with_api(self.admin.zip(api), run.serve(signals)).await
            }
        };
        if let Some(node) = node {
            node.finish().await;
        }
        files.close().await;
        export.finish().await;
        done
    }
}

/// Starts the plan of a command without a file, or continues that of a predecessor. Also returns the host of upgrades to
/// `program`, for [`serve_arguments`].
pub(super) async fn start_arguments(
    plan: &Plan,
    program: Result<PathBuf, String>,
    signals: &mut Signals,
) -> Result<(Arc<Engine>, UpgradeHost), Failure> {
    let predecessor = Predecessor::from_environment().await?;
    let none = Inheritance::default();
    let inherited = predecessor.as_ref().map(|before| &before.inheritance);
    let prepare = Engine::prepare(plan, RuleSetTable::default(), inherited.unwrap_or(&none));
    let prepare = async { Ok(prepare.await?) };
    let prepared = signals.run_until_ended(prepare).await;
    let Some(mut predecessor) = predecessor else {
        let engine = Arc::new(prepared?.start(SharedSockets::default()));
        report_start();
        release_start_memory();
        return Ok((engine, UpgradeHost::new(program, None, None)));
    };
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return Err(predecessor.refuse(why).await),
    };
    let handover = signals.run_until_ended(predecessor.wait_for_start(false));
    let engine = Arc::new(handover.await?.start(prepared));
    let end = predecessor.follow(engine.clone());
    release_start_memory();
    Ok((engine, UpgradeHost::new(program, None, Some(end))))
}

/// Reports the start to the service manager. A successor is reported by its predecessor, whose reports are accepted.
fn report_start() {
    if let Err(why) = notify_service_manager("READY=1") {
        warn!("cannot report to the service manager: {why}");
    }
}

/// Runs `run`, and serves the API, if there is one, until it has ended.
async fn serve_with_api(
    admin: Option<(admin::AdminApi, Arc<Api>)>,
    run: impl Future<Output = CommandResult>,
) -> CommandResult {
    let Some((admin, api)) = admin else {
        return run.await;
    };
    let control = admin.control();
    let mut serving = pin!(admin.serve(api));
    let mut run = pin!(run);
    let done = tokio::select! {
        // A successor has the listener.
        () = &mut serving => return run.await,
        done = &mut run => done,
    };
    if control.has_successor() {
        // The client that has requested the upgrade waits for the response.
        let _ = timeout(LAST_RESPONSE, serving).await;
    }
    done
}

/// Serves the plan of the arguments, which cannot be reloaded.
pub(super) async fn serve_arguments(
    engine: Arc<Engine>,
    mut upgrades: UpgradeHost,
    mut signals: Signals,
) -> CommandResult {
    loop {
        let trigger = tokio::select! {
            request = signals.next_end_or_upgrade() => match request {
                EndRequest::End(patience) => {
                    return drain_engine(&engine, Some(&upgrades), patience, signals).await;
                }
                EndRequest::Upgrade => UpgradeTrigger::default(),
            },
            trigger = upgrades.next_request() => trigger,
        };
        match upgrades.perform(trigger, &engine, &mut signals).await {
            UpgradeOutcome::Replaced(successor) => {
                let drain = adit_config::RunSettings::default().drain;
                return successor.drain(&engine, drain, signals).await;
            }
            UpgradeOutcome::Failed { .. } => {}
            UpgradeOutcome::Ended(request) => {
                let drain = adit_config::RunSettings::default().drain;
                let patience = drain_time(request, drain).unwrap_or(drain);
                return drain_engine(&engine, Some(&upgrades), patience, signals).await;
            }
        }
    }
}

/// Returns the file that the arguments name.
fn plan_file(typed: &args::PlanArgs) -> Option<&Path> {
    if let Some(path) = &typed.config {
        return Some(path);
    }
    match typed.words.as_slice() {
        [word]
            if typed.ends.listener_count() == 0
                && !word.contains("://")
                && Path::new(word).is_file() =>
        {
            Some(Path::new(word))
        }
        _ => None,
    }
}

/// Returns the plan of the arguments: from URLs, from `-L` and `-F` in their order, or from a file.
pub(super) fn plan_from_args(typed: &args::PlanArgs) -> Result<Plan, Failure> {
    if let Some(path) = plan_file(typed) {
        return convert::plan_from_file(path);
    }
    let ends = &typed.ends;
    if ends.listener_count() == 0 {
        if !ends.items().is_empty() {
            return Err(Failure::new(
                FailureCode::Usage,
                "-F adds a hop to a route, which -L starts",
            )
            .with_hint("adit run -L mixed://127.0.0.1:1080 -F ss://…"));
        }
        return Ok(Plan::from_words(&typed.words)?);
    }
    if !typed.words.is_empty() {
        return Err(Failure::new(
            FailureCode::Usage,
            "URLs without -L or -F cannot be combined with -L and -F",
        ));
    }
    let plan = Plan::from_args(ends.items())?;
    check_complete(ends.items(), &plan)?;
    Ok(plan)
}

/// Checks that the plan contains every listener and hop of the command line. If a hop were lost, its
/// traffic would be sent in the clear.
fn check_complete(typed: &[RouteOption], plan: &Plan) -> Result<(), Failure> {
    // A single `direct://` is a chain without hops; it cannot be combined with other hops.
    let is_direct = |url: &str| Endpoint::parse(url).is_ok_and(|url| url.scheme.value == "direct");
    let (mut listeners, mut hops) = (0, 0);
    for item in typed {
        match item {
            RouteOption::Listen(_) => listeners += 1,
            RouteOption::Forward(url) if is_direct(url) => {}
            RouteOption::Forward(_) => hops += 1,
        }
    }
    let has = |count: fn(&Route) -> usize| plan.routes.iter().map(count).sum::<usize>();
    let planned = (has(|r| r.listen.len()), has(|r| r.via.stages.len()));
    if planned == (listeners, hops) {
        return Ok(());
    }
    let what = format!(
        "the command line has {listeners} -L and {hops} -F, but the plan has {} listeners and {} hops",
        planned.0, planned.1
    );
    Err(Failure::new(FailureCode::Usage, what)
        .with_hint("`adit explain` with the same options draws the plan"))
}

/// Prints the warnings of a plan from the command line.
pub(super) fn print_warnings(plan: &Plan) {
    let literal = |w: &Warning| w.kind == WarningKind::LiteralSecret;
    if plan.warnings.iter().any(literal) {
        eprintln!(
            "warning: all users of this machine can read a key on the command line; \
             write `@FILE` or `$NAME` instead"
        );
    }
    print_other_warnings(plan);
}

/// Prints the warnings that are not about secrets on the command line.
pub(super) fn print_other_warnings(plan: &Plan) {
    let others = |w: &&Warning| w.kind != WarningKind::LiteralSecret;
    for warning in plan.warnings.iter().filter(others) {
        eprintln!("{warning}");
    }
}

/// Starts the plan, and prints its listeners and the IDs of its keys.
pub(super) async fn start_engine(plan: &Plan) -> Result<Engine, Failure> {
    let engine = Engine::start(plan).await?;
    print_start(plan, &engine);
    release_start_memory();
    Ok(engine)
}

/// Returns memory to the system that only the start needs: more than half of what a client at rest would have.
fn release_start_memory() {
    memory::release_free_pages();
    if let Err(why) = memory::release_code_pages() {
        debug!("code that only the start needs stays in memory: {why}");
    }
}

fn print_start(plan: &Plan, engine: &Engine) {
    for key in plan_keys(plan) {
        eprintln!("{key}");
    }
    for listening in engine.listeners() {
        eprintln!("listening on {}", listening.addr);
    }
}

/// Serves until SIGTERM, which lets open connections finish for half a minute, or SIGINT, which does not and is the
/// exit code 130.
pub(super) async fn serve_until_signal(
    engine: impl Borrow<Engine>,
    mut signals: Signals,
) -> CommandResult {
    let patience = signals.next_end().await;
    drain_engine(engine.borrow(), None, patience, signals).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_lost_a_hop_does_not_start() {
        let listen = |url: &str| RouteOption::Listen(url.to_owned());
        let forward = |url: &str| RouteOption::Forward(url.to_owned());
        let (a, b) = (listen("mixed://127.0.0.1:0"), listen("mixed://127.0.0.1:1"));
        let hop = forward("socks5://127.0.0.1:2");
        let clear = Plan::from_args(std::slice::from_ref(&a)).unwrap();
        for typed in [vec![a.clone(), hop.clone()], vec![a.clone(), b.clone()]] {
            let why = check_complete(&typed, &clear).unwrap_err();
            assert_eq!(why.code(), FailureCode::Usage);
            check_complete(&typed, &Plan::from_args(&typed).unwrap()).unwrap();
        }
        let direct = [a, forward("Direct://"), b, hop.clone(), hop];
        check_complete(&direct, &Plan::from_args(&direct).unwrap()).unwrap();
    }
}
