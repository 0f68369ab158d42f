//! A server that is far away: what the windows of SSH leave of a fast and long path.

use std::fs;
use std::time::Duration;

use adit_link::{Link, Namespace, Path};
use anyhow::{Context, Result};

use super::FASTEST;
use crate::figure::{CPU_PER_GIB, MB, as_gib, float, one};
use crate::load::Direction;
use crate::load::content::Check;
use crate::load::origin::{Origin, Service};
use crate::load::tcp::transfer;
use crate::peers::Peer;
use crate::suite::Suite;
use crate::suite::turn::{Bench, Cases, NO_RELAY};
use crate::suite::world::World;
use crate::topology::Topology;

/// Bits a second.
const RATE: u64 = 1_000_000_000;
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// What may wait for the rate: as much as is on its way, as routers had it once.
const QUEUE: Duration = Duration::from_millis(100);
/// Bytes before the clock starts.
const WARM_UP: u64 = 128 << 20;
/// Bytes of a transfer, at most: half a minute for those who are slow.
const MOST: u64 = 1 << 30;
/// By what they are divided for those whose windows stay as they are.
const STEADY: u64 = 8;

/// The buffers of the kernel's TCP, octets: what is on its way and waits, twice.
const BUFFERS: &str = "4096 131072 67108864";
const LIMITS: [&str; 2] = ["/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"];

/// Everybody in turn, each on a link of its own.
pub(super) fn run(bench: &mut Bench, able: &[&'static str]) {
    if let Err(why) = all(bench, able) {
        eprintln!("{}: a far server: not measured: {why:#}", Suite::Ssh);
        let why = format!("{why:#}");
        let journal = &mut bench.journal;
        journal.leave_out(Suite::Ssh, "a far server", "all programs", &why);
    }
}

fn all(bench: &mut Bench, able: &[&'static str]) -> Result<()> {
    let mut path = Path::new(ROUND_TRIP, 0).at(RATE, QUEUE);
    // The processor is for the ends.
    path.offload = true;
    // Without the rights for it nobody is measured.
    drop(Link::start(path, 1)?);
    let bytes = bench.settings.amounts().bytes.min(MOST);
    let warm_up = if bench.settings.smoke { 0 } else { WARM_UP };
    let case = format!(
        "{}, -L, 1 Gbit/s, {ROUND_TRIP:?} there and back",
        FASTEST.name()
    );
    // None is TCP alone, which tells what the link allows.
    let mut everyone: Vec<Option<&'static str>> = able.iter().copied().map(Some).collect();
    everyone.push(None);
    for round in 1..=bench.settings.rounds() {
        for who in &everyone {
            let peer = who.and_then(|who| bench.peers.iter().find(|peer| peer.name() == who));
            // With a window that does not grow there is nothing more to see, only to wait for.
            let share = match who {
                None | Some("adit") => 1,
                Some(_) => STEADY,
            };
            let (warm_up, bytes) = (warm_up / share, bytes / share);
            let measured = world(path, round, peer)
                .and_then(|world| measure(&world, &case, warm_up.min(bytes), bytes));
            let who = who.unwrap_or(NO_RELAY);
            match measured {
                Ok((cases, lines)) => {
                    for (case, figures) in cases {
                        bench
                            .journal
                            .keep(Suite::Ssh, &case, who, round, Ok(figures));
                    }
                    bench.journal.note(Suite::Ssh, "a far server", who, lines);
                }
                Err(why) => bench.journal.keep(Suite::Ssh, &case, who, round, Err(why)),
            }
        }
        everyone.rotate_left(1);
    }
    Ok(())
}

fn world(path: Path, round: u32, peer: Option<&Peer>) -> Result<World<Origin>> {
    let link = Link::start(path, round.into())?;
    for end in [link.near(), link.far()] {
        widen(end)?;
    }
    let origin = |at| Origin::start_at(Service::Streams, at);
    World::start(link, origin, peer.zip(Some(Topology::SshForward(FASTEST))))
}

fn widen(end: &Namespace) -> Result<()> {
    end.enter(|| {
        LIMITS
            .iter()
            .try_for_each(|limit| fs::write(limit, BUFFERS).context(*limit))
    })
}

/// Both directions, and how the processes were started.
fn measure(
    World { rig, link, .. }: &World<Origin>,
    case: &str,
    warm_up: u64,
    bytes: u64,
) -> Result<(Cases, Vec<String>)> {
    let mut cases = Cases::new();
    for direction in Direction::BOTH {
        let carry = |bytes| {
            let moved = || transfer(rig.way(), direction, bytes, 1, Check::Sampled);
            link.near().enter(moved)
        };
        if warm_up > 0 {
            carry(warm_up).context("warm-up")?;
        }
        let before = rig.cpu()?;
        let moved = carry(bytes)?;
        let rate = float(moved.bytes) / 1e6 / moved.elapsed.as_secs_f64();
        let mut figures = vec![one(MB, rate)];
        figures.extend(rig.costs(&before, CPU_PER_GIB, as_gib(moved.bytes))?);
        cases.push((format!("{case}, {direction}"), figures));
    }
    Ok((cases, rig.commands()))
}
