//! Suite `latency`: small requests alone, beside bulk transfers, and beside other small ones.

use std::time::Duration;

use adit_interop::shadowsocks::BLAKE3_AES_128;
use anyhow::{Context, Result};

use super::Suite;
use super::ssh::FASTEST;
use super::turn::{Bench, Cases, Contest, Turn};
use crate::figure::{MB, P50, P99, P999, one};
use crate::load::latency::{self, Beside};
use crate::load::origin::{Origin, Service};
use crate::peers::KCPTUN;
use crate::topology::{Rig, Topology};

/// Rate of a paced flow in bytes per second; four of them are 2 Gbit/s.
const PACED: u64 = 60_000_000;
/// The same for kcptun, whose own pair does not carry more.
const PACED_KCP: u64 = 5_000_000;

/// The carriers of the echoes, and the rates of the flows beside them.
const WAYS: [(&str, Topology, u64); 4] = [
    ("SOCKS5", Topology::Relay, PACED),
    ("Shadowsocks", Topology::Tunnel(BLAKE3_AES_128), PACED),
    ("SSH -L", Topology::SshForward(FASTEST), PACED),
    ("KCP", Topology::Kcptun(KCPTUN), PACED_KCP),
];

/// Returns the loads beside the echoes, with `paced` bytes per second for each paced flow.
fn besides(paced: u64) -> [(Beside, &'static str); 4] {
    [
        (Beside::Nothing, "alone"),
        (Beside::Flows(4, paced), "beside four paced flows"),
        (Beside::Flows(4, 0), "beside four unpaced flows"),
        (Beside::Downloads(200), "beside 200 small downloads"),
    ]
}

/// Measures every route with every load beside it.
pub(super) fn run(bench: &mut Bench) {
    let able = super::ssh::able(bench, Suite::Latency);
    for (name, topology, paced) in WAYS {
        let is_ssh = matches!(topology, Topology::SshForward(_));
        let among = |peer: &crate::peers::Peer| !is_ssh || able.contains(&peer.name());
        let contest = Contest::new(Suite::Latency, name, topology)
            .among(&among)
            .with_baseline();
        bench.alternate(&contest, |turn| measure(turn, name, paced));
    }
}

fn measure(turn: &Turn<'_>, name: &str, paced: u64) -> Result<Cases> {
    let origin = Origin::start(Service::Streams)?;
    let rig = turn.start(origin.addr())?;
    let mut cases = Cases::new();
    for (beside, shown) in besides(paced) {
        let figures = one_case(turn, &rig, beside).context(shown);
        let figures = figures.map_err(|why| rig.blame(&why))?;
        cases.push((format!("{name}, {shown}"), figures));
    }
    Ok(cases)
}

fn one_case(turn: &Turn<'_>, rig: &Rig, beside: Beside) -> Result<crate::figure::Figures> {
    let long = Duration::from_millis(turn.settings.amounts().latency_millis);
    let latency = latency::measure(rig.way(), beside, long)?;
    let mut figures = Vec::new();
    for (quantity, share) in [(P50, 0.5), (P99, 0.99), (P999, 0.999)] {
        figures.push(one(quantity, latency.quantile(share)?));
    }
    if beside != Beside::Nothing {
        // A lower rate beside the echoes makes them faster.
        figures.push(one(MB, latency.beside / 1e6));
    }
    Ok(figures)
}
