//! Servers with a fixed target: `kcptun://`, `tcp+kcp://` and `udp+fec://`.

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::{CarrierSettings, Plan, ServerHop};
use adit_engine::probe::{self, ProbeResult};

use super::requests::{self, WebTarget};
use super::step::{CheckResult, CheckState, DoctorReport};
use super::{PATIENCE, check_page};
use crate::args;

/// Returns a plan with the server as its only hop. The plan needs a listener that fits the server's
/// target; it is never opened.
pub(super) fn plan_with_server(url: &str) -> Result<Plan, Failure> {
    let with = |listen: &str| Plan::from_words(&[listen.to_owned(), url.to_owned()]);
    let any = with("mixed://127.0.0.1:0");
    let far = |_| with("tcp://127.0.0.1:0").or_else(|_| with("udp://127.0.0.1:0"));
    match any {
        Ok(plan) => Ok(plan),
        Err(why) => far(()).map_err(|_: Vec<_>| why.into()),
    }
}

/// Returns a plan with the listener as its only endpoint. One without a target needs a chain, whose server is never
/// connected to.
pub(super) fn plan_of_listener(url: &str) -> Result<Plan, Failure> {
    let alone = Plan::from_words(&[url.to_owned()]);
    let chained = || {
        let hops = ["tcp+kcp://127.0.0.1:9?key=x", "udp+fec://127.0.0.1:9?key=x"];
        let plans = hops.map(|hop| Plan::from_words(&[url.to_owned(), hop.to_owned()]));
        plans.into_iter().find_map(Result::ok)
    };
    match alone {
        Ok(plan) => Ok(plan),
        Err(why) => chained().ok_or_else(|| why.into()),
    }
}

/// Connects to the remote end and waits for data from its target.
pub(super) async fn examine_tunnel(
    report: &mut DoctorReport,
    typed: &args::DoctorArgs,
    hop: &ServerHop,
) -> CommandResult {
    match &hop.carrier {
        Some(CarrierSettings::Fec(_)) => check_fec_channel(report, hop).await,
        _ => check_kcp_tunnel(report, typed, hop).await,
    }
}

async fn check_kcp_tunnel(
    report: &mut DoctorReport,
    typed: &args::DoctorArgs,
    hop: &ServerHop,
) -> CommandResult {
    let way = probe::build_hop_connector(hop).await?;
    let heard = probe::probe_carrier_target(&*way, &hop.server, PATIENCE).await;
    let (what, advice, code) = match heard {
        ProbeResult::Answer { bytes, .. } => {
            let behind = match bytes.len() {
                0 => "its target waits for the client to send first".to_owned(),
                n => format!("its target sent {n} bytes"),
            };
            let what = format!("the server understands our KCP, and {behind}");
            report.add_step(CheckResult::new("dialogue", CheckState::Ok, what));
            return match typed.to.clone().map(WebTarget::new) {
                Some(site) => check_page(report, &hop.kind, &*way, &site).await,
                None => Ok(()),
            };
        }
        ProbeResult::Failed(why) => (
            format!("no session with the server: {}", why.source_error),
            "is it running, does UDP pass on that port, and does it have the same password, `crypt`, \
             `smuxver` and `nocomp`?",
            FailureCode::Network,
        ),
        ProbeResult::Closed => (
            "the server accepts our packets but closes the stream".to_owned(),
            "is the target of the server running, and does it accept connections? If so, compare \
             `smuxver` and `nocomp`",
            FailureCode::Network,
        ),
        ProbeResult::Undecodable | ProbeResult::Silent => (
            "the server does not answer".to_owned(),
            "compare password and `crypt`",
            FailureCode::Key,
        ),
    };
    let step = CheckResult::new("dialogue", CheckState::Failed, what.clone());
    report.add_step(step.with_advice(advice));
    Err(Failure::new(code, what).with_hint(advice))
}

async fn check_fec_channel(report: &mut DoctorReport, hop: &ServerHop) -> CommandResult {
    let query = requests::dns_query(0xad17);
    match probe::probe_fec_channel(hop, &query, PATIENCE).await {
        Ok(took) => {
            let what = "the remote end of the FEC channel answers";
            report.add_step(
                CheckResult::new("dialogue", CheckState::Ok, what).with_duration("ms", took),
            );
            Ok(())
        }
        Err(why) => {
            let what = format!("no answer from the remote end: {}", why.source_error);
            let advice = "is it running, does UDP pass on that port, and does it have the same \
                          `key` and `crypt`? With a cipher of kcptun it answers only if its target \
                          does";
            let step = CheckResult::new("dialogue", CheckState::Failed, what.clone());
            report.add_step(step.with_advice(advice));
            Err(Failure::new(FailureCode::Network, what).with_hint(advice))
        }
    }
}
