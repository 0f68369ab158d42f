//! `adit doctor URL`: finds out why a server does not work, step by step.
//!
//! Each step is a [`Step`] of the [`Chart`]: look up the name, connect to the server, use its
//! protocol, and send a datagram through it. [`neighbours`] are tried only if the server does not
//! understand the settings of the URL, and nowhere else in the program.

mod far;
mod neighbours;
mod remedy;
mod step;
mod words;

use std::time::Duration;

use adit_cli::{Code, Done, Failure};
use adit_config::{Hop, HopKind, ServerHop, Stage};
use adit_engine::connector::Connector;
use adit_engine::probe::{self, ProbeFinding, ProbeResult};
use adit_shadowsocks::{Edition, KeyChain};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use self::neighbours::understood;
use self::step::{Chart, State, Step};
use self::words::Site;
use super::run;
use crate::args;

/// Time limit of each step.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of connections that measure the round trip.
const ROUND_TRIPS: usize = 3;
/// Number of datagrams to try, and the time to wait for each answer.
const DATAGRAMS: (u32, Duration) = (3, Duration::from_secs(2));
/// Clock difference that may be due to the travel time of a message, in seconds.
const NOISE: u64 = 3;

pub(super) fn doctor(typed: &args::Doctor) -> Done {
    let mut plan = far::plan(&typed.url)?;
    if !typed.json {
        run::warn(&plan);
    }
    let route = plan.routes.pop();
    let stage = route.and_then(|mut route| route.via.stages.pop());
    let Some(Stage::Single(hop @ Hop::Server(_))) = stage else {
        let what = "doctor needs the URL of a server: ss://, ssr://, socks5://, socks4a://, http://, \
                    kcptun:// or udp+fec://";
        return Err(Failure::new(Code::Usage, what));
    };
    adit_cli::block_on(|mut signals| async move {
        // Findings are printed as steps, so the log is silent.
        let examined = examine(typed, &hop).with_subscriber(NoSubscriber::default());
        signals.unless_ended(examined).await
    })
}

async fn examine(typed: &args::Doctor, hop: &Hop) -> Done {
    let Hop::Server(server) = hop else {
        return Ok(());
    };
    let name = server.display_name();
    let mut chart = Chart::new(name, typed.json);
    let done = steps(&mut chart, typed, server, hop.carries_udp()).await;
    chart.close(done.as_ref().err().map_or(0, |why| why.code() as u8));
    done
}

async fn steps(chart: &mut Chart, typed: &args::Doctor, hop: &ServerHop, udp: bool) -> Done {
    match &hop.carrier {
        None => reach(chart, hop).await?,
        Some(_) => {
            let why = "a carrier over UDP only answers peers with the key: see the dialogue";
            chart.add(Step::new("connect", State::Skipped, why));
        }
    }
    if matches!(hop.kind, HopKind::RemoteTarget) {
        return far::examine(chart, typed, hop).await;
    }
    let way = probe::build_hop_connector(hop).await?;
    let site = typed.to.clone().map(Site::new);
    dialogue(chart, typed, hop, &*way, site.as_ref()).await?;
    let carried = match &site {
        Some(site) => page(chart, hop, &*way, site).await,
        None => Ok(()),
    };
    if !udp {
        let why = "this URL or its protocol does not carry datagrams";
        chart.add(Step::new("udp", State::Skipped, why));
        return carried;
    }
    let datagrams = datagram(chart, typed, hop, &*way).await;
    carried.and(datagrams)
}

/// Looks up the name and connects to the server.
async fn reach(chart: &mut Chart, hop: &ServerHop) -> Done {
    let server = &hop.server;
    let network = |what: String, advice: &str| {
        let failure = Failure::new(Code::Network, what.clone()).hint(advice);
        (Step::new("", State::Failed, what).advice(advice), failure)
    };
    let addresses = match probe::resolve_server(server).await {
        Ok((found, took)) => {
            let shown: Vec<String> = found.iter().map(|addr| addr.ip().to_string()).collect();
            let what = format!("{} is {}", server.host, shown.join(", "));
            chart.add(
                Step::new("resolve", State::Ok, what)
                    .took("ms", took)
                    .figure("addresses", shown),
            );
            found
        }
        Err(why) => {
            let what = format!("{} has no address: {why}", server.host);
            let (step, failure) = network(what, "is the name correct, and is this machine online?");
            chart.add(Step {
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
                let (step, failure) = network(what, remedy::unreachable(&why));
                chart.add(Step {
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
        chart.add(Step::new("connect", State::Ok, what).took("round_trip_ms", took));
    }
    Ok(())
}

/// Checks that the server understands the client, and finds the difference if it does not.
async fn dialogue(
    chart: &mut Chart,
    typed: &args::Doctor,
    hop: &ServerHop,
    way: &dyn Connector,
    site: Option<&Site>,
) -> Done {
    let kind = &hop.kind;
    let heard = understood(way, kind, site, PATIENCE).await;
    let name = "dialogue";
    if remedy::is_fine(kind, &heard) {
        let what = format!("the server understands {}", remedy::ours(kind));
        chart.add(Step::new(name, State::Ok, what));
        return match heard {
            ProbeResult::Answer {
                skew: Some(skew), ..
            } => {
                clock(chart, skew, "the server's");
                Ok(())
            }
            _ => Ok(()),
        };
    }
    if let Some(skew) = refused_clock(hop).await {
        let what =
            format!("the server has our key but refuses our clock, which differs by {skew} s");
        let advice = "set the clock of this machine (for example `timedatectl set-ntp true`), or \
                      the server's";
        let step = Step::new("clock", State::Failed, what.clone());
        chart.add(step.advice(advice).figure("skew_s", skew));
        return Err(Failure::new(Code::Clock, what).hint(advice));
    }
    let (what, advice) = remedy::told(kind, &heard, site.is_some());
    chart.add(Step::new(name, State::Failed, what.clone()).advice(advice.clone()));
    let code = match &heard {
        ProbeResult::Failed(why) if remedy::is_network(why) => Code::Network,
        _ => Code::Key,
    };
    let failure = Failure::new(code, what);
    if code == Code::Network {
        return Err(failure.hint(advice));
    }
    match beside(chart, typed, hop, site).await {
        Some(hint) => Err(failure.hint(hint)),
        None => Err(failure.hint(advice)),
    }
}

/// Tries the neighbours. Returns what to write into the URL.
async fn beside(
    chart: &mut Chart,
    typed: &args::Doctor,
    hop: &ServerHop,
    site: Option<&Site>,
) -> Option<String> {
    let name = "settings";
    if hop.carrier.is_some() {
        return None;
    }
    let among = neighbours::around(&hop.kind, usize::from(typed.tries));
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
    let (found, tried) = neighbours::search(hop, &among, site).await;
    let Some(found) = found else {
        let what = format!("the server does not understand any of {tried} other settings");
        let step = Step::new(name, State::Failed, what).advice(remedy::PASSWORD);
        chart.add(step.figure("tried", tried));
        return None;
    };
    let what = format!("the server understands {}", found.shown());
    let advice = format!("write {} into the URL", found.shown());
    let step = Step::new(name, State::Ok, what).advice(advice.clone());
    chart.add(step.figure("tried", tried).figure("found", found.shown()));
    Some(advice)
}

/// Returns the difference of the clocks in seconds, if that is why the server does not answer.
async fn refused_clock(hop: &ServerHop) -> Option<i64> {
    let HopKind::Shadowsocks {
        method,
        secret,
        plugin: None,
        ..
    } = &hop.kind
    else {
        return None;
    };
    if method.edition() != Edition::Aead2022 {
        return None;
    }
    let keys = KeyChain::parse(*method, secret.expose()).ok()?;
    match probe::probe_hop(hop, keys).await {
        ProbeFinding::WrongClock { skew } => Some(skew),
        _ => None,
    }
}

fn clock(chart: &mut Chart, skew: i64, whose: &str) {
    let what = match skew.unsigned_abs() {
        0..=NOISE => format!("ours and {whose} agree"),
        off => format!(
            "ours is {off} s {} {whose}",
            if skew > 0 { "behind" } else { "ahead of" }
        ),
    };
    let step = if skew.unsigned_abs() > remedy::SKEW_WARN {
        let advice = "beyond 30 s, Shadowsocks 2022 refuses us: set one of the clocks";
        Step::new("clock", State::Warning, what).advice(advice)
    } else {
        Step::new("clock", State::Ok, what)
    };
    chart.add(step.figure("skew_s", skew));
}

/// Requests the head of a page through the server.
async fn page(chart: &mut Chart, hop: &ServerHop, way: &dyn Connector, site: &Site) -> Done {
    let target = &site.target;
    let heard = probe::ask_for(way, &hop.kind, &site.question(), PATIENCE).await;
    match heard {
        ProbeResult::Answer { bytes, .. } if bytes.starts_with(b"HTTP/") => {
            let line = String::from_utf8_lossy(&bytes);
            let line = line.lines().next().unwrap_or_default().to_owned();
            let what = format!("{target} answers through the server: {line}");
            chart.add(Step::new("target", State::Ok, what));
            let ours = adit_net::system::unix_now().0;
            if let Some(theirs) = words::date(&bytes) {
                let skew = i64::try_from(theirs).ok().zip(i64::try_from(ours).ok());
                if let Some(skew) = skew.map(|(theirs, ours)| theirs - ours) {
                    clock(chart, skew, &format!("that of {target}"));
                }
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
            let what = format!("{target} does not answer through the server{why}");
            let advice = "can the server reach it? A server refuses private addresses unless its \
                          settings allow them";
            chart.add(Step::new("target", State::Failed, what.clone()).advice(advice));
            Err(Failure::new(Code::Network, what).hint(advice))
        }
    }
}

/// Sends a query to a DNS server through the server.
async fn datagram(
    chart: &mut Chart,
    typed: &args::Doctor,
    hop: &ServerHop,
    way: &dyn Connector,
) -> Done {
    let (tries, patience) = DATAGRAMS;
    let query = words::dns_query(0xad17);
    match probe::probe_datagram(way, &typed.dns, &query, tries, patience).await {
        Ok(took) => {
            let ms = took.as_secs_f64() * 1000.0;
            let what = format!("{} answers through the server in {ms:.1} ms", typed.dns);
            chart.add(Step::new("udp", State::Ok, what).took("ms", took));
            Ok(())
        }
        Err(why) => {
            let what = format!(
                "no datagram comes back from {}: {}",
                typed.dns, why.source_error
            );
            let advice = remedy::no_datagrams(&hop.kind);
            chart.add(Step::new("udp", State::Failed, what.clone()).advice(advice));
            Err(Failure::new(Code::Network, what).hint(advice))
        }
    }
}
