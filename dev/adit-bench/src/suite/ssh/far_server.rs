//! A remote server: the throughput that SSH's windows allow on a fast, long path.

use std::fs;
use std::time::Duration;

use adit_link::{LinkPath, NamespaceLink, NetworkNamespace};
use anyhow::{Context, Result};

use super::FASTEST;
use crate::figures::{CPU_PER_GIB, MB_PER_SECOND, as_float, as_gib, whole_figure};
use crate::load::LoadDirection;
use crate::load::content::CheckMode;
use crate::load::origin::{LoadOrigin, OriginService};
use crate::load::tcp::transfer;
use crate::peers::InstalledPeer;
use crate::suite::Suite;
use crate::suite::linked_world::LinkedWorld;
use crate::suite::rounds::{BenchRun, CaseFigures, NO_RELAY};
use crate::topology::Topology;

/// Rate, in bits per second.
const RATE: u64 = 1_000_000_000;
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Data that may wait for the rate: as much as is in flight, which was a common size for routers.
const QUEUE: Duration = Duration::from_millis(100);
/// Bytes before the clock starts.
const WARM_UP: u64 = 128 << 20;
/// Maximum number of bytes of a transfer: half a minute for slow implementations.
const MAX_BYTES: u64 = 1 << 30;
/// Divisor of the bytes for implementations whose windows do not grow.
const FIXED_WINDOW_DIVISOR: u64 = 8;

/// The kernel's TCP buffers, in bytes: twice the data in flight and in the queue.
const BUFFERS: &str = "4096 131072 67108864";
const LIMITS: [&str; 2] = ["/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"];

/// Measures all implementations in turn, each on a link of its own.
pub(super) fn run_far(bench: &mut BenchRun, able: &[&'static str]) {
    if let Err(why) = measure_all(bench, able) {
        eprintln!("{}: a far server: not measured: {why:#}", Suite::Ssh);
        let why = format!("{why:#}");
        let journal = &mut bench.journal;
        journal.record_skipped(Suite::Ssh, "a far server", "all peers", &why);
    }
}

fn measure_all(bench: &mut BenchRun, able: &[&'static str]) -> Result<()> {
    let mut path = LinkPath::new(ROUND_TRIP, 0).with_rate(RATE, QUEUE);
    // The processor is needed by the ends.
    path.offload = true;
    // Without the privileges for it, nothing is measured.
    drop(NamespaceLink::start(path, 1)?);
    let bytes = bench.settings.amounts().bytes.min(MAX_BYTES);
    let warm_up = if bench.settings.smoke { 0 } else { WARM_UP };
    let case = format!(
        "{}, -L, 1 Gbit/s, {ROUND_TRIP:?} there and back",
        FASTEST.name()
    );
    // `None` is TCP alone, which shows what the link allows.
    let mut everyone: Vec<Option<&'static str>> = able.iter().copied().map(Some).collect();
    everyone.push(None);
    for round in 1..=bench.settings.rounds() {
        for who in &everyone {
            let peer = who.and_then(|who| bench.peers.iter().find(|peer| peer.name() == who));
            // With a window that does not grow, more bytes would only take longer.
            let share = match who {
                None | Some("adit") => 1,
                Some(_) => FIXED_WINDOW_DIVISOR,
            };
            let (warm_up, bytes) = (warm_up / share, bytes / share);
            let measured = start_world(path, round, peer)
                .and_then(|world| measure_both(&world, &case, warm_up.min(bytes), bytes));
            let who = who.unwrap_or(NO_RELAY);
            match measured {
                Ok((cases, lines)) => {
                    for (case, figures) in cases {
                        bench
                            .journal
                            .record_outcome(Suite::Ssh, &case, who, round, Ok(figures));
                    }
                    bench
                        .journal
                        .record_command(Suite::Ssh, "a far server", who, lines);
                }
                Err(why) => bench
                    .journal
                    .record_outcome(Suite::Ssh, &case, who, round, Err(why)),
            }
        }
        everyone.rotate_left(1);
    }
    Ok(())
}

fn start_world(
    path: LinkPath,
    round: u32,
    peer: Option<&InstalledPeer>,
) -> Result<LinkedWorld<LoadOrigin>> {
    let link = NamespaceLink::start(path, round.into())?;
    for end in [link.near(), link.far()] {
        raise_tcp_buffers(end)?;
    }
    let origin = |at| LoadOrigin::start_at(OriginService::Streams, at);
    LinkedWorld::start(link, origin, peer.zip(Some(Topology::SshForward(FASTEST))))
}

fn raise_tcp_buffers(end: &NetworkNamespace) -> Result<()> {
    end.run_inside(|| {
        LIMITS
            .iter()
            .try_for_each(|limit| fs::write(limit, BUFFERS).context(*limit))
    })
}

/// Measures both directions. Also returns how the processes were started.
fn measure_both(
    LinkedWorld { rig, link, .. }: &LinkedWorld<LoadOrigin>,
    case: &str,
    warm_up: u64,
    bytes: u64,
) -> Result<(CaseFigures, Vec<String>)> {
    let mut cases = CaseFigures::new();
    for direction in LoadDirection::BOTH {
        let carry = |bytes| {
            let moved = || transfer(rig.route(), direction, bytes, 1, CheckMode::Sampled);
            link.near().run_inside(moved)
        };
        if warm_up > 0 {
            carry(warm_up).context("warm-up")?;
        }
        let before = rig.cpu_times()?;
        let moved = carry(bytes)?;
        let rate = as_float(moved.bytes) / 1e6 / moved.elapsed.as_secs_f64();
        let mut figures = vec![whole_figure(MB_PER_SECOND, rate)];
        figures.extend(rig.costs(&before, CPU_PER_GIB, as_gib(moved.bytes))?);
        cases.push((format!("{case}, {direction}"), figures));
    }
    Ok((cases, rig.commands()))
}
