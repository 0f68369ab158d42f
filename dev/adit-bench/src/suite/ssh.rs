//! Suite `ssh`: the cost of programs, forwarded ports and SOCKS over SSH, and of the MACs alone.

mod exec;
mod far;
mod macs;

use super::turn::{Bench, Contest};
use super::{Suite, transfer};
use crate::peers::Peer;
use crate::peers::ssh;
use crate::topology::Topology;

/// The suite that should be the cheapest.
pub(super) const FASTEST: ssh::Suite = ssh::Suite {
    cipher: "aes128-gcm@openssh.com",
    mac: None,
};

/// The measured suites, the one that should be the cheapest first.
const SUITES: [ssh::Suite; 4] = [
    FASTEST,
    ssh::Suite {
        cipher: "aes128-ctr",
        mac: Some("umac-64-etm@openssh.com"),
    },
    ssh::Suite {
        cipher: "chacha20-poly1305@openssh.com",
        mac: None,
    },
    ssh::Suite {
        cipher: "aes128-ctr",
        mac: Some("hmac-sha2-256-etm@openssh.com"),
    },
];

/// Measures every suite for each use, and SOCKS with the first suite.
pub(super) fn run(bench: &mut Bench) {
    macs::run(bench);
    let able = able(bench, Suite::Ssh);
    let among = |peer: &Peer| able.contains(&peer.name());
    let suites = if bench.settings.smoke {
        &SUITES[..1]
    } else {
        &SUITES[..]
    };
    far::run(bench, &able);
    for (n, &suite) in suites.iter().enumerate() {
        let name = suite.name();
        let program = format!("{name}, a program");
        let topology = Topology::SshServer(suite);
        let contest = Contest::new(Suite::Ssh, &program, topology)
            .among(&among)
            .uncounted();
        bench.alternate(&contest, |turn| exec::turns(turn, suite, &program));
        let forward = format!("{name}, -L");
        let topology = Topology::SshForward(suite);
        let contest = Contest::new(Suite::Ssh, &forward, topology).among(&among);
        bench.alternate(&contest, |turn| transfer::turns(turn, 1, &forward));
        if n == 0 {
            let dynamic = format!("{name}, -D");
            let topology = Topology::SshDynamic(suite);
            let contest = Contest::new(Suite::Ssh, &dynamic, topology).among(&among);
            bench.alternate(&contest, |turn| transfer::turns(turn, 1, &dynamic));
        }
    }
}

/// Returns the names of the implementations that have both ends. An adit without these commands is
/// not a failure, but is reported.
pub(super) fn able(bench: &mut Bench, suite: Suite) -> Vec<&'static str> {
    let has = |peer: &Peer| {
        peer.name() != "adit" || (peer.has_command("ssh") && peer.has_command("sshd"))
    };
    let topology = Topology::SshServer(SUITES[0]);
    let fit = bench.peers.iter().filter(|peer| topology.suits(peer));
    let (able, without): (Vec<&Peer>, Vec<&Peer>) = fit.partition(|peer| has(peer));
    for peer in without {
        eprintln!("ssh: {} has no `ssh` and `sshd`", peer.name());
        let why = "it has no commands `ssh` and `sshd`";
        bench.journal.leave_out(suite, "SSH", peer.name(), why);
    }
    able.into_iter().map(Peer::name).collect()
}
