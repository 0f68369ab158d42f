//! Suites `ss-tcp`, `ss-relay` and `socks`: bytes through a relay, up and down.

use adit_interop::shadowsocks::BLAKE3_AES_128;
use anyhow::{Context, Result};

use super::Suite;
use super::turn::{Bench, Cases, Contest, Turn};
use crate::figure::{CALLS_PER_GIB, CPU_PER_GIB, GBIT, PEAK, apart, as_gib, each, float, one};
use crate::load::Direction;
use crate::load::content::Check;
use crate::load::origin::{Origin, Service};
use crate::load::tcp::transfer;
use crate::spin::Spinners;
use crate::syscalls::Trace;
use crate::topology::{Rig, Topology};

/// Measures a tunnel for every method.
pub(super) fn shadowsocks(bench: &mut Bench) {
    for method in bench.settings.methods() {
        let topology = Topology::Tunnel(method);
        run(bench, Suite::SsTcp, method.name, topology);
        busy(bench, Suite::SsTcp, method.name, topology);
    }
}

/// Measures a relay between client and server, for the methods that have identity headers.
pub(super) fn relay(bench: &mut Bench) {
    let topology = Topology::Relayed(BLAKE3_AES_128);
    run(bench, Suite::SsRelay, BLAKE3_AES_128.name, topology);
}

/// Measures one process between client and origin.
pub(super) fn socks(bench: &mut Bench) {
    run(bench, Suite::Socks, "SOCKS5 CONNECT", Topology::Relay);
    busy(bench, Suite::Socks, "SOCKS5 CONNECT", Topology::Relay);
}

fn run(bench: &mut Bench, suite: Suite, name: &str, topology: Topology) {
    for &streams in bench.settings.extent().streams {
        let plural = if streams == 1 { "" } else { "s" };
        let case = format!("{name}, {streams} stream{plural}");
        let contest = Contest::new(suite, &case, topology).with_baseline();
        bench.alternate(&contest, |turn| turns(turn, streams, &case));
    }
}

/// Measures on a busy machine.
fn busy(bench: &mut Bench, suite: Suite, name: &str, topology: Topology) {
    let case = format!("{name}, 1 stream, busy");
    let contest = Contest::new(suite, &case, topology).with_baseline();
    bench.alternate(&contest, |turn| {
        let _spinners = Spinners::start()?;
        turns(turn, 1, &case)
    });
}

/// Starts the processes and measures both directions; the cases are `case` followed by the
/// direction.
pub(super) fn turns(turn: &Turn<'_>, streams: u32, case: &str) -> Result<Cases> {
    let origin = Origin::start(Service::Streams)?;
    let rig = turn.start(origin.addr())?;
    measure(turn, &rig, streams, case).map_err(|why| rig.blame(&why))
}

fn measure(turn: &Turn<'_>, rig: &Rig, streams: u32, case: &str) -> Result<Cases> {
    let amounts = turn.amounts();
    let carry = |direction, bytes, check| transfer(rig.way(), direction, bytes, streams, check);
    for direction in Direction::BOTH {
        carry(direction, amounts.warm_up, Check::Whole).context("warm-up")?;
    }
    let mut cases = Cases::new();
    for direction in Direction::BOTH {
        let before = rig.cpu()?;
        let moved = carry(direction, amounts.bytes, Check::Sampled)?;
        let costs = rig.costs(&before, CPU_PER_GIB, as_gib(moved.bytes))?;
        let bits = float(moved.bytes) * 8.0 / 1e9;
        let mut figures = vec![one(GBIT, bits / moved.elapsed.as_secs_f64())];
        figures.extend(costs);
        let peaks = rig.memory()?;
        let peaks = peaks.iter().map(|memory| float(memory.peak) / 1024.0);
        figures.extend(apart(PEAK, &rig.parts(peaks)));
        cases.push((format!("{case}, {direction}"), figures));
    }
    // Last, so that nothing that is timed has been traced before.
    if turn.counts_calls && !rig.members().is_empty() {
        for (direction, (_, figures)) in Direction::BOTH.into_iter().zip(&mut cases) {
            let trace = Trace::attach(rig)?;
            let moved = carry(direction, amounts.bytes, Check::Sampled);
            let moved = moved.context("the transfer failed while system calls were counted")?;
            let counts = trace.finish()?;
            let counts = counts
                .iter()
                .map(|calls| float(*calls) / as_gib(moved.bytes));
            figures.extend(each(CALLS_PER_GIB, &rig.parts(counts)));
        }
    }
    Ok(cases)
}
