//! Suite `lossy`: tunnels over KCP on a link that is slow and loses.

use std::fs;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use adit_interop::Pattern;
use adit_interop::origin::Origin;
use adit_link::{Link, Path};
use anyhow::{Context, Result, ensure};

use super::Suite;
use super::turn::Bench;
use super::world::World;
use crate::figure::{CPU_PER_GIB, Figures, MAX, MB, OVERRUN, P50, P99, as_gib, float, one};
use crate::topology::Topology;

const RATE: u64 = 100_000_000;
/// Packets lost of a thousand.
const LOST: u16 = 50;
const QUEUE: Duration = Duration::from_millis(50);
/// Round trips of the transfers; echoes have the first.
const ROUND_TRIPS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(100)];
/// Bytes of an echo.
const ECHO: usize = 64;
const CHUNK: usize = 64 * 1024;

/// What both ends of a tunnel are told.
macro_rules! options {
    ($more:literal) => {
        concat!(
            "--key k --mode fast3 --crypt aes --smuxver 1 --nocomp --sndwnd 2048 ",
            "--rcvwnd 2048 ",
            $more
        )
    };
}

/// Who carries the bytes, how it is called there, and its options.
const TUNNELS: [(&str, &str, &str); 6] = [
    ("adit", "FEC 10+3", options!("--ds 10 --ps 3")),
    ("adit", "no FEC", options!("--ds 0 --ps 0")),
    ("adit", "FEC 10+3, bbr", options!("--ds 10 --ps 3 --cc bbr")),
    ("adit", "no FEC, bbr", options!("--ds 0 --ps 0 --cc bbr")),
    // It has no congestion control to choose.
    ("kcptun", "FEC 10+3", options!("--ds 10 --ps 3")),
    ("kcptun", "no FEC", options!("--ds 0 --ps 0")),
];

/// A row.
#[derive(Debug, Clone, Copy)]
enum Entrant {
    Tunnel(&'static str, &'static str, &'static str),
    /// TCP with this congestion control.
    Kernel(&'static str),
}

/// How long, and how often.
#[derive(Debug, Clone, Copy)]
struct Amounts {
    warm_up: Duration,
    transfer: Duration,
    echoes: usize,
}

/// Everybody in turn, on links of their own that lose alike.
pub(super) fn run(bench: &mut Bench) {
    if let Err(why) = all(bench) {
        eprintln!("{}: not measured: {why:#}", Suite::Lossy);
        let why = format!("{why:#}");
        let journal = &mut bench.journal;
        journal.leave_out(Suite::Lossy, "all of it", "all programs", &why);
    }
}

fn all(bench: &mut Bench) -> Result<()> {
    // Without the rights for it nobody is measured.
    drop(Link::start(Path::new(QUEUE, 0), 1)?);
    let seconds = Duration::from_secs;
    let (warm_up, transfer, echoes) = match bench.settings.smoke {
        true => (Duration::ZERO, seconds(1), 8),
        false => (seconds(2), seconds(8), 500),
    };
    let amounts = Amounts {
        warm_up,
        transfer,
        echoes,
    };
    let mut everyone = entrants(bench);
    for round in 1..=bench.settings.rounds() {
        for entrant in &everyone {
            let who = entrant.name();
            for round_trip in ROUND_TRIPS {
                let case = format!("100 Mbit/s, {round_trip:?} there and back, 5 % lost, down");
                let world = entrant.world(bench, round_trip, round);
                if let Ok(world) = &world {
                    let lines = entrant.commands(world);
                    bench.journal.note(Suite::Lossy, "tunnel", &who, lines);
                }
                let outcome = world.and_then(|world| self::transfer(&world, amounts));
                bench
                    .journal
                    .keep(Suite::Lossy, &case, &who, round, outcome);
            }
            let [first, ..] = ROUND_TRIPS;
            let case = format!("{ECHO} bytes there and back over {first:?}, 5 % lost");
            let world = entrant.world(bench, first, round);
            let outcome = world.and_then(|world| self::echoes(&world, amounts.echoes));
            bench
                .journal
                .keep(Suite::Lossy, &case, &who, round, outcome);
        }
        everyone.rotate_left(1);
    }
    Ok(())
}

fn entrants(bench: &Bench) -> Vec<Entrant> {
    let here = |who: &str| bench.peers.iter().any(|peer| peer.name() == who);
    let tunnels = TUNNELS.into_iter().filter(|(who, ..)| here(who));
    let tunnels = tunnels.map(|(who, with, options)| Entrant::Tunnel(who, with, options));
    // What a namespace may have without more ado.
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let known = known.unwrap_or_default();
    let known = |control: &&str| known.split_whitespace().any(|one| one == *control);
    let controls = ["cubic", "reno", "bbr"].into_iter().filter(known);
    tunnels.chain(controls.map(Entrant::Kernel)).collect()
}

impl Entrant {
    fn name(self) -> String {
        match self {
            Self::Tunnel(who, with, _) => format!("{who}, {with}"),
            Self::Kernel(control) => format!("TCP {control}"),
        }
    }

    /// A link, the origin behind it, and the tunnel on it.
    fn world(self, bench: &Bench, round_trip: Duration, round: u32) -> Result<World<Origin>> {
        let path = Path::new(round_trip, LOST).at(RATE, QUEUE);
        let link = Link::start(path, round.into())?;
        let who = match self {
            Self::Tunnel(who, _, options) => {
                let peer = bench.peers.iter().find(|peer| peer.name() == who);
                peer.zip(Some(Topology::Kcptun(options)))
            }
            Self::Kernel(control) => {
                // Sockets get it when they are made.
                let set = || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", control);
                link.far().enter(set).context(control)?;
                None
            }
        };
        World::start(link, Origin::at, who)
    }

    fn commands(self, world: &World<Origin>) -> Vec<String> {
        match self {
            Self::Tunnel(..) => world.rig.commands(),
            Self::Kernel(control) => {
                vec![format!("sysctl net.ipv4.tcp_congestion_control={control}")]
            }
        }
    }
}

fn transfer(World { rig, link, .. }: &World<Origin>, amounts: Amounts) -> Result<Figures> {
    let receive = || -> Result<Figures> {
        let mut stream = rig.way().dial()?;
        // More than comes in any time.
        stream.write_all(b"GET 1000000000000 1\n")?;
        let (mut pattern, mut got) = (Pattern::new(1), vec![0; CHUNK]);
        let mut take = |until: Duration| -> Result<(u64, Duration)> {
            let (began, mut bytes) = (Instant::now(), 0u64);
            while began.elapsed() < until {
                let wanted = pattern.take(CHUNK);
                stream.read_exact(&mut got)?;
                ensure!(got == wanted, "wrong bytes");
                bytes += u64::try_from(CHUNK)?;
            }
            Ok((bytes, began.elapsed()))
        };
        take(amounts.warm_up)?;
        let (before, counts) = (rig.cpu()?, link.counts().back);
        let (bytes, took) = take(amounts.transfer)?;
        let costs = rig.costs(&before, CPU_PER_GIB, as_gib(bytes))?;
        let now = link.counts().back;
        let dropped = now.dropped - counts.dropped;
        let sent = now.passed + now.lost - counts.passed - counts.lost + dropped;
        let mut figures = vec![
            one(MB, float(bytes) / 1e6 / took.as_secs_f64()),
            one(OVERRUN, 100.0 * float(dropped) / float(sent.max(1))),
        ];
        figures.extend(costs);
        Ok(figures)
    };
    link.near().enter(receive)
}

fn echoes(World { rig, link, .. }: &World<Origin>, count: usize) -> Result<Figures> {
    let talk = || -> Result<Vec<f64>> {
        let mut stream = rig.way().dial()?;
        stream.write_all(b"ECHO\n")?;
        let mut times = Vec::with_capacity(count);
        let (said, mut back) = ([7; ECHO], [0; ECHO]);
        // The first finds the tunnel still being opened.
        for number in 0..=count {
            let began = Instant::now();
            stream.write_all(&said)?;
            stream.read_exact(&mut back)?;
            ensure!(back == said, "wrong bytes");
            if number > 0 {
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    };
    let times = link.near().enter(talk)?;
    let share = |percent: usize| {
        let place = (times.len() - 1) * percent / 100;
        times.get(place).copied().context("no echo")
    };
    Ok(vec![
        one(P50, share(50)?),
        one(P99, share(99)?),
        one(MAX, share(100)?),
    ])
}
