//! Suites `ss-tcp`, `ss-relay` and `socks`: bytes through a relay, up and down.

use adit_interop::shadowsocks::BLAKE3_AES_128;
use anyhow::{Context, Result};

use super::Suite;
use super::rounds::{BenchRun, CaseFigures, RoundSpec, RoundTurn};
use crate::busy_processes::BusyProcesses;
use crate::figures::{
    CALLS_PER_GIB, CPU_PER_GIB, GBIT, PEAK_MEMORY, as_float, as_gib, figures_by_part,
    figures_with_sum, whole_figure,
};
use crate::load::LoadDirection;
use crate::load::content::CheckMode;
use crate::load::origin::{LoadOrigin, OriginService};
use crate::load::tcp::transfer;
use crate::syscall_counter::SyscallTrace;
use crate::topology::{ProcessRig, Topology};

/// Measures a tunnel for every method.
pub(super) fn run_shadowsocks(bench: &mut BenchRun) {
    for method in bench.settings.methods() {
        let topology = Topology::Tunnel(method);
        run_streams(bench, Suite::SsTcp, method.name, topology);
        run_busy(bench, Suite::SsTcp, method.name, topology);
    }
}

/// Measures a relay between client and server, for the methods that have identity headers.
pub(super) fn run_relay(bench: &mut BenchRun) {
    let topology = Topology::Relayed(BLAKE3_AES_128);
    run_streams(bench, Suite::SsRelay, BLAKE3_AES_128.name, topology);
}

/// Measures one process between client and origin.
pub(super) fn run_socks(bench: &mut BenchRun) {
    run_streams(bench, Suite::Socks, "SOCKS5 CONNECT", Topology::Relay);
    run_busy(bench, Suite::Socks, "SOCKS5 CONNECT", Topology::Relay);
}

fn run_streams(bench: &mut BenchRun, suite: Suite, name: &str, topology: Topology) {
    for &streams in bench.settings.extent().streams {
        let plural = if streams == 1 { "" } else { "s" };
        let case = format!("{name}, {streams} stream{plural}");
        let contest = RoundSpec::new(suite, &case, topology).with_baseline();
        bench.run_rounds(&contest, |turn| measure_transfers(turn, streams, &case));
    }
}

/// Measures on a busy machine.
fn run_busy(bench: &mut BenchRun, suite: Suite, name: &str, topology: Topology) {
    let case = format!("{name}, 1 stream, busy");
    let contest = RoundSpec::new(suite, &case, topology).with_baseline();
    bench.run_rounds(&contest, |turn| {
        let _spinners = BusyProcesses::start()?;
        measure_transfers(turn, 1, &case)
    });
}

/// Starts the processes and measures both directions; the cases are `case` followed by the
/// direction.
pub(super) fn measure_transfers(
    turn: &RoundTurn<'_>,
    streams: u32,
    case: &str,
) -> Result<CaseFigures> {
    let origin = LoadOrigin::start(OriginService::Streams)?;
    let rig = turn.start_rig(origin.addr())?;
    measure_directions(turn, &rig, streams, case).map_err(|why| rig.with_last_output(&why))
}

fn measure_directions(
    turn: &RoundTurn<'_>,
    rig: &ProcessRig,
    streams: u32,
    case: &str,
) -> Result<CaseFigures> {
    let amounts = turn.amounts();
    let carry = |direction, bytes, check| transfer(rig.route(), direction, bytes, streams, check);
    for direction in LoadDirection::BOTH {
        carry(direction, amounts.warm_up, CheckMode::Whole).context("warm-up")?;
    }
    let mut cases = CaseFigures::new();
    for direction in LoadDirection::BOTH {
        rig.forget_peaks()?;
        let before = rig.cpu_times()?;
        let moved = carry(direction, amounts.bytes, CheckMode::Sampled)?;
        let costs = rig.costs(&before, CPU_PER_GIB, as_gib(moved.bytes))?;
        let bits = as_float(moved.bytes) * 8.0 / 1e9;
        let mut figures = vec![whole_figure(GBIT, bits / moved.elapsed.as_secs_f64())];
        figures.extend(costs);
        let peaks = rig.memory()?;
        let peaks = peaks.iter().map(|memory| as_float(memory.peak) / 1024.0);
        figures.extend(figures_by_part(PEAK_MEMORY, &rig.label_parts(peaks)));
        cases.push((format!("{case}, {direction}"), figures));
    }
    // Last, so that nothing that is timed has been traced before.
    if turn.counts_calls && !rig.members().is_empty() {
        for (direction, (_, figures)) in LoadDirection::BOTH.into_iter().zip(&mut cases) {
            let trace = SyscallTrace::attach(rig)?;
            let moved = carry(direction, amounts.bytes, CheckMode::Sampled);
            let moved = moved.context("the transfer failed while system calls were counted")?;
            let counts = trace.detach()?;
            let counts = counts
                .iter()
                .map(|calls| as_float(*calls) / as_gib(moved.bytes));
            figures.extend(figures_with_sum(CALLS_PER_GIB, &rig.label_parts(counts)));
        }
    }
    Ok(cases)
}
