//! Suite `ss-udp`: datagrams through a tunnel, up and down: paced by arrivals, at a steady rate,
//! and in a flood.

use anyhow::{Context, Result, bail, ensure};

use super::Suite;
use super::rounds::{BenchRun, CaseFigures, RoundSpec, RoundTurn};
use crate::figures::{
    CALLS_PER_GIB, CPU_PER_GIB, DATAGRAMS, Figures, GBIT, LOSS_SHARE, as_float, as_gib,
    figures_with_sum, whole_figure,
};
use crate::load::in_flight::SendPace;
use crate::load::udp::{DatagramDelivery, TunnelSession, UdpOrigin, payload_len};
use crate::load::{LoadDirection, OriginRoute};
use crate::syscall_counter::SyscallTrace;
use crate::topology::{ProcessRig, Topology};

/// A number that fits into the default receive buffer of a socket, with a margin.
const WINDOW_PACE: SendPace = SendPace::Window(64);

/// The rate of a good line, which every implementation should support.
const STEADY_PACE: SendPace = SendPace::Bits(200_000_000);

/// Divisor of the bytes of a steady run, whose duration is determined by its rate.
const STEADY_SHARE: u64 = 4;

const PACES: [(SendPace, &str); 3] = [
    (WINDOW_PACE, ", 64 under way"),
    (STEADY_PACE, ", 200 Mbit/s"),
    (SendPace::Flood, ", flood"),
];

/// Measures a tunnel for every method.
pub(super) fn run_suite(bench: &mut BenchRun) {
    for method in bench.settings.methods() {
        let contest =
            RoundSpec::new(Suite::SsUdp, method.name, Topology::Tunnel(method)).with_baseline();
        bench.run_rounds(&contest, |turn| measure_paces(turn, method.name, &PACES));
    }
}

/// Starts the processes and measures both directions at each pace; the cases are `case`, the
/// direction and the pace's name.
pub(super) fn measure_paces(
    turn: &RoundTurn<'_>,
    case: &str,
    paces: &[(SendPace, &str)],
) -> Result<CaseFigures> {
    let origin = UdpOrigin::bind()?;
    let rig = turn.start_rig(origin.addr()?)?;
    let OriginRoute::Entry(entry) = rig.route() else {
        bail!("the tunnel has no entry");
    };
    let session = origin
        .open_session(entry)
        .map_err(|why| rig.with_last_output(&why))?;
    measure_directions(turn, &rig, &session, case, paces).map_err(|why| rig.with_last_output(&why))
}

fn measure_directions(
    turn: &RoundTurn<'_>,
    rig: &ProcessRig,
    session: &TunnelSession,
    case: &str,
    paces: &[(SendPace, &str)],
) -> Result<CaseFigures> {
    let amounts = turn.settings.amounts();
    let count = |direction, bytes: u64| (bytes / payload_len(direction) as u64).max(100);
    for direction in LoadDirection::BOTH {
        session
            .send_one_way(
                direction,
                count(direction, amounts.warm_up / 4),
                WINDOW_PACE,
            )
            .context("warm-up")?;
    }
    let mut cases = CaseFigures::new();
    for (pace, shown) in paces {
        let share = if *pace == STEADY_PACE {
            STEADY_SHARE
        } else {
            1
        };
        for direction in LoadDirection::BOTH {
            let before = rig.cpu_times()?;
            let wanted = count(direction, amounts.datagram_bytes / share);
            let delivery = session.send_one_way(direction, wanted, *pace)?;
            let bytes = delivery.delivered * payload_len(direction) as u64;
            let costs = rig.costs(&before, CPU_PER_GIB, as_gib(bytes))?;
            let doubled = delivery.duplicates;
            ensure!(doubled == 0, "{doubled} datagrams arrived twice");
            let mut figures = delivery_figures(&delivery, direction);
            figures.extend(costs);
            if *pace == WINDOW_PACE && turn.counts_calls && !rig.members().is_empty() {
                figures.extend(count_syscalls(turn, rig, session, direction)?);
            }
            cases.push((format!("{case}, {direction}{shown}"), figures));
        }
    }
    Ok(cases)
}

fn count_syscalls(
    turn: &RoundTurn<'_>,
    rig: &ProcessRig,
    session: &TunnelSession,
    direction: LoadDirection,
) -> Result<Figures> {
    let trace = SyscallTrace::attach(rig)?;
    let size = payload_len(direction) as u64;
    let count = (turn.settings.amounts().datagram_bytes / size).max(100);
    let traced = session.send_one_way(direction, count, WINDOW_PACE);
    let bytes = traced
        .context("the run failed while system calls were counted")?
        .delivered
        * size;
    let counts = trace.detach()?;
    let counts = counts.iter().map(|calls| as_float(*calls) / as_gib(bytes));
    Ok(figures_with_sum(CALLS_PER_GIB, &rig.label_parts(counts)))
}

fn delivery_figures(delivery: &DatagramDelivery, direction: LoadDirection) -> Figures {
    let seconds = delivery.elapsed.as_secs_f64();
    let delivered = as_float(delivery.delivered);
    let bits = delivered * payload_len(direction) as f64 * 8.0;
    vec![
        whole_figure(GBIT, bits / 1e9 / seconds),
        whole_figure(DATAGRAMS, delivered / seconds),
        whole_figure(
            LOSS_SHARE,
            (1.0 - delivered / as_float(delivery.sent)) * 100.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rates_refer_to_what_arrived() {
        let elapsed = Duration::from_secs(2);
        let delivery = DatagramDelivery {
            sent: 1000,
            delivered: 900,
            duplicates: 0,
            elapsed,
        };
        for (direction, size) in [(LoadDirection::Up, 1390.0), (LoadDirection::Down, 1382.0)] {
            let values: Vec<f64> = delivery_figures(&delivery, direction)
                .into_iter()
                .map(|(_, value)| value)
                .collect();
            assert!((values[0] - 900.0 * size * 8.0 / 2e9).abs() < 1e-9);
            assert_eq!(values[1], 450.0);
            assert!((values[2] - 10.0).abs() < 1e-9);
        }
    }
}
