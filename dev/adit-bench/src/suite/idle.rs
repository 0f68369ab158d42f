//! Suite `idle`: the memory of an idle process, and the growth per idle connection.

use std::num::NonZeroU32;
use std::thread::sleep;
use std::time::Duration;

use adit_interop::loopback;
use anyhow::{Context, Result, bail};
use rustix::process::{Resource, getrlimit};

use super::Suite;
use super::turn::{Bench, Cases, Contest, Turn};
use crate::account::Memory;
use crate::figure::{FRESH, PER_IDLE, apart, each, float};
use crate::hold::Holder;
use crate::load::Way;
use crate::load::connections::PER_ADDRESS;
use crate::peers::Peer;
use crate::topology::{Rig, Topology};

/// A process that has just started, or whose last connection has just become idle, still has memory
/// to release.
const SETTLE: Duration = Duration::from_millis(1500);
const SETTLE_SMOKE: Duration = Duration::from_millis(100);

/// Open files of a process besides its connections, generously estimated.
const OTHER_FILES: u64 = 500;
/// Two sockets per connection, and adit reserves a fifth of all files for everything else.
const FILES_OF_TWO: (u64, u64) = (5, 2);

/// Measures the relay alone, then a client with its server.
pub(super) fn run(bench: &mut Bench) {
    let methods = bench.settings.methods();
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
        for &wanted in bench.settings.extent().held {
            let bound = bound(topology);
            let Some(processes) = NonZeroU32::new(wanted.div_ceil(bound.connections.max(1))) else {
                continue;
            };
            if processes.get() > 1 {
                eprintln!("idle: {what}, {wanted} idle connections: {}", bound.why);
            }
            if !measured.contains(&wanted) {
                measured.push(wanted);
                one_topology(bench, &what, topology, wanted, processes);
            }
        }
    }
}

/// Measures `held` connections, divided among `processes` processes of each kind.
fn one_topology(
    bench: &mut Bench,
    what: &str,
    topology: Topology,
    held: u32,
    processes: NonZeroU32,
) {
    // At least the number in the case's name.
    let each = held.div_ceil(processes.get());
    let case = match processes.get() {
        1 => format!("{what}, {held} idle connections"),
        count => format!("{what}, {held} idle connections, {count} processes"),
    };
    let fit = |peer: &&Peer| topology.suits(peer) && peer.is_no_floor();
    for peer in bench.peers.iter().filter(fit) {
        if let Some(why) = too_many(peer, topology, each) {
            eprintln!("idle: {case}: {}: {why}", peer.name());
            bench
                .journal
                .leave_out(Suite::Idle, &case, peer.name(), &why);
        }
    }
    let among = |peer: &Peer| peer.is_no_floor() && too_many(peer, topology, each).is_none();
    let contest = Contest::new(Suite::Idle, &case, topology).among(&among);
    bench.alternate(&contest, |turn| measure(turn, &case, each, processes));
}

/// Returns the reason why this implementation cannot hold this many connections; `None` if it can.
fn too_many(peer: &Peer, topology: Topology, held: u32) -> Option<String> {
    if let Some(why) = peer.overfull(held) {
        return Some(why.to_owned());
    }
    let each = match topology {
        Topology::Relay => peer.relay_files(),
        _ => 2,
    };
    let (allowed, needed) = (open_files(), u64::from(each) * u64::from(held));
    (needed + OTHER_FILES > allowed)
        .then(|| format!("it has {each} open files for each connection, and {allowed} are allowed"))
}

fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The maximum number of connections that this machine allows.
#[derive(Debug)]
struct Bound {
    connections: u32,
    why: String,
}

fn bound(topology: Topology) -> Bound {
    // A relay has two sockets per connection, and this process has both ends.
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

/// Measures memory before and with `each` connections in each of the rigs; a separate process holds
/// the connections of each.
fn measure(turn: &Turn<'_>, case: &str, each: u32, processes: NonZeroU32) -> Result<Cases> {
    let settle = if turn.settings.smoke {
        SETTLE_SMOKE
    } else {
        SETTLE
    };
    // The holders have the origins; SOCKS tells the rigs their addresses.
    let nowhere = loopback(1);
    let rigs = (0..processes.get())
        .map(|_| turn.start(nowhere))
        .collect::<Result<Vec<Rig>>>()?;
    let first = rigs.first().context("no rig was started")?;
    sleep(settle);
    let fresh = all(&rigs)?;
    let mut holders = Vec::new();
    for (rig, lane) in rigs.iter().zip(0..) {
        let Way::Socks { proxy, .. } = rig.way() else {
            bail!("only SOCKS supports several origins");
        };
        holders.push(Holder::start(proxy, each, lane)?);
    }
    for (holder, rig) in holders.iter_mut().zip(&rigs) {
        holder.wait().map_err(|why| rig.blame(&why))?;
    }
    sleep(settle);
    let full = all(&rigs)?;
    drop(holders);
    let rigs = f64::from(processes.get());
    let grown = grown(&fresh, &full, f64::from(each) * rigs);
    let fresh = fresh.iter().map(|memory| float(memory.resident) / rigs);
    Ok(cases(first, case, fresh, &grown))
}

/// Returns the memory of each part, of all rigs together.
fn all(rigs: &[Rig]) -> Result<Vec<Memory>> {
    let mut sums: Vec<Memory> = Vec::new();
    for rig in rigs {
        let parts = rig.memory()?;
        if sums.is_empty() {
            sums = parts;
            continue;
        }
        for (sum, part) in sums.iter_mut().zip(parts) {
            sum.resident += part.resident;
        }
    }
    Ok(sums)
}

/// Returns the growth per connection of each part, in KiB.
fn grown(fresh: &[Memory], full: &[Memory], connections: f64) -> Vec<f64> {
    let pairs = fresh.iter().zip(full);
    pairs
        .map(|(before, after)| (float(after.resident) - float(before.resident)) / connections)
        .collect()
}

/// Returns the cases; `fresh` is in KiB for each part.
fn cases(rig: &Rig, case: &str, fresh: impl Iterator<Item = f64>, grown: &[f64]) -> Cases {
    let mut figures = apart(FRESH, &rig.parts(fresh.map(|resident| resident / 1024.0)));
    figures.extend(each(PER_IDLE, &rig.parts(grown.iter().copied())));
    vec![(case.to_owned(), figures)]
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
