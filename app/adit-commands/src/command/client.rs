//! `adit client URL`: one command at home. What `--subscribe` does is in `subscribe`.

use std::future::pending;

use adit_cli::{Code, Done, Failure};
use adit_config::{Hop, HopKind, Plan, RouteOption, ServerHop};
use adit_engine::probe::{self, ProbeFinding};
use adit_shadowsocks::{Edition, KeyChain};

use super::{run, subscribe};
use crate::args;

pub(super) fn client(typed: &args::Client) -> Done {
    if let Some(address) = &typed.subscribe {
        return subscribe::client(typed, address);
    }
    // One of the two is there, or the arguments were refused.
    let plan = plan(typed, typed.url.as_deref().unwrap_or_default())?;
    run::warn(&plan);
    let server = keyed(&plan);
    adit_cli::block_on(|mut signals| async {
        if typed.check {
            return signals.unless_ended(check(server)).await;
        }
        let engine = signals.unless_ended(run::start(&plan)).await?;
        let verdict = async {
            if let Some((server, key)) = server {
                // Serving goes on whatever comes out: the server may only be late.
                if let Err(failure) = verdict(server, &key).await {
                    let _ = failure.report();
                }
            }
            pending().await
        };
        tokio::select! {
            done = run::until_told(&engine, signals) => done,
            done = verdict => done,
        }
    })
}

/// The listeners that were asked for, one route, and where it leads.
pub(super) fn plan(typed: &args::Client, hop: &str) -> Result<Plan, Failure> {
    let listen = typed.listen.iter().cloned().map(RouteOption::Listen);
    let words: Vec<RouteOption> = listen
        .chain([RouteOption::Forward(hop.to_owned())])
        .collect();
    Ok(Plan::from_args(&words)?)
}

/// The server and the key, if the hop is a keyed one.
pub(super) fn keyed(plan: &Plan) -> Option<(&ServerHop, KeyChain)> {
    let Hop::Server(hop) = plan.routes.first()?.via.stages.first()?.hops().first()? else {
        return None;
    };
    match &hop.kind {
        // The way through a plugin is the engine's alone.
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

/// Only finds out.
pub(super) async fn check(server: Option<(&ServerHop, KeyChain)>) -> Done {
    match server {
        Some((server, key)) => verdict(server, &key).await,
        None => Err(Failure::new(
            Code::Usage,
            "--check needs an ss:// URL without a plugin",
        )),
    }
}

/// Asks the server and says in words what came out.
async fn verdict(hop: &ServerHop, keys: &KeyChain) -> Done {
    let server = &hop.server;
    let (method, id) = (keys.method(), keys.user_key().id());
    let (clock, look) = if probe::has_time_stamps(keys) {
        (
            ", or a clock that is off by more than 30 s",
            "; and compare what `date -u` says on both machines",
        )
    } else {
        ("", "")
    };
    match probe::probe_hop(hop, keys.clone()).await {
        ProbeFinding::Accepted { skew } => {
            let clock = match skew {
                Some(s) if s.abs() > 15 => {
                    format!("; its clock differs from ours by {s:+} s, beyond 30 s it will refuse us")
                }
                Some(s) => format!(", clocks agree ({s:+} s)"),
                None => String::new(),
            };
            eprintln!("ok: {server} accepts us: key-id {id}, {method}{clock}");
            Ok(())
        }
        ProbeFinding::WrongClock { skew } if skew.abs() <= 30 => Err(Failure::new(
            Code::Clock,
            format!(
                "{server} holds our key (key-id {id}) but has just started: until it has run for \
                 31 s it refuses clocks that are behind its own, and ours is {skew} s behind"
            ),
        )
        .hint("try again in half a minute, and set the clock of this machine")),
        ProbeFinding::WrongClock { skew } => Err(Failure::new(
            Code::Clock,
            format!(
                "{server} holds our key (key-id {id}) but refuses our clock: it is {} s {} the \
                 server's, and 30 s are allowed",
                skew.unsigned_abs(),
                if skew > 0 { "behind" } else { "ahead of" }
            ),
        )
        .hint("set the clock of this machine (for example `timedatectl set-ntp true`), or the server's")),
        ProbeFinding::Unreachable(e) if hop.carrier.is_some() => Err(Failure::new(
            Code::Network,
            format!("no session with {server}: {e}"),
        )
        .hint(format!(
            "is the server running with the same carrier, does its firewall (or the provider's) \
             let UDP on that port in, and is the key the same? Ours has key-id {id}; to another one \
             it says nothing"
        ))),
        ProbeFinding::Unreachable(e) => Err(Failure::new(
            Code::Network,
            format!("no connection to {server}: {e}"),
        )
        .hint(
            "is the server running, are host and port right, and does its firewall (or the \
             provider's) let TCP and UDP on that port in?",
        )),
        ProbeFinding::Silent => Err(Failure::new(
            Code::Key,
            format!(
                "{server} takes connections but does not accept us: a wrong key or a wrong \
                 method{clock}"
            ),
        )
        .hint(format!(
            "ours is {method} with key-id {id}; `adit server` prints its own. Copy the URL again; \
             it is one line without blanks{look}"
        ))),
        ProbeFinding::Closed => Err(Failure::new(
            Code::Key,
            format!(
                "{server} closed without an answer: a wrong key or method{clock}, or a server that \
                 is not adit (then it may still work)"
            ),
        )
        .hint(format!(
            "ours is {method} with key-id {id}; compare method and key with the server's{look}"
        ))),
    }
}
