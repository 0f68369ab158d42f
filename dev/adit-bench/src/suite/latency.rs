//! Suite `latency`: small requests alone, beside bulk transfers, and beside other small ones.

use std::time::Duration;

use adit_interop::shadowsocks::BLAKE3_AES_128;
use anyhow::{Context, Result};

use super::Suite;
use super::rounds::{BenchRun, CaseFigures, RoundSpec, RoundTurn};
use super::ssh::FASTEST;
use crate::figures::{MB_PER_SECOND, P50, P99, P99_9, whole_figure};
use crate::load::latency::{self, BackgroundLoad};
use crate::load::origin::{LoadOrigin, OriginService};
use crate::peers::KCPTUN;
use crate::topology::{ProcessRig, Topology};

/// Rate of a paced flow in bytes per second; four of them are 2 Gbit/s.
const PACED_RATE: u64 = 60_000_000;
/// The same for kcptun, whose own pair does not carry more.
const PACED_KCP_RATE: u64 = 5_000_000;

/// The carriers of the echoes, and the rates of the flows beside them.
const ROUTES: [(&str, Topology, u64); 4] = [
    ("SOCKS5", Topology::Relay, PACED_RATE),
    ("Shadowsocks", Topology::Tunnel(BLAKE3_AES_128), PACED_RATE),
    ("SSH -L", Topology::SshForward(FASTEST), PACED_RATE),
    ("KCP", Topology::Kcptun(KCPTUN), PACED_KCP_RATE),
];

/// Returns the loads beside the echoes, with `paced` bytes per second for each paced flow.
fn background_loads(paced: u64) -> [(BackgroundLoad, &'static str); 4] {
    [
        (BackgroundLoad::Idle, "alone"),
        (BackgroundLoad::Flows(4, paced), "beside four paced flows"),
        (BackgroundLoad::Flows(4, 0), "beside four unpaced flows"),
        (BackgroundLoad::Downloads(200), "beside 200 small downloads"),
    ]
}

/// Measures every route with every load beside it.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let able = super::ssh::capable_peers(bench, Suite::Latency);
    for (name, topology, paced) in ROUTES {
        let is_ssh = matches!(topology, Topology::SshForward(_));
        let among = |peer: &crate::peers::InstalledPeer| !is_ssh || able.contains(&peer.name());
        let contest = RoundSpec::new(Suite::Latency, name, topology)
            .among(&among)
            .with_baseline();
        bench.run_rounds(&contest, |turn| measure_route(turn, name, paced));
    }
}

fn measure_route(turn: &RoundTurn<'_>, name: &str, paced: u64) -> Result<CaseFigures> {
    let origin = LoadOrigin::start(OriginService::Streams)?;
    let rig = turn.start_rig(origin.addr())?;
    let mut cases = CaseFigures::new();
    for (beside, shown) in background_loads(paced) {
        let figures = measure_case(turn, &rig, beside).context(shown);
        let figures = figures.map_err(|why| rig.with_last_output(&why))?;
        cases.push((format!("{name}, {shown}"), figures));
    }
    Ok(cases)
}

fn measure_case(
    turn: &RoundTurn<'_>,
    rig: &ProcessRig,
    beside: BackgroundLoad,
) -> Result<crate::figures::Figures> {
    let long = Duration::from_millis(turn.settings.amounts().latency_millis);
    let latency = latency::measure_echoes(rig.route(), beside, long)?;
    let mut figures = Vec::new();
    for (quantity, share) in [(P50, 0.5), (P99, 0.99), (P99_9, 0.999)] {
        figures.push(whole_figure(quantity, latency.quantile(share)?));
    }
    if beside != BackgroundLoad::Idle {
        // A lower rate beside the echoes makes them faster.
        figures.push(whole_figure(MB_PER_SECOND, latency.background_rate / 1e6));
    }
    Ok(figures)
}
