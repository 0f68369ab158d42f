//! Suite `lossy`: tunnels over KCP on a slow link with losses.

use std::fs;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use adit_interop::BytePattern;
use adit_interop::origin::OriginServer;
use adit_link::{LinkPath, NamespaceLink};
use anyhow::{Context, Result, ensure};

use super::Suite;
use super::linked_world::LinkedWorld;
use super::rounds::BenchRun;
use crate::figures::{
    CPU_PER_GIB, Figures, MAX_LATENCY, MB_PER_SECOND, P50, P99, QUEUE_DROPS, as_float, as_gib,
    whole_figure,
};
use crate::topology::Topology;

const RATE: u64 = 100_000_000;
/// Lost packets, in thousandths.
const LOST_PER_MILLE: u16 = 50;
const QUEUE: Duration = Duration::from_millis(50);
/// Round-trip times of the transfers; the echoes use the first one.
const ROUND_TRIPS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(100)];
/// Bytes of an echo.
const ECHO_LEN: usize = 64;
const CHUNK: usize = 64 * 1024;

/// The options of both ends of a tunnel.
macro_rules! options {
    ($more:literal) => {
        concat!(
            "--key k --mode fast3 --crypt aes --smuxver 1 --nocomp --sndwnd 2048 ",
            "--rcvwnd 2048 ",
            $more
        )
    };
}

/// The implementations of a tunnel, the names of their settings, and their options.
const TUNNELS: [(&str, &str, &str); 6] = [
    ("adit", "FEC 10+3", options!("--ds 10 --ps 3")),
    ("adit", "no FEC", options!("--ds 0 --ps 0")),
    ("adit", "FEC 10+3, bbr", options!("--ds 10 --ps 3 --cc bbr")),
    ("adit", "no FEC, bbr", options!("--ds 0 --ps 0 --cc bbr")),
    // It has no choice of congestion control.
    ("kcptun", "FEC 10+3", options!("--ds 10 --ps 3")),
    ("kcptun", "no FEC", options!("--ds 0 --ps 0")),
];

/// A row.
#[derive(Debug, Clone, Copy)]
enum LossyEntrant {
    Tunnel(&'static str, &'static str, &'static str),
    /// TCP with this congestion control.
    Kernel(&'static str),
}

/// Durations and counts.
#[derive(Debug, Clone, Copy)]
struct LossyAmounts {
    warm_up: Duration,
    transfer: Duration,
    echoes: usize,
}

/// Measures all entrants in turn, on separate links that lose the same packets.
pub(super) fn run_suite(bench: &mut BenchRun) {
    if let Err(why) = measure_all(bench) {
        eprintln!("{}: not measured: {why:#}", Suite::Lossy);
        let why = format!("{why:#}");
        let journal = &mut bench.journal;
        journal.record_skipped(Suite::Lossy, "all of it", "all peers", &why);
    }
}

fn measure_all(bench: &mut BenchRun) -> Result<()> {
    // Without the privileges for it, nothing is measured.
    drop(NamespaceLink::start(LinkPath::new(QUEUE, 0), 1)?);
    let seconds = Duration::from_secs;
    let (warm_up, transfer, echoes) = match bench.settings.smoke {
        true => (Duration::ZERO, seconds(1), 8),
        false => (seconds(2), seconds(8), 500),
    };
    let amounts = LossyAmounts {
        warm_up,
        transfer,
        echoes,
    };
    let mut everyone = all_entrants(bench);
    for round in 1..=bench.settings.rounds() {
        for entrant in &everyone {
            let who = entrant.name();
            for round_trip in ROUND_TRIPS {
                let case = format!("100 Mbit/s, {round_trip:?} there and back, 5 % lost, down");
                let world = entrant.start_world(bench, round_trip, round);
                if let Ok(world) = &world {
                    let lines = entrant.start_commands(world);
                    bench
                        .journal
                        .record_command(Suite::Lossy, "tunnel", &who, lines);
                }
                let outcome = world.and_then(|world| measure_transfer(&world, amounts));
                bench
                    .journal
                    .record_outcome(Suite::Lossy, &case, &who, round, outcome);
            }
            let [first, ..] = ROUND_TRIPS;
            let case = format!("{ECHO_LEN} bytes there and back over {first:?}, 5 % lost");
            let world = entrant.start_world(bench, first, round);
            let outcome = world.and_then(|world| measure_echoes(&world, amounts.echoes));
            bench
                .journal
                .record_outcome(Suite::Lossy, &case, &who, round, outcome);
        }
        everyone.rotate_left(1);
    }
    Ok(())
}

fn all_entrants(bench: &BenchRun) -> Vec<LossyEntrant> {
    let here = |who: &str| bench.peers.iter().any(|peer| peer.name() == who);
    let tunnels = TUNNELS.into_iter().filter(|(who, ..)| here(who));
    let tunnels = tunnels.map(|(who, with, options)| LossyEntrant::Tunnel(who, with, options));
    // The algorithms that a namespace may use without further preparation.
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let known = known.unwrap_or_default();
    let known = |control: &&str| known.split_whitespace().any(|one| one == *control);
    let controls = ["cubic", "reno", "bbr"].into_iter().filter(known);
    tunnels.chain(controls.map(LossyEntrant::Kernel)).collect()
}

impl LossyEntrant {
    fn name(self) -> String {
        match self {
            Self::Tunnel(who, with, _) => format!("{who}, {with}"),
            Self::Kernel(control) => format!("TCP {control}"),
        }
    }

    /// Starts a link, the origin behind it, and the tunnel over it.
    fn start_world(
        self,
        bench: &BenchRun,
        round_trip: Duration,
        round: u32,
    ) -> Result<LinkedWorld<OriginServer>> {
        let path = LinkPath::new(round_trip, LOST_PER_MILLE).with_rate(RATE, QUEUE);
        let link = NamespaceLink::start(path, round.into())?;
        let who = match self {
            Self::Tunnel(who, _, options) => {
                let peer = bench.peers.iter().find(|peer| peer.name() == who);
                peer.zip(Some(Topology::Kcptun(options)))
            }
            Self::Kernel(control) => {
                // Sockets inherit the setting when they are created.
                let set = || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", control);
                link.far().run_inside(set).context(control)?;
                None
            }
        };
        LinkedWorld::start(link, OriginServer::start_at, who)
    }

    fn start_commands(self, world: &LinkedWorld<OriginServer>) -> Vec<String> {
        match self {
            Self::Tunnel(..) => world.rig.commands(),
            Self::Kernel(control) => {
                vec![format!("sysctl net.ipv4.tcp_congestion_control={control}")]
            }
        }
    }
}

fn measure_transfer(
    LinkedWorld { rig, link, .. }: &LinkedWorld<OriginServer>,
    amounts: LossyAmounts,
) -> Result<Figures> {
    let receive = || -> Result<Figures> {
        let mut stream = rig.route().dial()?;
        // More than arrives in any time.
        stream.write_all(b"GET 1000000000000 1\n")?;
        let (mut pattern, mut got) = (BytePattern::new(1), vec![0; CHUNK]);
        let mut take = |until: Duration| -> Result<(u64, Duration)> {
            let (began, mut bytes) = (Instant::now(), 0u64);
            while began.elapsed() < until {
                let wanted = pattern.next_bytes(CHUNK);
                stream.read_exact(&mut got)?;
                ensure!(got == wanted, "the transfer has wrong bytes");
                bytes += u64::try_from(CHUNK)?;
            }
            Ok((bytes, began.elapsed()))
        };
        take(amounts.warm_up)?;
        let (before, counts) = (rig.cpu_times()?, link.counts().far_to_near);
        let (bytes, took) = take(amounts.transfer)?;
        let costs = rig.costs(&before, CPU_PER_GIB, as_gib(bytes))?;
        let now = link.counts().far_to_near;
        let dropped = now.dropped - counts.dropped;
        let sent = now.passed + now.lost - counts.passed - counts.lost + dropped;
        let mut figures = vec![
            whole_figure(MB_PER_SECOND, as_float(bytes) / 1e6 / took.as_secs_f64()),
            whole_figure(
                QUEUE_DROPS,
                100.0 * as_float(dropped) / as_float(sent.max(1)),
            ),
        ];
        figures.extend(costs);
        Ok(figures)
    };
    link.near().run_inside(receive)
}

fn measure_echoes(
    LinkedWorld { rig, link, .. }: &LinkedWorld<OriginServer>,
    count: usize,
) -> Result<Figures> {
    let talk = || -> Result<Vec<f64>> {
        let mut stream = rig.route().dial()?;
        stream.write_all(b"ECHO\n")?;
        let mut times = Vec::with_capacity(count);
        let (said, mut back) = ([7; ECHO_LEN], [0; ECHO_LEN]);
        // The first echo includes opening the tunnel.
        for number in 0..=count {
            let began = Instant::now();
            stream.write_all(&said)?;
            stream.read_exact(&mut back)?;
            ensure!(back == said, "an echo has wrong bytes");
            if number > 0 {
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    };
    let times = link.near().run_inside(talk)?;
    let share = |percent: usize| {
        let place = (times.len() - 1) * percent / 100;
        times.get(place).copied().context("no echo was measured")
    };
    Ok(vec![
        whole_figure(P50, share(50)?),
        whole_figure(P99, share(99)?),
        whole_figure(MAX_LATENCY, share(100)?),
    ])
}
