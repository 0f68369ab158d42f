//! Suite `lossy`: tunnels over KCP on a link that is slow and loses.

use super::Suite;
use super::turn::Bench;

/// Everybody in turn, on links of their own that lose alike.
pub(super) fn run(bench: &mut Bench) {
    #[cfg(target_os = "linux")]
    let outcome = linux::run(bench);
    #[cfg(not(target_os = "linux"))]
    let outcome = Err(anyhow::anyhow!("network namespaces need Linux"));
    if let Err(why) = outcome {
        eprintln!("{}: not measured: {why:#}", Suite::Lossy);
        let why = format!("{why:#}");
        let journal = &mut bench.journal;
        journal.leave_out(Suite::Lossy, "all of it", "everybody", &why);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    //! Where there are network namespaces.

    use std::fs;
    use std::io::{Read, Write};
    use std::net::SocketAddr;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use adit_interop::origin::Origin;
    use adit_interop::{Adit, Pattern, free_port, kcptun, traffic};
    use adit_link::{FAR, Link, Path};
    use anyhow::{Context, Result, ensure};

    use super::super::Suite;
    use super::super::turn::Bench;
    use crate::account;
    use crate::figure::{
        CPU_PER_GIB, Figures, MAX, MB, OVERRUN, P50, P99, as_gib, each, float, one,
    };

    const RATE: u64 = 100_000_000;
    /// Packets lost of a thousand.
    const LOST: u16 = 50;
    const QUEUE: Duration = Duration::from_millis(50);
    /// Round trips of the transfers; echoes have the first.
    const ROUND_TRIPS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(100)];
    /// Bytes of an echo.
    const ECHO: usize = 64;
    const CHUNK: usize = 64 * 1024;

    /// What everybody is told who is told anything.
    const COMMON: &str = "--key k --mode fast3 --crypt aes --smuxver 1 --nocomp \
                          --sndwnd 2048 --rcvwnd 2048";

    /// Who carries the bytes.
    #[derive(Debug, Clone)]
    enum Tunnel {
        Adit(PathBuf),
        Kcptun,
        /// None: TCP with this congestion control.
        Kernel(&'static str),
    }

    /// A row.
    #[derive(Debug, Clone)]
    struct Entrant {
        who: String,
        tunnel: Tunnel,
        options: String,
    }

    /// How long, and how often.
    #[derive(Debug, Clone, Copy)]
    struct Amounts {
        warm_up: Duration,
        transfer: Duration,
        echoes: usize,
    }

    pub(super) fn run(bench: &mut Bench) -> Result<()> {
        // Without the rights for it nobody is measured.
        drop(Link::start(Path::new(QUEUE, 0), 1)?);
        let seconds = Duration::from_secs;
        let amounts = if bench.settings.smoke {
            Amounts {
                warm_up: Duration::ZERO,
                transfer: seconds(1),
                echoes: 8,
            }
        } else {
            Amounts {
                warm_up: seconds(2),
                transfer: seconds(8),
                echoes: 500,
            }
        };
        let mut everyone = entrants(bench);
        for round in 1..=bench.settings.rounds() {
            for entrant in &everyone {
                for round_trip in ROUND_TRIPS {
                    let case = format!("100 Mbit/s, {round_trip:?} there and back, 5 % lost, down");
                    let outcome = entrant.transfer(round_trip, round, amounts);
                    bench.keep(Suite::Lossy, &case, &entrant.who, round, outcome);
                }
                let case = format!(
                    "{ECHO} bytes there and back over {:?}, 5 % lost",
                    ROUND_TRIPS[0]
                );
                let outcome = entrant.echoes(round, amounts);
                bench.keep(Suite::Lossy, &case, &entrant.who, round, outcome);
                let lines = entrant.lines();
                bench
                    .journal
                    .note(Suite::Lossy, "tunnel", &entrant.who, lines);
            }
            everyone.rotate_left(1);
        }
        Ok(())
    }

    fn entrants(bench: &Bench) -> Vec<Entrant> {
        let mut everyone = Vec::new();
        for peer in &bench.peers {
            let tunnel = match (peer.name(), peer.program()) {
                ("adit", Some(program)) => Tunnel::Adit(program.to_path_buf()),
                ("kcptun", _) => Tunnel::Kcptun,
                _ => continue,
            };
            let rows = [
                ("FEC 10+3", "--ds 10 --ps 3"),
                ("no FEC", "--ds 0 --ps 0"),
                ("FEC 10+3, bbr", "--ds 10 --ps 3 --cc bbr"),
                ("no FEC, bbr", "--ds 0 --ps 0 --cc bbr"),
            ];
            // kcptun has nothing to choose there.
            let count = if peer.name() == "adit" { 4 } else { 2 };
            for (with, more) in rows.into_iter().take(count) {
                everyone.push(Entrant {
                    who: format!("{}, {with}", peer.name()),
                    tunnel: tunnel.clone(),
                    options: format!("{COMMON} {more}"),
                });
            }
        }
        // What a namespace may have without more ado.
        let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
        let known = known.unwrap_or_default();
        for control in ["cubic", "reno", "bbr"] {
            if known.split_whitespace().any(|one| one == control) {
                everyone.push(Entrant {
                    who: format!("TCP {control}"),
                    tunnel: Tunnel::Kernel(control),
                    options: String::new(),
                });
            }
        }
        everyone
    }

    /// The processes of a tunnel, and where it begins.
    struct Running {
        entry: SocketAddr,
        pids: Vec<(&'static str, u32)>,
        _ends: Vec<End>,
    }

    /// What ends when it is dropped.
    #[expect(dead_code, reason = "held until the measurement is over")]
    enum End {
        Adit(Adit),
        Kcptun(kcptun::Running),
    }

    impl Entrant {
        /// As one would type it.
        fn lines(&self) -> Vec<String> {
            let [server, client] = match &self.tunnel {
                Tunnel::Adit(_) => ["adit kcp server", "adit kcp client"],
                Tunnel::Kcptun => ["kcptun-server", "kcptun-client"],
                Tunnel::Kernel(control) => {
                    return vec![format!("sysctl net.ipv4.tcp_congestion_control={control}")];
                }
            };
            let options = &self.options;
            vec![
                format!("{server} -l {FAR}:4000 -t {FAR}:5000 {options}"),
                format!("{client} -l 127.0.0.1:5000 -r {FAR}:4000 {options}"),
            ]
        }

        fn start(&self, link: &Link, origin: SocketAddr) -> Result<Running> {
            let options: Vec<&str> = self.options.split_whitespace().collect();
            let at = SocketAddr::from((FAR, free_port()));
            let (entry, pids, ends) = match &self.tunnel {
                Tunnel::Kernel(_) => (origin, Vec::new(), Vec::new()),
                Tunnel::Adit(bin) => {
                    let [at, to] = [at, origin].map(|addr| addr.to_string());
                    let server = ["kcp", "server", "-l", &at, "-t", &to];
                    let client = ["kcp", "client", "-l", "127.0.0.1:0", "-r", &at];
                    let start = |words: &[&str]| Adit::start_with(bin, words, 1);
                    let server = [&server[..], &options].concat();
                    let client = [&client[..], &options].concat();
                    let mut server = link.far().enter(|| start(&server))?;
                    let mut client = link.near().enter(|| start(&client))?;
                    let pids = vec![
                        ("client", client.process().id()),
                        ("server", server.process().id()),
                    ];
                    let entry = client.addr();
                    (entry, pids, vec![End::Adit(client), End::Adit(server)])
                }
                Tunnel::Kcptun => {
                    let server = || kcptun::server_at(at, origin, &options);
                    let mut server = link.far().enter(server)?;
                    let client = || kcptun::client(at, &options);
                    let mut client = link.near().enter(client)?;
                    let pids = vec![
                        ("client", client.process().id()),
                        ("server", server.process().id()),
                    ];
                    let entry = client.addr();
                    (entry, pids, vec![End::Kcptun(client), End::Kcptun(server)])
                }
            };
            Ok(Running {
                entry,
                pids,
                _ends: ends,
            })
        }

        /// A link, the origin behind it, and the tunnel on it.
        fn world(&self, path: Path, round: u32) -> Result<(Link, Running)> {
            let link = Link::start(path, round.into())?;
            if let Tunnel::Kernel(control) = self.tunnel {
                // Sockets get it when they are made.
                let set = || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", control);
                link.far().enter(set).context(control)?;
            }
            let origin = || Origin::at((FAR, free_port()).into());
            let origin = link.far().enter(origin)?;
            let running = self.start(&link, origin.addr())?;
            Ok((link, running))
        }

        fn transfer(&self, round_trip: Duration, round: u32, amounts: Amounts) -> Result<Figures> {
            let path = Path::new(round_trip, LOST).at(RATE, QUEUE);
            let (link, running) = self.world(path, round)?;
            let cpu = || -> Result<Vec<Duration>> {
                let pids = running.pids.iter();
                pids.map(|(_, pid)| account::cpu_time(*pid)).collect()
            };
            let receive = || -> Result<Figures> {
                let mut stream = traffic::dial(running.entry)?;
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
                let (before, counts) = (cpu()?, link.counts().back);
                let (bytes, took) = take(amounts.transfer)?;
                let (after, now) = (cpu()?, link.counts().back);
                let mut figures = vec![one(MB, float(bytes) / 1e6 / took.as_secs_f64())];
                let dropped = now.dropped - counts.dropped;
                let sent = now.passed + now.lost - counts.passed - counts.lost + dropped;
                figures.push(one(OVERRUN, 100.0 * float(dropped) / float(sent.max(1))));
                let parts = running.pids.iter().zip(after.iter().zip(before));
                let parts: Vec<_> = parts
                    .map(|((part, _), (after, before))| {
                        let spent = after.saturating_sub(before).as_secs_f64();
                        (*part, spent / as_gib(bytes))
                    })
                    .collect();
                figures.extend(each(CPU_PER_GIB, &parts));
                Ok(figures)
            };
            link.near().enter(receive)
        }

        fn echoes(&self, round: u32, amounts: Amounts) -> Result<Figures> {
            let path = Path::new(ROUND_TRIPS[0], LOST).at(RATE, QUEUE);
            let (link, running) = self.world(path, round)?;
            let talk = || -> Result<Vec<f64>> {
                let mut stream = traffic::dial(running.entry)?;
                stream.write_all(b"ECHO\n")?;
                let mut times = Vec::with_capacity(amounts.echoes);
                let (said, mut back) = ([7; ECHO], [0; ECHO]);
                // The first finds the tunnel still being opened.
                for number in 0..=amounts.echoes {
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
    }
}
