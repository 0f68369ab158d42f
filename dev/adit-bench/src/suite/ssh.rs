//! Suite `ssh`: the cost of programs, forwarded ports and SOCKS over SSH, and of the MACs alone.

mod exec;
mod far_server;
mod macs;

use super::rounds::{BenchRun, RoundSpec};
use super::{Suite, transfer};
use crate::peers::InstalledPeer;
use crate::peers::ssh_common;
use crate::topology::Topology;

/// The suite that should be the cheapest.
pub(super) const FASTEST: ssh_common::SshSuite = ssh_common::SshSuite {
    cipher: "aes128-gcm@openssh.com",
    mac: None,
};

/// The measured suites, the one that should be the cheapest first.
const SUITES: [ssh_common::SshSuite; 4] = [
    FASTEST,
    ssh_common::SshSuite {
        cipher: "aes128-ctr",
        mac: Some("umac-64-etm@openssh.com"),
    },
    ssh_common::SshSuite {
        cipher: "chacha20-poly1305@openssh.com",
        mac: None,
    },
    ssh_common::SshSuite {
        cipher: "aes128-ctr",
        mac: Some("hmac-sha2-256-etm@openssh.com"),
    },
];

/// Measures every suite for each use, and SOCKS with the first suite.
pub(super) fn run_suite(bench: &mut BenchRun) {
    macs::run_macs(bench);
    let able = capable_peers(bench, Suite::Ssh);
    let among = |peer: &InstalledPeer| able.contains(&peer.name());
    let suites = if bench.settings.smoke {
        &SUITES[..1]
    } else {
        &SUITES[..]
    };
    far_server::run_far(bench, &able);
    for (n, &suite) in suites.iter().enumerate() {
        let name = suite.name();
        let program = format!("{name}, a program");
        let topology = Topology::SshServer(suite);
        let contest = RoundSpec::new(Suite::Ssh, &program, topology)
            .among(&among)
            .without_syscalls();
        bench.run_rounds(&contest, |turn| exec::measure_both(turn, suite, &program));
        let forward = format!("{name}, -L");
        let topology = Topology::SshForward(suite);
        let contest = RoundSpec::new(Suite::Ssh, &forward, topology).among(&among);
        bench.run_rounds(&contest, |turn| {
            transfer::measure_transfers(turn, 1, &forward)
        });
        if n == 0 {
            let dynamic = format!("{name}, -D");
            let topology = Topology::SshDynamic(suite);
            let contest = RoundSpec::new(Suite::Ssh, &dynamic, topology).among(&among);
            bench.run_rounds(&contest, |turn| {
                transfer::measure_transfers(turn, 1, &dynamic)
            });
        }
    }
}

/// Returns the names of the implementations that have both ends. An adit without these commands is
/// not a failure, but is reported.
pub(super) fn capable_peers(bench: &mut BenchRun, suite: Suite) -> Vec<&'static str> {
    let has = |peer: &InstalledPeer| {
        peer.name() != "adit" || (peer.has_command("ssh") && peer.has_command("sshd"))
    };
    let topology = Topology::SshServer(SUITES[0]);
    let fit = bench
        .peers
        .iter()
        .filter(|peer| topology.is_supported_by(peer));
    let (able, without): (Vec<&InstalledPeer>, Vec<&InstalledPeer>) =
        fit.partition(|peer| has(peer));
    for peer in without {
        eprintln!("ssh: {} has no `ssh` and `sshd`", peer.name());
        let why = "it has no commands `ssh` and `sshd`";
        bench.journal.record_skipped(suite, "SSH", peer.name(), why);
    }
    able.into_iter().map(InstalledPeer::name).collect()
}
