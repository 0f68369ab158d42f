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

/// The relay alone, then a client with its server.
pub(super) fn run(bench: &mut Bench) {
    for held in bench.settings.held.clone() {
        one_topology(bench, "SOCKS5 relay".to_owned(), Topology::Relay, held);
        for method in bench.settings.methods.clone() {
            let case = format!("SOCKS5 client, {}", method.name);
            one_topology(bench, case, Topology::Client(method), held);
        }
    }
}

fn one_topology(bench: &mut Bench, case: String, topology: Topology, held: u32) {
    let case = format!("{case}, {held} idle connections");
    if let Some(why) = impossible(topology, held) {
        eprintln!("idle: {case}: {why}");
        bench.journal.absences.push(absence(&case, "all", why));
        return;
    }
    for peer in bench.peers.iter().filter(|peer| topology.suits(peer)) {
        if let Some(why) = peer.overfull(held) {
            let absence = absence(&case, peer.name(), why.to_owned());
            bench.journal.absences.push(absence);
        }
    }
    let among = |peer: &Peer| peer.overfull(held).is_none();
    let contest = Contest::new(Suite::Idle, &case, topology).among(&among);
    bench.alternate(&contest, |turn| {
        let origin = Origin::start_on(Service::Hold, lanes(held))?;
        let rig = turn.start(origin.addr())?;
        measure(turn, &rig, &case, held).map_err(|why| rig.blame(&why))
    });
}

/// What this machine has not enough of.
fn impossible(topology: Topology, held: u32) -> Option<String> {
    // Here are both ends of what the relay carries.
    let files = 2 * u64::from(held) + OTHER_FILES;
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if allowed < files {
        return Some(format!(
            "{files} open files are needed, {allowed} are allowed"
        ));
    }
    let paths = matches!(topology, Topology::Client(_)) && held > PER_ADDRESS;
    paths.then(|| {
        format!("from one client to one server there are no more than {PER_ADDRESS} ports to use")
    })
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
    fn more_than_the_ports_or_files_is_said_before_it_is_tried() {
        assert_eq!(impossible(Topology::Relay, 50), None);
        let client = Topology::Client(AES_128);
        assert_eq!(impossible(client, 50), None);
        let why = impossible(Topology::Relay, u32::MAX).unwrap();
        assert!(why.contains("open files"), "{why}");
    }
}
