//! `adit run`: listeners and chains from URLs or a file.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

use adit_admin::selection_file::SelectionFile;
use adit_cli::{CommandResult, Failure, FailureCode, Signals};
use adit_config::{
    Endpoint, Hop, HopKind, ListenerKind, Plan, Route, RouteOption, SsRole, SsServer, Stage,
    Warning, WarningKind,
};
use adit_engine::Engine;
use adit_shadowsocks::{Edition, Key, Method};

use super::reload::{PlanFile, ReloadableRun, drain_engine};
use super::rule_sets::PlanRuleSets;
use super::{admin, convert};
use crate::{args, logging};

pub(super) fn run_plan(typed: &args::RunArgs) -> CommandResult {
    if let Some(path) = plan_file(&typed.plan) {
        return run_file(typed, PlanFile::read(path)?);
    }
    let plan = plan_from_args(&typed.plan)?;
    print_warnings(&plan);
    adit_cli::block_on(|mut signals| async {
        let (admin, engine) = signals.run_until_ended(begin(typed, &plan)).await?;
        let Some(mut admin) = admin else {
            return serve_until_signal(engine, signals).await;
        };
        let api = Arc::new(admin.api(engine.clone(), &plan));
        tokio::select! {
            () = admin.serve(api) => Ok(()),
            done = serve_until_signal(engine, signals) => done,
        }
    })
}

/// Runs the plan of a file, which can be reloaded.
fn run_file(typed: &args::RunArgs, file: PlanFile) -> CommandResult {
    logging::set_file_level(file.plan.log);
    print_warnings(&file.plan);
    // Without a state folder, selections in groups last until the process ends.
    let state = adit_cli::state_folder(None).ok();
    let selections = state.map(|state| SelectionFile::in_state_folder(&state, file.path()));
    adit_cli::block_on(|mut signals| async {
        let begin = async {
            let admin = admin::AdminApi::open(typed, file.plan.admin.as_ref()).await?;
            let (mut sets, table) = PlanRuleSets::load(&file.plan).await?;
            let earlier = selections.as_ref().map(SelectionFile::read);
            let earlier = earlier.unwrap_or_default();
            let engine = Engine::start_with_selections(&file.plan, table.clone(), earlier).await?;
            print_start(&file.plan, &engine);
            sets.follow(&file.plan, table);
            Ok((admin, sets, Arc::new(engine)))
        };
        let (admin, sets, engine) = signals.run_until_ended(begin).await?;
        let Some(mut admin) = admin else {
            let run = ReloadableRun {
                engine,
                file,
                sets,
                api: None,
            };
            return run.serve(signals).await;
        };
        let (mut api, requests) = admin.api(engine.clone(), &file.plan).with_reload();
        if let Some(selections) = selections.clone() {
            api = api.with_selection_file(selections);
        }
        let api = Arc::new(api);
        let run = ReloadableRun {
            engine,
            file,
            sets,
            api: Some((api.clone(), requests)),
        };
        tokio::select! {
            () = admin.serve(api) => Ok(()),
            done = run.serve(signals) => done,
        }
    })
}

/// Opens the API's listener and starts the plan.
async fn begin(
    typed: &args::RunArgs,
    plan: &Plan,
) -> Result<(Option<admin::AdminApi>, Arc<Engine>), Failure> {
    let admin = admin::AdminApi::open(typed, plan.admin.as_ref()).await?;
    Ok((admin, Arc::new(start_engine(plan).await?)))
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
    Ok(engine)
}

fn print_start(plan: &Plan, engine: &Engine) {
    for line in key_ids(plan) {
        eprintln!("{line}");
    }
    for listening in engine.listeners() {
        eprintln!("listening on {}", listening.addr);
    }
}

/// Returns a line for each key, with its ID, which is the same at both ends.
pub(super) fn key_ids(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for route in &plan.routes {
        for listen in &route.listen {
            if let ListenerKind::Shadowsocks(server) = &listen.kind {
                lines.push(format!("{} on {}", server_key(server), listen.addr));
            }
        }
        for hop in route.via.stages.iter().flat_map(Stage::all_hops) {
            if let Hop::Server(hop) = hop
                && let HopKind::Shadowsocks { method, secret, .. } = &hop.kind
            {
                let id = key_id(*method, secret.expose());
                lines.push(format!("key-id {id}  {method} to {}", hop.server));
            }
        }
    }
    lines
}

/// Returns the method of a server, the ID of its shared key, and the number of its users.
fn server_key(server: &SsServer) -> String {
    let method = server.method;
    let (shared, others) = match &server.role {
        SsRole::Single(secret) => (Some(secret), String::new()),
        SsRole::Users {
            identity, users, ..
        } => (identity.as_ref(), format!(", users: {},", users.len())),
        SsRole::Relay { identity, next } => (
            Some(identity),
            format!(", relay to servers: {},", next.len()),
        ),
    };
    match shared {
        Some(secret) => format!(
            "key-id {}  {method}{others}",
            key_id(method, secret.expose())
        ),
        None => format!("{method}{others}"),
    }
}

/// Returns the ID of a key. Keys that are joined by `:` (SIP023) have IDs joined the same way.
pub(super) fn key_id(method: Method, secret: &str) -> String {
    let one = |secret: &str| {
        Key::parse(method, secret).map_or_else(|_| "????".to_owned(), |key| key.id().to_string())
    };
    if method.edition() == Edition::Aead2022 {
        let ids: Vec<String> = secret.split(':').map(one).collect();
        return ids.join(":");
    }
    one(secret)
}

/// Serves until SIGTERM, which lets open connections finish for half a minute, or SIGINT, which does not and is the
/// exit code 130.
pub(super) async fn serve_until_signal(
    engine: impl Borrow<Engine>,
    mut signals: Signals,
) -> CommandResult {
    let patience = signals.next_end().await;
    drain_engine(engine.borrow(), patience, signals).await
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
