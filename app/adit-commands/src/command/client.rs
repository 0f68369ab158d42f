//! `adit client URL`: a local proxy through a server. Documents of servers are in `subscribe`.

pub(super) mod report;

use std::fmt;
use std::future::pending;
use std::path::Path;
use std::time::Duration;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::{Hop, HopKind, MAX_URL_LEN, Plan, RouteOption, ServerHop, Stage};
use adit_engine::clock_reference;
use adit_engine::probe::{self, ProbeFinding};
use adit_shadowsocks::{Edition, KeyChain, MAX_CLOCK_SKEW, Method};
use adit_wire::Target;
use serde_json::json;
use zeroize::Zeroizing;

use super::doctor::SET_CLOCK;
use super::{run, subscribe};
use crate::profile::ProfileFolder;
use crate::{args, hidden_input, json};

/// Time limit for the answer of a web server with its time.
const CLOCK_PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run_client(typed: &args::ClientArgs) -> CommandResult {
    if let Some(address) = &typed.subscribe {
        return subscribe::run_subscribed_client(typed, address);
    }
    let state = || adit_cli::state_folder(typed.state.as_deref());
    if typed.list {
        return print_profiles(&ProfileFolder::new(&state()?), typed.json.json);
    }
    // The argument parser requires it.
    let written = typed.url.as_deref().unwrap_or_default();
    let (url, is_shown) = match written {
        "-" => {
            let url = hidden_input::read_line("URL of the server (not shown): ", MAX_URL_LEN)?;
            (url, false)
        }
        url if url.contains("://") => (Zeroizing::new(url.to_owned()), true),
        name => {
            let profiles = ProfileFolder::new(&state()?);
            if is_document_file(name, &profiles)? {
                return subscribe::run_client_of_file(typed, Path::new(name));
            }
            (profiles.load(name)?, false)
        }
    };
    if subscribe::is_document_url(&url) {
        save_profile(typed, &url)?;
        return subscribe::run_subscribed_client(typed, &url);
    }
    if typed.select.is_some() || !typed.allow_plugin.is_empty() {
        return Err(Failure::new(
            FailureCode::Usage,
            "--select and --allow-plugin are for subscriptions and files of servers",
        ));
    }
    let plan = client_plan(typed, &url)?;
    if is_shown {
        report::print_warnings(typed, &plan);
    } else if !typed.json.json {
        run::print_other_warnings(&plan);
    }
    save_profile(typed, &url)?;
    let server = keyed_server(&plan);
    adit_cli::block_on(|mut signals| async {
        if typed.check {
            return signals
                .run_until_ended(report::check(typed, server, None))
                .await;
        }
        let engine = signals.run_until_ended(run::start_engine(&plan)).await?;
        report::print_start(typed, &plan, &engine, None);
        let verdict = async {
            if let Some((server, key)) = server {
                // Serving continues with any finding: the server may start later.
                let found = probe_server(server, &key, typed.clock.as_ref()).await;
                report::print_finding(typed, found);
            }
            pending().await
        };
        tokio::select! {
            done = run::serve_until_signal(&engine, signals) => done,
            done = verdict => done,
        }
    })
}

/// Returns true if the argument is a file of servers: a path, or the name of a file that is not a profile.
fn is_document_file(name: &str, profiles: &ProfileFolder) -> Result<bool, Failure> {
    if name.contains(std::path::is_separator) {
        return Ok(true);
    }
    Ok(Path::new(name).is_file() && !profiles.names()?.iter().any(|known| known == name))
}

/// Stores the URL if a name was given.
fn save_profile(typed: &args::ClientArgs, url: &str) -> CommandResult {
    if let Some(name) = &typed.save {
        let state = adit_cli::state_folder(typed.state.as_deref())?;
        let path = ProfileFolder::new(&state).store(name, url)?;
        eprintln!("stored in {}: `adit client {name}` uses it", path.display());
    }
    Ok(())
}

/// Prints the profiles with their servers.
fn print_profiles(folder: &ProfileFolder, is_json: bool) -> CommandResult {
    let mut profiles = Vec::new();
    for name in folder.names()? {
        let url = folder.load(&name)?;
        if let Some(source) = subscribe::document_url(&url) {
            if !is_json {
                println!("{name:<16} subscription {source}");
            }
            profiles.push(json!({ "name": name, "subscription": source.to_string() }));
            continue;
        }
        let hop = [
            RouteOption::Listen("mixed://127.0.0.1:0".to_owned()),
            RouteOption::Forward(url.to_string()),
        ];
        let server = Plan::from_args(&hop).ok();
        let server = server
            .map(|plan| first_server(&plan).map_or_else(String::new, ServerHop::display_name));
        if !is_json {
            let server = server.as_deref().unwrap_or("not a valid URL");
            println!("{name:<16} {server}");
        }
        profiles.push(json!({ "name": name, "server": server }));
    }
    if is_json {
        json::print_result("client", &json!({ "profiles": profiles }));
    }
    Ok(())
}

/// Returns the first server of a plan of one route. In a group it is the selected member, if no others are before it.
fn first_server(plan: &Plan) -> Option<&ServerHop> {
    let stage = plan.routes.first()?.via.stages.first()?;
    let at = match stage {
        Stage::Named(group) => {
            let leads = group.leads.get(group.selected);
            leads.is_none_or(Vec::is_empty).then_some(group.selected)?
        }
        Stage::Single(_) | Stage::Group(_) => 0,
    };
    match stage.hops().get(at)? {
        Hop::Server(hop) => Some(hop),
        _ => None,
    }
}

/// Returns a plan of one route, from the listeners of the arguments to the hop.
pub(super) fn client_plan(typed: &args::ClientArgs, hop: &str) -> Result<Plan, Failure> {
    let listen = typed.listen.iter().cloned().map(RouteOption::Listen);
    let words: Vec<RouteOption> = listen
        .chain([RouteOption::Forward(hop.to_owned())])
        .collect();
    Ok(Plan::from_args(&words)?)
}

/// Returns the server and its keys, if the hop has a key and no plugin.
pub(super) fn keyed_server(plan: &Plan) -> Option<(&ServerHop, KeyChain)> {
    let hop = first_server(plan)?;
    match &hop.kind {
        // Only the engine can connect through a plugin.
        HopKind::Shadowsocks {
            method,
            secret,
            plugin: None,
            ..
        } => {
            let keys = KeyChain::parse(*method, secret.expose()).ok()?;
            (method.edition() != Edition::None).then_some((hop, keys))
        }
        _ => None,
    }
}

/// Checks once whether the server accepts this client.
async fn check_server(
    server: Option<(&ServerHop, KeyChain)>,
    clock: Option<&Target>,
) -> Result<AcceptedClient, Failure> {
    match server {
        Some((server, key)) => probe_server(server, &key, clock).await,
        None => Err(Failure::new(
            FailureCode::Usage,
            "--check needs an ss:// URL without a plugin",
        )),
    }
}

/// A server that accepts this client.
struct AcceptedClient {
    server: Target,
    key_id: String,
    method: Method,
    /// The clock difference in seconds, if the protocol shows it.
    skew: Option<i64>,
}

impl fmt::Display for AcceptedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, id, method) = (&self.server, &self.key_id, self.method);
        write!(f, "ok: {server} accepts us: key-id {id}, {method}")?;
        match self.skew {
            Some(s) if s.abs() > 15 => write!(
                f,
                "; its clock differs from ours by {s:+} s, and beyond 30 s it refuses us"
            ),
            Some(s) => write!(f, ", clocks agree ({s:+} s)"),
            None => Ok(()),
        }
    }
}

/// Probes the server. If it may be the clock, that of `web` is compared.
async fn probe_server(
    hop: &ServerHop,
    keys: &KeyChain,
    web: Option<&Target>,
) -> Result<AcceptedClient, Failure> {
    let server = &hop.server;
    let (method, id) = (keys.method(), keys.user_key().id());
    let (clock, look) = if probe::has_time_stamps(keys) {
        (
            ", or a clock that is off by more than 30 s",
            "; also compare `date -u` on both machines",
        )
    } else {
        ("", "")
    };
    let finding = probe::probe_hop(hop, keys.clone()).await;
    let may_be_clock = probe::has_time_stamps(keys)
        && matches!(finding, ProbeFinding::Silent | ProbeFinding::Closed);
    if may_be_clock && let Some(failure) = clock_failure(server, web).await {
        return Err(failure);
    }
    match finding {
        ProbeFinding::Accepted { skew } => Ok(AcceptedClient {
            server: server.clone(),
            key_id: id.to_string(),
            method,
            skew,
        }),
        ProbeFinding::WrongClock { skew } if skew.unsigned_abs() <= MAX_CLOCK_SKEW => Err(Failure::new(
            FailureCode::Clock,
            format!(
                "{server} holds our key (key-id {id}) but has just started: until it has run for \
                 31 s it refuses clocks that are behind its own, and ours is {skew} s behind"
            ),
        )
        .with_hint("try again in half a minute, and set the clock of this machine")),
        ProbeFinding::WrongClock { skew } => Err(Failure::new(
            FailureCode::Clock,
            format!(
                "{server} holds our key (key-id {id}) but refuses our clock: it is {} s {} the \
                 server's, and 30 s are allowed",
                skew.unsigned_abs(),
                if skew > 0 { "behind" } else { "ahead of" }
            ),
        )
        .with_hint(SET_CLOCK)),
        ProbeFinding::Unreachable(e) if hop.carrier.is_some() => Err(Failure::new(
            FailureCode::Network,
            format!("no session with {server}: {e}"),
        )
        .with_hint(format!(
            "is the server running with the same carrier, does its firewall (or the provider's) \
             allow UDP on that port, and is the key the same? Ours has key-id {id}; with another key \
             it does not answer"
        ))),
        ProbeFinding::Unreachable(e) => Err(Failure::new(
            FailureCode::Network,
            format!("no connection to {server}: {e}"),
        )
        .with_hint(
            "is the server running, are host and port correct, and does its firewall (or the \
             provider's) allow TCP and UDP on that port?",
        )),
        ProbeFinding::Silent => Err(Failure::new(
            FailureCode::Key,
            format!(
                "{server} accepts connections but does not accept us: a wrong key or a wrong \
                 method{clock}"
            ),
        )
        .with_hint(format!(
            "ours is {method} with key-id {id}; `adit server` prints its own. Copy the URL again; \
             it is one line without spaces{look}"
        ))),
        ProbeFinding::Closed => Err(Failure::new(
            FailureCode::Key,
            format!(
                "{server} closed the connection without an answer: a wrong key or method{clock}, or a server that \
                 is not adit (which may work nevertheless)"
            ),
        )
        .with_hint(format!(
            "ours is {method} with key-id {id}; compare method and key with the server's{look}"
        ))),
    }
}

/// Returns the failure of a server that does not answer because of the clock, as far as web servers show: the one that
/// the user names, or one that this process has asked before.
async fn clock_failure(server: &Target, clock: Option<&Target>) -> Option<Failure> {
    if let Some(web) = clock {
        match clock_reference::ask_web_server(web, CLOCK_PATIENCE).await {
            Ok(Some(_)) => {}
            Ok(None) => eprintln!("note: {web} does not report its time"),
            Err(why) => eprintln!("note: no time from {web}: {why}"),
        }
    }
    let offset = clock_reference::last_offset()?;
    let what = match offset.seconds.unsigned_abs() {
        ..=MAX_CLOCK_SKEW => format!(
            "{server} does not accept us, and {offset}: 30 s are allowed, if its own clock is right"
        ),
        _ => format!("{server} does not accept us, because {offset}: 30 s are allowed"),
    };
    Some(Failure::new(FailureCode::Clock, what).with_hint(
        "set the clock of this machine (for example `timedatectl set-ntp true`), and try again",
    ))
}
