//! Suite `idle`: what a process takes when it does nothing, and what each idle connection adds.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use rustix::process::{Resource, getrlimit};

use super::Suite;
use super::turn::{Bench, Cases, Contest, Turn};
use crate::figure::{FRESH, PER_IDLE, apart, each, float};
use crate::journal::Absence;
use crate::load::connections::{PER_ADDRESS, hold, lanes};
use crate::load::origin::{Origin, Service};
use crate::peers::Peer;
use crate::topology::{Rig, Topology};

/// A started process, and one whose last connection has just gone quiet, has things to put away.
const SETTLE: Duration = Duration::from_millis(1500);
const SETTLE_SMOKE: Duration = Duration::from_millis(100);

/// Files that a process has open beside its connections, generously.
const OTHER_FILES: u64 = 500;
/// Two sockets for each connection; and adit keeps a fifth of all files for everything else.
const FILES_OF_TWO: (u64, u64) = (5, 2);

/// The relay alone, then a client with its server.
pub(super) fn run(bench: &mut Bench) {
    let methods = bench.settings.methods.clone();
    let clients = methods.iter().map(|method| {
        (
            format!("SOCKS5 client, {}", method.name),
            Topology::Client(*method),
        )
    });
    let mut topologies = vec![("SOCKS5 relay".to_owned(), Topology::Relay)];
    topologies.extend(clients);
    for (what, topology) in topologies {
        let mut measured = Vec::new();
        for wanted in bench.settings.held.clone() {
            let bound = bound(topology);
            let held = wanted.min(bound.connections);
            if held < wanted {
                let why = format!("{}; measured with {held} instead", bound.why);
                eprintln!("idle: {what}, {wanted} idle connections: {why}");
                let case = format!("{what}, {wanted} idle connections");
                bench.journal.absences.push(absence(&case, "all", why));
            }
            if held > 0 && !measured.contains(&held) {
                measured.push(held);
                one_topology(bench, &what, topology, held);
            }
        }
    }
}

fn one_topology(bench: &mut Bench, what: &str, topology: Topology, held: u32) {
    let case = format!("{what}, {held} idle connections");
    for peer in bench.peers.iter().filter(|peer| topology.suits(peer)) {
        if let Some(why) = too_many(peer, topology, held) {
            eprintln!("idle: {case}: {}: {why}", peer.name());
            let absence = absence(&case, peer.name(), why);
            bench.journal.absences.push(absence);
        }
    }
    let among = |peer: &Peer| too_many(peer, topology, held).is_none();
    let contest = Contest::new(Suite::Idle, &case, topology).among(&among);
    bench.alternate(&contest, |turn| {
        let origin = Origin::start_on(Service::Hold, lanes(held))?;
        let rig = turn.start(origin.addr())?;
        measure(turn, &rig, &case, held).map_err(|why| rig.blame(&why))
    });
}

/// Why this implementation is not asked to hold so many; None if it is.
fn too_many(peer: &Peer, topology: Topology, held: u32) -> Option<String> {
    if let Some(why) = peer.overfull(held) {
        return Some(why.to_owned());
    }
    let each = match topology {
        Topology::Relay => peer.relay_files(),
        Topology::Tunnel(_)
        | Topology::Relayed(_)
        | Topology::Records(_)
        | Topology::Client(_)
        | Topology::Ssr(_)
        | Topology::Kcptun
        | Topology::SshForward(_)
        | Topology::SshDynamic(_)
        | Topology::SshServer(_) => 2,
    };
    let (allowed, needed) = (open_files(), u64::from(each) * u64::from(held));
    (needed + OTHER_FILES > allowed)
        .then(|| format!("it has {each} open files for each connection, and {allowed} are allowed"))
}

fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The most connections that this machine lets us hold.
#[derive(Debug)]
struct Bound {
    connections: u32,
    why: String,
}

fn bound(topology: Topology) -> Bound {
    // A relay has two sockets for each, and we have both ends.
    let (files, connections) = FILES_OF_TWO;
    let allowed = open_files();
    let connections = allowed.saturating_sub(OTHER_FILES) / files * connections;
    let files = Bound {
        connections: u32::try_from(connections).unwrap_or(u32::MAX),
        why: format!("{allowed} open files are allowed, two for each connection"),
    };
    let one_path = matches!(topology, Topology::Client(_)) && files.connections > PER_ADDRESS;
    if one_path {
        return Bound {
            connections: PER_ADDRESS,
            why: format!("a client has {PER_ADDRESS} ports for one server"),
        };
    }
    files
}

fn absence(case: &str, who: &str, why: String) -> Absence {
    Absence {
        suite: Suite::Idle,
        case: case.to_owned(),
        who: who.to_owned(),
        why,
    }
}

fn measure(turn: &Turn<'_>, rig: &Rig, case: &str, count: u32) -> Result<Cases> {
    let settle = if turn.settings.smoke {
        SETTLE_SMOKE
    } else {
        SETTLE
    };
    sleep(settle);
    let fresh = rig.memory()?;
    let held = hold(rig.way(), count)?;
    sleep(settle);
    let full = rig.memory()?;
    drop(held);
    let resident = fresh.iter().map(|memory| float(memory.resident) / 1024.0);
    let mut figures = apart(FRESH, &rig.parts(resident));
    let grown = fresh
        .iter()
        .zip(&full)
        .map(|(before, after)| (float(after.resident) - float(before.resident)) / f64::from(count));
    figures.extend(each(PER_IDLE, &rig.parts(grown)));
    Ok(vec![(case.to_owned(), figures)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_interop::shadowsocks::AES_128;

    #[test]
    fn there_are_two_files_for_a_connection_and_one_path_to_a_server() {
        let relay = bound(Topology::Relay);
        let allowed = open_files();
        assert!(u64::from(relay.connections) * 2 <= allowed, "{relay:?}");
        let client = bound(Topology::Client(AES_128));
        assert!(client.connections <= relay.connections.min(PER_ADDRESS));
    }
}
