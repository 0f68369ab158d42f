//! Servers with a fixed target: `kcptun://`, `tcp+kcp://` and `udp+fec://`.

use adit_cli::{Code, Done, Failure};
use adit_config::{CarrierSettings, Plan, ServerHop};
use adit_engine::probe::{self, ProbeResult};

use super::step::{Chart, State, Step};
use super::words::{self, Site};
use super::{PATIENCE, page};
use crate::args;

/// Returns a plan with the server as its only hop. The plan needs a listener that fits the server's
/// target; it is never opened.
pub(super) fn plan(url: &str) -> Result<Plan, Failure> {
    let with = |listen: &str| Plan::from_words(&[listen.to_owned(), url.to_owned()]);
    let any = with("mixed://127.0.0.1:0");
    let far = |_| with("tcp://127.0.0.1:0").or_else(|_| with("udp://127.0.0.1:0"));
    match any {
        Ok(plan) => Ok(plan),
        Err(why) => far(()).map_err(|_: Vec<_>| why.into()),
    }
}

/// Connects to the remote end and waits for data from its target.
pub(super) async fn examine(chart: &mut Chart, typed: &args::Doctor, hop: &ServerHop) -> Done {
    match &hop.carrier {
        Some(CarrierSettings::Fec(_)) => lane(chart, hop).await,
        _ => tunnel(chart, typed, hop).await,
    }
}

async fn tunnel(chart: &mut Chart, typed: &args::Doctor, hop: &ServerHop) -> Done {
    let way = probe::build_hop_connector(hop).await?;
    let heard = probe::probe_carrier_target(&*way, &hop.server, PATIENCE).await;
    let (what, advice, code) = match heard {
        ProbeResult::Answer { bytes, .. } => {
            let behind = match bytes.len() {
                0 => "its target waits for the client to send first".to_owned(),
                n => format!("its target sent {n} bytes"),
            };
            let what = format!("the server understands our KCP, and {behind}");
            chart.add(Step::new("dialogue", State::Ok, what));
            return match typed.to.clone().map(Site::new) {
                Some(site) => page(chart, hop, &*way, &site).await,
                None => Ok(()),
            };
        }
        ProbeResult::Failed(why) => (
            format!("no session with the server: {}", why.source_error),
            "is it running, does UDP pass on that port, and does it have the same password, `crypt`, \
             `smuxver` and `nocomp`?",
            Code::Network,
        ),
        ProbeResult::Closed => (
            "the server accepts our packets but closes the stream".to_owned(),
            "is the target of the server running, and does it accept connections? If so, compare \
             `smuxver` and `nocomp`",
            Code::Network,
        ),
        ProbeResult::Undecodable | ProbeResult::Silent => (
            "the server does not answer".to_owned(),
            "compare password and `crypt`",
            Code::Key,
        ),
    };
    let step = Step::new("dialogue", State::Failed, what.clone());
    chart.add(step.advice(advice));
    Err(Failure::new(code, what).hint(advice))
}

async fn lane(chart: &mut Chart, hop: &ServerHop) -> Done {
    let query = words::dns_query(0xad17);
    match probe::probe_fec_channel(hop, &query, PATIENCE).await {
        Ok(took) => {
            let what = "the remote end of the FEC channel answers";
            chart.add(Step::new("dialogue", State::Ok, what).took("ms", took));
            Ok(())
        }
        Err(why) => {
            let what = format!("no answer from the remote end: {}", why.source_error);
            let advice = "is it running, does UDP pass on that port, and does it have the same \
                          `key` and `crypt`? With a cipher of kcptun it answers only if its target \
                          does";
            let step = Step::new("dialogue", State::Failed, what.clone());
            chart.add(step.advice(advice));
            Err(Failure::new(Code::Network, what).hint(advice))
        }
    }
}
