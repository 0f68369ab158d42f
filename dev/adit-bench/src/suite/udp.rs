//! Suite `ss-udp`: datagrams through a tunnel, up and down, paced and not.

use anyhow::{Context, Result, bail, ensure};

use super::Suite;
use super::turn::{Baseline, Bench, Cases, Turn};
use crate::figure::{CALLS_PER_GIB, CPU_PER_GIB, DATAGRAMS, GBIT, LOSS, as_gib, each, float, one};
use crate::load::flight::Pace;
use crate::load::udp::{Delivery, PAYLOAD, Session, UdpOrigin};
use crate::load::{Direction, Way};
use crate::syscalls::Trace;
use crate::topology::{Rig, Topology};

/// So many fit the default receive buffer of a socket with room to spare.
const WINDOW: Pace = Pace::Window(64);

/// A traced process takes some 50 µs for each datagram, so fewer than of a stream's bytes.
const TRACED_SHARE: u64 = 8;

/// A tunnel for every method.
pub(super) fn run(bench: &mut Bench) {
    for method in bench.settings.methods.clone() {
        let topology = Topology::Tunnel(method);
        bench.alternate(
            Suite::SsUdp,
            method.name,
            topology,
            Baseline::With,
            |turn| {
                let origin = UdpOrigin::bind()?;
                let rig = turn.start(origin.addr()?)?;
                let Way::Entry(entry) = rig.way() else {
                    bail!("a tunnel has no entry");
                };
                let session = origin.session(entry).map_err(|why| rig.blame(&why))?;
                measure(turn, &rig, &session, method.name).map_err(|why| rig.blame(&why))
            },
        );
    }
}

fn measure(turn: &Turn<'_>, rig: &Rig, session: &Session, case: &str) -> Result<Cases> {
    let amounts = turn.settings.amounts;
    let count = |bytes: u64| (bytes / PAYLOAD as u64).max(100);
    for direction in Direction::BOTH {
        session
            .run(direction, count(amounts.warm_up / 4), WINDOW)
            .context("warm-up")?;
    }
    let mut cases = Cases::new();
    for (pace, shown) in [(WINDOW, "64 under way"), (Pace::Flood, "flood")] {
        for direction in Direction::BOTH {
            let before = rig.cpu()?;
            let delivery = session.run(direction, count(amounts.datagram_bytes), pace)?;
            let cpu = rig.cpu_since(&before)?;
            let doubled = delivery.duplicates;
            ensure!(doubled == 0, "{doubled} datagrams arrived twice");
            let bytes = delivery.delivered * PAYLOAD as u64;
            let mut figures = rates(&delivery);
            let cost = cpu.iter().map(|seconds| seconds / as_gib(bytes));
            figures.extend(each(CPU_PER_GIB, &rig.parts(cost)));
            if turn.counts_calls && pace == WINDOW && !rig.members().is_empty() {
                let trace = Trace::attach(rig)?;
                let traced = session.run(direction, count(amounts.traced / TRACED_SHARE), pace);
                let bytes = traced.context("under strace")?.delivered * PAYLOAD as u64;
                let counts = trace.finish()?;
                let counts = counts.iter().map(|calls| float(*calls) / as_gib(bytes));
                figures.extend(each(CALLS_PER_GIB, &rig.parts(counts)));
            }
            cases.push((format!("{case}, {direction}, {shown}"), figures));
        }
    }
    Ok(cases)
}

fn rates(delivery: &Delivery) -> crate::figure::Figures {
    let seconds = delivery.elapsed.as_secs_f64();
    let delivered = float(delivery.delivered);
    vec![
        one(GBIT, delivered * PAYLOAD as f64 * 8.0 / 1e9 / seconds),
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
        let values: Vec<f64> = rates(&delivery)
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        assert!((values[0] - 900.0 * 1382.0 * 8.0 / 2e9).abs() < 1e-9);
        assert_eq!(values[1], 450.0);
        assert!((values[2] - 10.0).abs() < 1e-9);
    }
}
