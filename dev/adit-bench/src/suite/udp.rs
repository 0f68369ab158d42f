//! Suite `ss-udp`: datagrams through a tunnel, up and down: paced by arrivals, at a steady rate,
//! and in a flood.

use anyhow::{Context, Result, bail, ensure};

use super::Suite;
use super::turn::{Bench, Cases, Contest, Turn};
use crate::figure::{
    CALLS_PER_GIB, CPU_PER_GIB, DATAGRAMS, Figures, GBIT, LOSS, as_gib, each, float, one,
};
use crate::load::flight::Pace;
use crate::load::udp::{Delivery, Session, UdpOrigin, payload};
use crate::load::{Direction, Way};
use crate::syscalls::Trace;
use crate::topology::{Rig, Topology};

/// A number that fits into the default receive buffer of a socket, with a margin.
const WINDOW: Pace = Pace::Window(64);

/// The rate of a good line, which every implementation should support.
const STEADY: Pace = Pace::Bits(200_000_000);

/// Divisor of the bytes of a steady run, whose duration is determined by its rate.
const STEADY_SHARE: u64 = 4;

const PACES: [(Pace, &str); 3] = [
    (WINDOW, ", 64 under way"),
    (STEADY, ", 200 Mbit/s"),
    (Pace::Flood, ", flood"),
];

/// Measures a tunnel for every method.
pub(super) fn run(bench: &mut Bench) {
    for method in bench.settings.methods() {
        let contest =
            Contest::new(Suite::SsUdp, method.name, Topology::Tunnel(method)).with_baseline();
        bench.alternate(&contest, |turn| turns(turn, method.name, &PACES));
    }
}

/// Starts the processes and measures both directions at each pace; the cases are `case`, the
/// direction and the pace's name.
pub(super) fn turns(turn: &Turn<'_>, case: &str, paces: &[(Pace, &str)]) -> Result<Cases> {
    let origin = UdpOrigin::bind()?;
    let rig = turn.start(origin.addr()?)?;
    let Way::Entry(entry) = rig.way() else {
        bail!("the tunnel has no entry");
    };
    let session = origin.session(entry).map_err(|why| rig.blame(&why))?;
    measure(turn, &rig, &session, case, paces).map_err(|why| rig.blame(&why))
}

fn measure(
    turn: &Turn<'_>,
    rig: &Rig,
    session: &Session,
    case: &str,
    paces: &[(Pace, &str)],
) -> Result<Cases> {
    let amounts = turn.settings.amounts();
    let count = |direction, bytes: u64| (bytes / payload(direction) as u64).max(100);
    for direction in Direction::BOTH {
        session
            .run(direction, count(direction, amounts.warm_up / 4), WINDOW)
            .context("warm-up")?;
    }
    let mut cases = Cases::new();
    for (pace, shown) in paces {
        let share = if *pace == STEADY { STEADY_SHARE } else { 1 };
        for direction in Direction::BOTH {
            let before = rig.cpu()?;
            let wanted = count(direction, amounts.datagram_bytes / share);
            let delivery = session.run(direction, wanted, *pace)?;
            let bytes = delivery.delivered * payload(direction) as u64;
            let costs = rig.costs(&before, CPU_PER_GIB, as_gib(bytes))?;
            let doubled = delivery.duplicates;
            ensure!(doubled == 0, "{doubled} datagrams arrived twice");
            let mut figures = rates(&delivery, direction);
            figures.extend(costs);
            if *pace == WINDOW && turn.counts_calls && !rig.members().is_empty() {
                figures.extend(calls(turn, rig, session, direction)?);
            }
            cases.push((format!("{case}, {direction}{shown}"), figures));
        }
    }
    Ok(cases)
}

fn calls(turn: &Turn<'_>, rig: &Rig, session: &Session, direction: Direction) -> Result<Figures> {
    let trace = Trace::attach(rig)?;
    let size = payload(direction) as u64;
    let count = (turn.settings.amounts().datagram_bytes / size).max(100);
    let traced = session.run(direction, count, WINDOW);
    let bytes = traced
        .context("the run failed while system calls were counted")?
        .delivered
        * size;
    let counts = trace.finish()?;
    let counts = counts.iter().map(|calls| float(*calls) / as_gib(bytes));
    Ok(each(CALLS_PER_GIB, &rig.parts(counts)))
}

fn rates(delivery: &Delivery, direction: Direction) -> Figures {
    let seconds = delivery.elapsed.as_secs_f64();
    let delivered = float(delivery.delivered);
    let bits = delivered * payload(direction) as f64 * 8.0;
    vec![
        one(GBIT, bits / 1e9 / seconds),
        one(DATAGRAMS, delivered / seconds),
        one(LOSS, (1.0 - delivered / float(delivery.sent)) * 100.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rates_refer_to_what_arrived() {
        let elapsed = Duration::from_secs(2);
        let delivery = Delivery {
            sent: 1000,
            delivered: 900,
            duplicates: 0,
            elapsed,
        };
        for (direction, size) in [(Direction::Up, 1390.0), (Direction::Down, 1382.0)] {
            let values: Vec<f64> = rates(&delivery, direction)
                .into_iter()
                .map(|(_, value)| value)
                .collect();
            assert!((values[0] - 900.0 * size * 8.0 / 2e9).abs() < 1e-9);
            assert_eq!(values[1], 450.0);
            assert!((values[2] - 10.0).abs() < 1e-9);
        }
    }
}
