//! Suite `idle`: the memory of an idle process, and the growth per idle connection.

use std::num::NonZeroU32;
use std::thread::sleep;
use std::time::Duration;

use adit_interop::loopback_addr;
use anyhow::{Context, Result, bail};
use rustix::process::{Resource, getrlimit};

use super::Suite;
use super::rounds::{BenchRun, CaseFigures, RoundSpec, RoundTurn};
use crate::connection_holder::HolderProcess;
use crate::figures::{FRESH_MEMORY, MEMORY_PER_IDLE, as_float, figures_by_part, figures_with_sum};
use crate::load::OriginRoute;
use crate::load::connections::PER_ADDRESS;
use crate::peers::InstalledPeer;
use crate::process_cost::ProcessMemory;
use crate::topology::{ProcessRig, Topology};

/// A process that has just started, or whose last connection has just become idle, still has memory
/// to release.
const SETTLE_TIME: Duration = Duration::from_millis(1500);
const SETTLE_TIME_SMOKE: Duration = Duration::from_millis(100);

/// Connections that are opened before the growth is measured. The pages of code that the first
/// connections run become resident then, once; they are not part of what each further connection costs.
const WARM_UP_CONNECTIONS: u32 = 200;

/// Open files of a process besides its connections, generously estimated.
const OTHER_FILES: u64 = 500;
/// Two sockets per connection. adit reserves a fifth of all files for everything else, and an eighth of the rest for
/// associations: 20 files allow 7 connections.
const FILES_PER_CONNECTIONS: (u64, u64) = (20, 7);

/// Measures the relay alone, then a client with its server.
pub(super) fn run_suite(bench: &mut BenchRun) {
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
            let bound = hold_bound(topology);
            let Some(processes) = NonZeroU32::new(wanted.div_ceil(bound.connections.max(1))) else {
                continue;
            };
            if processes.get() > 1 {
                eprintln!("idle: {what}, {wanted} idle connections: {}", bound.why);
            }
            if !measured.contains(&wanted) {
                measured.push(wanted);
                measure_topology(bench, &what, topology, wanted, processes);
            }
        }
    }
}

/// Measures `held` connections, divided among `processes` processes of each kind.
fn measure_topology(
    bench: &mut BenchRun,
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
    let fit = |peer: &&InstalledPeer| topology.is_supported_by(peer) && peer.is_real_program();
    for peer in bench.peers.iter().filter(fit) {
        if let Some(why) = refusal_reason(peer, topology, each) {
            eprintln!("idle: {case}: {}: {why}", peer.name());
            bench
                .journal
                .record_skipped(Suite::Idle, &case, peer.name(), &why);
        }
    }
    let among = |peer: &InstalledPeer| {
        peer.is_real_program() && refusal_reason(peer, topology, each).is_none()
    };
    let contest = RoundSpec::new(Suite::Idle, &case, topology).among(&among);
    bench.run_rounds(&contest, |turn| {
        measure_memory(turn, &case, each, processes)
    });
}

/// Returns the reason why this implementation cannot hold this many connections; `None` if it can.
fn refusal_reason(peer: &InstalledPeer, topology: Topology, held: u32) -> Option<String> {
    if let Some(why) = peer.hold_limit_reason(held) {
        return Some(why.to_owned());
    }
    let each = match topology {
        Topology::Relay => peer.relay_files(),
        _ => 2,
    };
    let (allowed, needed) = (open_file_limit(), u64::from(each) * u64::from(held));
    (needed + OTHER_FILES > allowed)
        .then(|| format!("it has {each} open files for each connection, and {allowed} are allowed"))
}

fn open_file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The maximum number of connections that this machine allows.
#[derive(Debug)]
struct HoldBound {
    connections: u32,
    why: String,
}

fn hold_bound(topology: Topology) -> HoldBound {
    // A relay has two sockets per connection, and this process has both ends.
    let (files, connections) = FILES_PER_CONNECTIONS;
    let allowed = open_file_limit();
    let connections = allowed.saturating_sub(OTHER_FILES) / files * connections;
    let files = HoldBound {
        connections: u32::try_from(connections).unwrap_or(u32::MAX),
        why: format!("{allowed} open files are allowed, two for each connection"),
    };
    let one_path = matches!(topology, Topology::Client(_)) && files.connections > PER_ADDRESS;
    if one_path {
        return HoldBound {
            connections: PER_ADDRESS,
            why: format!("a client has {PER_ADDRESS} ports for one server"),
        };
    }
    files
}

/// Measures memory before and with `each` connections in each of the rigs; a separate process holds
/// the connections of each.
fn measure_memory(
    turn: &RoundTurn<'_>,
    case: &str,
    each: u32,
    processes: NonZeroU32,
) -> Result<CaseFigures> {
    let settle = if turn.settings.smoke {
        SETTLE_TIME_SMOKE
    } else {
        SETTLE_TIME
    };
    // The holders have the origins; SOCKS tells the rigs their addresses.
    let nowhere = loopback_addr(1);
    let rigs = (0..processes.get())
        .map(|_| turn.start_rig(nowhere))
        .collect::<Result<Vec<ProcessRig>>>()?;
    let first = rigs.first().context("no rig was started")?;
    sleep(settle);
    let fresh = memory_by_part(&rigs)?;
    let warm_up = WARM_UP_CONNECTIONS.min(each / 2);
    let (warm, warm_holders) = memory_with(&rigs, warm_up, settle)?;
    drop(warm_holders);
    let (full, holders) = memory_with(&rigs, each, settle)?;
    drop(holders);
    let rigs = f64::from(processes.get());
    let grown = growth_per_connection(&warm, &full, f64::from(each - warm_up) * rigs);
    let fresh = fresh.iter().map(|memory| as_float(memory.resident) / rigs);
    Ok(memory_cases(first, case, fresh, &grown))
}

/// Returns the memory with `each` connections in each rig, and the processes that hold them.
fn memory_with(
    rigs: &[ProcessRig],
    each: u32,
    settle: Duration,
) -> Result<(Vec<ProcessMemory>, Vec<HolderProcess>)> {
    let mut holders = Vec::new();
    for (rig, lane) in rigs.iter().zip(0..) {
        let OriginRoute::Socks { proxy, .. } = rig.route() else {
            bail!("only SOCKS supports several origins");
        };
        holders.push(HolderProcess::start(proxy, each, lane)?);
    }
    for (holder, rig) in holders.iter_mut().zip(rigs) {
        holder
            .wait_until_open()
            .map_err(|why| rig.with_last_output(&why))?;
    }
    sleep(settle);
    Ok((memory_by_part(rigs)?, holders))
}

/// Returns the memory of each part, of all rigs together.
fn memory_by_part(rigs: &[ProcessRig]) -> Result<Vec<ProcessMemory>> {
    let mut sums: Vec<ProcessMemory> = Vec::new();
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
fn growth_per_connection(
    fresh: &[ProcessMemory],
    full: &[ProcessMemory],
    connections: f64,
) -> Vec<f64> {
    let pairs = fresh.iter().zip(full);
    pairs
        .map(|(before, after)| (as_float(after.resident) - as_float(before.resident)) / connections)
        .collect()
}

/// Returns the cases; `fresh` is in KiB for each part.
fn memory_cases(
    rig: &ProcessRig,
    case: &str,
    fresh: impl Iterator<Item = f64>,
    grown: &[f64],
) -> CaseFigures {
    let mut figures = figures_by_part(
        FRESH_MEMORY,
        &rig.label_parts(fresh.map(|resident| resident / 1024.0)),
    );
    figures.extend(figures_with_sum(
        MEMORY_PER_IDLE,
        &rig.label_parts(grown.iter().copied()),
    ));
    vec![(case.to_owned(), figures)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_interop::shadowsocks::AES_128;

    #[test]
    fn there_are_two_files_for_a_connection_and_one_path_to_a_server() {
        let relay = hold_bound(Topology::Relay);
        let allowed = open_file_limit();
        assert!(u64::from(relay.connections) * 2 <= allowed, "{relay:?}");
        let client = hold_bound(Topology::Client(AES_128));
        assert!(client.connections <= relay.connections.min(PER_ADDRESS));
    }
}
