//! `adit doctor URL`: finds out why an endpoint does not work, step by step. [`subject`] knows each scheme.
//!
//! Each step is a [`CheckResult`] of the [`DoctorReport`]: look up the name, connect to the server, use its
//! protocol, and send a datagram through it. [`settings_variants`] are tried only if the server does not
//! understand the settings of the URL, and nowhere else in the program.

mod clock;
mod hints;
mod local;
mod requests;
mod settings_variants;
mod step;
mod subject;
mod system;
mod tunnel;

use std::time::Duration;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::{Hop, HopKind, Plan, ServerHop, Stage};
use adit_engine::clock_reference::{self, ClockOffset};
use adit_engine::connector::Connector;
use adit_engine::probe::{self, ProbeResult};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

pub(super) use self::clock::SET_CLOCK;
use self::requests::WebTarget;
use self::settings_variants::probe_settings;
use self::step::{CheckResult, CheckState, DoctorReport};
use self::subject::Subject;
use super::run;
use crate::args;

/// Time limit of each step.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of connections that measure the round trip.
const ROUND_TRIPS: usize = 3;
/// Number of datagrams to try, and the time to wait for each answer.
const DATAGRAMS: (u32, Duration) = (3, Duration::from_secs(2));

pub(super) fn run_doctor(typed: &args::DoctorArgs) -> CommandResult {
    let subject = Subject::of_url(&typed.url);
    let (name, work) = match subject {
        Subject::Server => {
            let hop = server_of_url(typed, &typed.url)?;
            (name_of_hop(&hop), Examination::Servers(vec![hop]))
        }
        Subject::MixedProxy => {
            let urls = subject::urls_of_mixed_proxy(&typed.url);
            let hops = urls.iter().map(|url| server_of_url(typed, url));
            let hops: Vec<Hop> = hops.collect::<Result<_, _>>()?;
            let name = hops.first().map(name_of_hop).unwrap_or_default();
            (
                name.replacen("socks5", "mixed", 1),
                Examination::Servers(hops),
            )
        }
        Subject::Forwarder { .. } | Subject::Transparent | Subject::Dns => {
            let plan = tunnel::plan_of_listener(&typed.url)?;
            let listen = plan.routes.first().and_then(|route| route.listen.first());
            let name = listen.map_or_else(String::new, ToString::to_string);
            (name, Examination::Listener(subject, Box::new(plan)))
        }
        Subject::Direct | Subject::Reject => {
            // The URL must be valid, too.
            tunnel::plan_with_server(&typed.url)?;
            let name = typed.url.to_ascii_lowercase();
            (name, Examination::WithoutServer(subject))
        }
    };
    let mut report = DoctorReport::new(name, typed.json.json);
    adit_cli::block_on(|mut signals| async move {
        // DoctorReport are printed as steps, so the log is silent.
        let examined = async {
            let done = examine(&mut report, typed, &work).await;
            report.finish(done.as_ref().err().map_or(0, |why| why.code() as u8));
            done
        };
        let examined = examined.with_subscriber(NoSubscriber::default());
        signals.run_until_ended(examined).await
    })
}

/// The checks of one run.
enum Examination {
    /// The steps of each of these servers.
    Servers(Vec<Hop>),
    /// A listener of this machine.
    Listener(Subject, Box<Plan>),
    /// The network of this machine, or nothing.
    WithoutServer(Subject),
}

async fn examine(
    report: &mut DoctorReport,
    typed: &args::DoctorArgs,
    work: &Examination,
) -> CommandResult {
    match work {
        Examination::Servers(hops) => {
            let mut done = Ok(());
            for hop in hops {
                let Hop::Server(server) = hop else { continue };
                let examined = run_steps(report, typed, server, hop.carries_udp()).await;
                done = done.and(examined);
            }
            done
        }
        Examination::Listener(Subject::Forwarder { tcp, udp }, plan) => {
            local::examine_forwarder(report, plan, *tcp, *udp).await
        }
        Examination::Listener(Subject::Dns, plan) => local::examine_dns(report, plan).await,
        Examination::Listener(_, plan) => local::examine_transparent(report, plan).await,
        Examination::WithoutServer(Subject::Direct) => local::examine_direct(report, typed).await,
        Examination::WithoutServer(_) => {
            local::examine_reject(report);
            Ok(())
        }
    }
}

/// Returns the server that a URL names.
fn server_of_url(typed: &args::DoctorArgs, url: &str) -> Result<Hop, Failure> {
    let mut plan = tunnel::plan_with_server(url)?;
    if !typed.json.json {
        run::print_warnings(&plan);
    }
    let route = plan.routes.pop();
    match route.and_then(|mut route| route.via.stages.pop()) {
        Some(Stage::Single(hop @ Hop::Server(_))) => Ok(hop),
        _ => {
            let what = "doctor needs the URL of an endpoint: `adit help URLS` lists the schemes";
            Err(Failure::new(FailureCode::Usage, what))
        }
    }
}

fn name_of_hop(hop: &Hop) -> String {
    match hop {
        Hop::Server(server) => server.display_name(),
        Hop::Direct | Hop::Reject => String::new(),
    }
}

async fn run_steps(
    report: &mut DoctorReport,
    typed: &args::DoctorArgs,
    hop: &ServerHop,
    udp: bool,
) -> CommandResult {
    match &hop.carrier {
        None => check_reachable(report, hop).await?,
        Some(_) => {
            let why = "a carrier over UDP only answers peers with the key: see the dialogue";
            report.add_step(CheckResult::new("connect", CheckState::Skipped, why));
        }
    }
    if matches!(hop.kind, HopKind::RemoteTarget) {
        return tunnel::examine_tunnel(report, typed, hop).await;
    }
    let way = probe::build_hop_connector(hop).await?;
    let site = typed.to.clone().map(WebTarget::new);
    check_dialogue(report, typed, hop, &*way, site.as_ref()).await?;
    let carried = match &site {
        Some(site) => check_page(report, &hop.kind, &*way, site).await,
        None => Ok(()),
    };
    if !udp {
        let why = "this URL or its protocol does not carry datagrams";
        report.add_step(CheckResult::new("udp", CheckState::Skipped, why));
        return carried;
    }
    let datagrams = check_datagrams(report, typed, &hop.kind, &*way).await;
    carried.and(datagrams)
}

/// Looks up the name and connects to the server.
async fn check_reachable(report: &mut DoctorReport, hop: &ServerHop) -> CommandResult {
    let server = &hop.server;
    let network = |what: String, advice: &str| {
        let failure = Failure::new(FailureCode::Network, what.clone()).with_hint(advice);
        (
            CheckResult::new("", CheckState::Failed, what).with_advice(advice),
            failure,
        )
    };
    let addresses = match probe::resolve_server(server).await {
        Ok((found, took)) => {
            let shown: Vec<String> = found.iter().map(|addr| addr.ip().to_string()).collect();
            let what = format!("{} is {}", server.host, shown.join(", "));
            report.add_step(
                CheckResult::new("resolve", CheckState::Ok, what)
                    .with_duration("ms", took)
                    .with_figure("addresses", shown),
            );
            found
        }
        Err(why) => {
            let what = format!("{} has no address: {why}", server.host);
            let (step, failure) = network(what, "is the name correct, and is this machine online?");
            report.add_step(CheckResult {
                name: "resolve",
                ..step
            });
            return Err(failure);
        }
    };
    let mut best: Option<(std::net::SocketAddr, Duration)> = None;
    let mut worst = Duration::ZERO;
    for _ in 0..ROUND_TRIPS {
        match probe::connect_first(&addresses, PATIENCE).await {
            Ok((at, took)) => {
                worst = worst.max(took);
                best = match best {
                    Some(best) if best.1 <= took => Some(best),
                    _ => Some((at, took)),
                };
            }
            Err(why) => {
                let what = format!("no connection to {server}: {why}");
                let (step, failure) = network(what, hints::connect_hint(&why));
                report.add_step(CheckResult {
                    name: "connect",
                    ..step
                });
                return Err(failure);
            }
        }
    }
    if let Some((at, took)) = best {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let what = format!(
            "{at} accepts connections; round trip {:.1} ms, at most {:.1} ms",
            ms(took),
            ms(worst)
        );
        report.add_step(
            CheckResult::new("connect", CheckState::Ok, what).with_duration("roundTripMs", took),
        );
    }
    Ok(())
}

/// Checks that the server understands the client, and finds the difference if it does not.
async fn check_dialogue(
    report: &mut DoctorReport,
    typed: &args::DoctorArgs,
    hop: &ServerHop,
    way: &dyn Connector,
    site: Option<&WebTarget>,
) -> CommandResult {
    let kind = &hop.kind;
    let heard = probe_settings(way, kind, site, PATIENCE).await;
    let name = "dialogue";
    if hints::is_understood(kind, &heard) {
        let what = format!("the server understands {}", hints::describe_settings(kind));
        report.add_step(CheckResult::new(name, CheckState::Ok, what));
        return match heard {
            ProbeResult::Answer {
                skew: Some(skew), ..
            } => {
                clock::add_step(report, skew, "the server's");
                Ok(())
            }
            _ => Ok(()),
        };
    }
    clock::check_refusal(report, hop).await?;
    if let Some(server) = &typed.clock {
        clock::compare_with_web_server(report, kind, server).await?;
    }
    let (what, advice) = hints::explain_finding(kind, &heard, site.is_some());
    report.add_step(
        CheckResult::new(name, CheckState::Failed, what.clone()).with_advice(advice.clone()),
    );
    let code = match &heard {
        ProbeResult::Failed(why) if hints::is_network_failure(why) => FailureCode::Network,
        _ => FailureCode::Key,
    };
    let failure = Failure::new(code, what);
    if code == FailureCode::Network {
        return Err(failure.with_hint(advice));
    }
    match try_variants(report, typed, hop, site).await {
        Some(hint) => Err(failure.with_hint(hint)),
        None => Err(failure.with_hint(advice)),
    }
}

/// Tries variants of the settings. Returns what to write into the URL.
async fn try_variants(
    report: &mut DoctorReport,
    typed: &args::DoctorArgs,
    hop: &ServerHop,
    site: Option<&WebTarget>,
) -> Option<String> {
    let name = "settings";
    if hop.carrier.is_some() {
        return None;
    }
    let among = settings_variants::variants_of(&hop.kind, usize::from(typed.tries));
    if among.is_empty() {
        return None;
    }
    eprintln!(
        "warning: trying up to {} other settings with the same password. Each try is a connection to \
         {} that the network can observe, and the server may count them; Ctrl-C stops this, \
         `--tries 0` turns it off",
        among.len(),
        hop.server
    );
    let (found, tried) = settings_variants::find_understood(hop, &among, site).await;
    let Some(found) = found else {
        let what = format!("the server does not understand any of {tried} other settings");
        let step =
            CheckResult::new(name, CheckState::Failed, what).with_advice(hints::REMAINING_CAUSES);
        report.add_step(step.with_figure("tried", tried));
        return None;
    };
    let what = format!("the server understands {}", found.describe());
    let advice = format!("write {} into the URL", found.describe());
    let step = CheckResult::new(name, CheckState::Ok, what).with_advice(advice.clone());
    report.add_step(
        step.with_figure("tried", tried)
            .with_figure("found", found.describe()),
    );
    Some(advice)
}

/// Requests the head of a page through the server.
async fn check_page(
    report: &mut DoctorReport,
    kind: &HopKind,
    way: &dyn Connector,
    site: &WebTarget,
) -> CommandResult {
    let target = &site.target;
    let heard = probe::ask_for(way, kind, &site.probe_request(), PATIENCE).await;
    match heard {
        ProbeResult::Answer { bytes, .. } if bytes.starts_with(b"HTTP/") => {
            let line = String::from_utf8_lossy(&bytes);
            let line = line.lines().next().unwrap_or_default().to_owned();
            let what = format!("{target} answers{}: {line}", through(kind));
            report.add_step(CheckResult::new("target", CheckState::Ok, what));
            if let Some(date) = clock_reference::parse_date_header(&bytes) {
                let offset = ClockOffset::from_date(target, date);
                clock::add_step(report, offset.seconds, &format!("that of {target}"));
            }
            Ok(())
        }
        other => {
            let why = match other {
                ProbeResult::Failed(why) => format!(": {why}"),
                ProbeResult::Answer { bytes, .. } if !bytes.is_empty() => {
                    ": it does not use HTTP".to_owned()
                }
                ProbeResult::Closed => ": the connection is closed".to_owned(),
                _ => String::new(),
            };
            let what = match kind {
                HopKind::RemoteTarget => format!("{target} does not answer{why}"),
                _ => format!("{target} does not answer through the server{why}"),
            };
            let advice = "can the server reach it? A server refuses private addresses unless its \
                          settings allow them";
            report.add_step(
                CheckResult::new("target", CheckState::Failed, what.clone()).with_advice(advice),
            );
            Err(Failure::new(FailureCode::Network, what).with_hint(advice))
        }
    }
}

/// Returns the words for the path of a request: a carrier's remote end is not a server that adit chose.
const fn through(kind: &HopKind) -> &'static str {
    match kind {
        HopKind::RemoteTarget => "",
        _ => " through the server",
    }
}

/// Sends a query to a DNS server through the server.
async fn check_datagrams(
    report: &mut DoctorReport,
    typed: &args::DoctorArgs,
    kind: &HopKind,
    way: &dyn Connector,
) -> CommandResult {
    let (tries, patience) = DATAGRAMS;
    let query = requests::dns_query(0xad17);
    match probe::probe_datagram(way, &typed.dns, &query, tries, patience).await {
        Ok(took) => {
            let ms = took.as_secs_f64() * 1000.0;
            let what = format!("{} answers{} in {ms:.1} ms", typed.dns, through(kind));
            report
                .add_step(CheckResult::new("udp", CheckState::Ok, what).with_duration("ms", took));
            Ok(())
        }
        Err(why) => {
            let what = format!(
                "no datagram comes back from {}: {}",
                typed.dns, why.source_error
            );
            let advice = hints::datagram_hint(kind);
            report.add_step(
                CheckResult::new("udp", CheckState::Failed, what.clone()).with_advice(advice),
            );
            Err(Failure::new(FailureCode::Network, what).with_hint(advice))
        }
    }
}
