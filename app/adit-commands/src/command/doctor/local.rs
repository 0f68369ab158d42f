//! Endpoints without a server: listeners of this machine, its network, and `reject://`.

use std::env::consts::ARCH;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::{HopKind, ListenerKind, Plan};
use adit_crypto::packet::session::SessionCipher;
use adit_dns::{RecordType, UpstreamQuery};
use adit_engine::probe;
use adit_wire::{Host, Target};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::requests::WebTarget;
use super::step::{CheckResult, CheckState, DoctorReport};
use super::{PATIENCE, check_datagrams, check_page, hints, system};
use crate::args;

/// The number of the only query of a socket.
const QUERY_ID: u16 = 1;

/// Checks a port that forwards, and its target.
pub(super) async fn examine_forwarder(
    report: &mut DoctorReport,
    plan: &Plan,
    tcp: bool,
    udp: bool,
) -> CommandResult {
    let Some(listen) = plan.routes.first().and_then(|route| route.listen.first()) else {
        return Ok(());
    };
    let target = match &listen.kind {
        ListenerKind::Forward(forward) => forward.target.clone(),
        _ => None,
    };
    check_port(report, &address_of(plan), tcp).await?;
    let Some(target) = target else {
        let why = "the remote end of the chain has the target";
        report.add_step(CheckResult::new("target", CheckState::Skipped, why));
        return Ok(());
    };
    if !tcp && udp {
        let why = format!("{target} is reached by UDP, which has no answer of its own");
        report.add_step(CheckResult::new("target", CheckState::Skipped, why));
        return Ok(());
    }
    check_target(report, &target).await
}

/// Checks a port for redirected traffic.
pub(super) async fn examine_transparent(report: &mut DoctorReport, plan: &Plan) -> CommandResult {
    check_port(report, &address_of(plan), true).await?;
    let why = "the rules of the firewall are not visible from here";
    let advice = "`nft list ruleset` or `iptables-save` shows which traffic is redirected";
    report.add_step(CheckResult::new("firewall", CheckState::Skipped, why).with_advice(advice));
    Ok(())
}

/// Checks a DNS server of this machine.
pub(super) async fn examine_dns(report: &mut DoctorReport, plan: &Plan) -> CommandResult {
    let listen = plan.routes.first().and_then(|route| route.listen.first());
    let Some(ListenerKind::Dns(server)) = listen.map(|listen| &listen.kind) else {
        return Ok(());
    };
    let at = address_of(plan);
    if server.tcp {
        check_port(report, &at, true).await?;
    }
    if !server.udp {
        let why = "the listener has no UDP";
        report.add_step(CheckResult::new("query", CheckState::Skipped, why));
        return Ok(());
    }
    let begun = Instant::now();
    match timeout(PATIENCE, query_localhost(&at)).await {
        Ok(Ok(())) => {
            let what = format!("{at} answers a query for `localhost`");
            let step = CheckResult::new("query", CheckState::Ok, what);
            report.add_step(step.with_duration("ms", begun.elapsed()));
            let why = "names of other machines need the servers of the route's `dns`";
            let advice = "`dig @ADDRESS -p PORT example.com` looks one up";
            report.add_step(
                CheckResult::new("servers", CheckState::Skipped, why).with_advice(advice),
            );
            Ok(())
        }
        failed => {
            let why = match failed {
                Ok(Err(why)) => why.to_string(),
                _ => "no answer".to_owned(),
            };
            let what = format!("{at} does not answer a query: {why}");
            let advice = "start it with `adit run`; it is a listener of this machine";
            report.add_step(
                CheckResult::new("query", CheckState::Failed, &*what).with_advice(advice),
            );
            Err(Failure::new(FailureCode::Network, what).with_hint(advice))
        }
    }
}

/// Sends a query for `localhost`, which a DNS listener answers without other servers, and waits for the answer.
async fn query_localhost(at: &Target) -> io::Result<()> {
    let (addresses, _) = probe::resolve_server(at).await?;
    let to = addresses.first().ok_or(io::ErrorKind::HostUnreachable)?;
    let local: SocketAddr = match to.is_ipv4() {
        true => ([0; 4], 0).into(),
        false => ([0u16; 8], 0).into(),
    };
    let query = UpstreamQuery::new("localhost", RecordType::A, QUERY_ID);
    let query = query.map_err(io::Error::other)?;
    let socket = UdpSocket::bind(local).await?;
    socket.connect(to).await?;
    socket.send(&query.to_bytes()).await?;
    let mut reply = [0; 512];
    let len = socket.recv(&mut reply).await?;
    let reply = reply.get(..len).unwrap_or_default();
    query
        .check_answer(reply)
        .map(drop)
        .map_err(io::Error::other)
}

/// Checks the network of this machine.
pub(super) async fn examine_direct(
    report: &mut DoctorReport,
    typed: &args::DoctorArgs,
) -> CommandResult {
    report.add_step(check_processor());
    system::examine_system(report);
    let way = probe::direct_connector();
    let kind = HopKind::RemoteTarget;
    let page = match typed.to.clone().map(WebTarget::new) {
        Some(site) => check_page(report, &kind, &*way, &site).await,
        None => {
            let why = "`--to HOST:PORT` names a web server to connect to";
            report.add_step(CheckResult::new("target", CheckState::Skipped, why));
            Ok(())
        }
    };
    let datagrams = check_datagrams(report, typed, &kind, &*way).await;
    page.and(datagrams)
}

/// Reports the instructions of this machine's processor that are in use.
fn check_processor() -> CheckResult {
    let has_aes = SessionCipher::preferred() == SessionCipher::Aes128Gcm;
    let ciphers = adit_crypto::cpu_level().name();
    let aes = match has_aes {
        true => "instructions for AES and GCM",
        false => "no instructions for AES and GCM",
    };
    let mut what = format!("{ARCH}, {aes}; ciphers: {ciphers}");
    if let Some(correction) = correction_level() {
        what.push_str(", error correction: ");
        what.push_str(correction);
    }
    let mut step = CheckResult::new("cpu", CheckState::Ok, what)
        .with_figure("arch", ARCH)
        .with_figure("aes", has_aes)
        .with_figure("ciphers", ciphers);
    if let Some(correction) = correction_level() {
        step = step.with_figure("fec", correction);
    }
    match has_aes {
        true => step,
        false => step.with_advice("`2022-blake3-chacha20-poly1305` is faster here than AES"),
    }
}

/// Returns the instructions that error correction uses; `None` if this build has no such codes.
#[cfg(feature = "kcp")]
fn correction_level() -> Option<&'static str> {
    Some(adit_fec::effective_level().name())
}

#[cfg(not(feature = "kcp"))]
const fn correction_level() -> Option<&'static str> {
    None
}

/// Reports that there is nothing to check.
pub(super) fn examine_reject(report: &mut DoctorReport) {
    let why = "reject:// refuses every request, so nothing is connected";
    report.add_step(CheckResult::new("dialogue", CheckState::Skipped, why));
}

/// Returns the address of the plan's listener, as this machine reaches it.
fn address_of(plan: &Plan) -> Target {
    let listen = plan.routes.first().and_then(|route| route.listen.first());
    let loopback = || Host::Ip(std::net::Ipv4Addr::LOCALHOST.into());
    let host = listen.and_then(|listen| listen.addr.host.clone());
    let host = match host {
        Some(Host::Ip(ip)) if ip.is_unspecified() => loopback(),
        Some(host) => host,
        None => loopback(),
    };
    let port = listen.map_or(0, |listen| listen.addr.port);
    Target { host, port }
}

/// Checks that a listener runs.
async fn check_port(report: &mut DoctorReport, at: &Target, tcp: bool) -> CommandResult {
    if !tcp {
        let why = format!("nothing shows whether the UDP port {at} is open");
        report.add_step(CheckResult::new("connect", CheckState::Skipped, why));
        return Ok(());
    }
    let advice = "start it with `adit run URL`; it is a listener of this machine";
    connect(report, "connect", at, advice).await
}

/// Checks that the target accepts connections from this machine.
async fn check_target(report: &mut DoctorReport, target: &Target) -> CommandResult {
    let advice =
        "is the target running? Behind a chain, its last server connects to it: check that server";
    connect(report, "target", target, advice).await
}

/// Looks up an address and connects to it.
async fn connect(
    report: &mut DoctorReport,
    name: &'static str,
    to: &Target,
    advice: &str,
) -> CommandResult {
    let connected = async {
        let (addresses, _) = probe::resolve_server(to).await?;
        probe::connect_first(&addresses, PATIENCE).await
    };
    let begun = Instant::now();
    match connected.await {
        Ok((at, _)) => {
            let what = format!("{at} accepts connections");
            let step = CheckResult::new(name, CheckState::Ok, what);
            report.add_step(step.with_duration("ms", begun.elapsed()));
            Ok(())
        }
        Err(why) => {
            let what = format!("no connection to {to}: {why}");
            let advice = match why.kind() {
                io::ErrorKind::ConnectionRefused => advice,
                _ => hints::connect_hint(&why),
            };
            let step = CheckResult::new(name, CheckState::Failed, what.clone());
            report.add_step(step.with_advice(advice));
            Err(Failure::new(FailureCode::Network, what).with_hint(advice))
        }
    }
}
