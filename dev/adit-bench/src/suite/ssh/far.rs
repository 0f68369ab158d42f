//! A server that is far away: what the windows of SSH leave of a fast and long path.

use crate::suite::Suite;
use crate::suite::turn::Bench;

/// Everybody in turn, each on a link of its own.
pub(super) fn run(bench: &mut Bench, able: &[&'static str]) {
    #[cfg(target_os = "linux")]
    let outcome = linux::run(bench, able);
    #[cfg(not(target_os = "linux"))]
    let outcome = {
        let _ = able;
        Err(anyhow::anyhow!("network namespaces need Linux"))
    };
    if let Err(why) = outcome {
        eprintln!("{}: a far server: not measured: {why:#}", Suite::Ssh);
        let why = format!("{why:#}");
        let journal = &mut bench.journal;
        journal.leave_out(Suite::Ssh, "a far server", "everybody", &why);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    //! Where there are network namespaces.

    use std::fs;
    use std::net::SocketAddr;
    use std::time::Duration;

    use adit_interop::free_port;
    use adit_link::{FAR, Link, Namespace, Path};
    use anyhow::{Context, Result};

    use super::super::SUITES;
    use crate::account;
    use crate::figure::{CPU_PER_GIB, MB, as_gib, each, float, one};
    use crate::load::content::Check;
    use crate::load::origin::{Origin, Service};
    use crate::load::tcp::transfer;
    use crate::load::{Direction, Way};
    use crate::peers::ssh::Use;
    use crate::peers::{Peer, Role, Running};
    use crate::suite::Suite;
    use crate::suite::turn::{Bench, Cases, NO_RELAY};

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

    pub(super) fn run(bench: &mut Bench, able: &[&'static str]) -> Result<()> {
        let mut path = Path::new(ROUND_TRIP, 0).at(RATE, QUEUE);
        // The processor is for the ends.
        path.offload = true;
        // Without the rights for it nobody is measured.
        drop(Link::start(path, 1)?);
        let bytes = bench.settings.amounts().bytes.min(MOST);
        let warm_up = if bench.settings.smoke { 0 } else { WARM_UP };
        let case = format!(
            "{}, -L, 1 Gbit/s, {ROUND_TRIP:?} there and back",
            SUITES[0].name()
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
                    .and_then(|world| world.measure(&case, warm_up.min(bytes), bytes));
                let who = who.unwrap_or(NO_RELAY);
                match measured {
                    Ok((cases, lines)) => {
                        for (case, figures) in cases {
                            bench.keep(Suite::Ssh, &case, who, round, Ok(figures));
                        }
                        bench.journal.note(Suite::Ssh, "a far server", who, lines);
                    }
                    Err(why) => bench.keep(Suite::Ssh, &case, who, round, Err(why)),
                }
            }
            everyone.rotate_left(1);
        }
        Ok(())
    }

    /// A link, the origin behind it, and client and server at its ends; none for TCP alone.
    struct World {
        origin: Option<Origin>,
        members: Vec<(&'static str, Running)>,
        way: Way,
        link: Link,
    }

    fn world(path: Path, round: u32, peer: Option<&Peer>) -> Result<World> {
        let link = Link::start(path, round.into())?;
        for end in [link.near(), link.far()] {
            widen(end)?;
        }
        let far = |port| SocketAddr::from((FAR, port));
        let at = far(free_port());
        let origin = link
            .far()
            .enter(|| Origin::start_at(Service::Streams, at))?;
        let mut world = World {
            origin: Some(origin),
            members: Vec::new(),
            way: Way::Entry(at),
            link,
        };
        if let Some(peer) = peer {
            let role = Role::SshServer(SUITES[0]);
            let place = far(free_port());
            let server = world
                .link
                .far()
                .enter(|| peer.start_at(&role, place, None))?;
            let role = Role::SshClient {
                suite: SUITES[0],
                server: place,
                what: Use::Forward(at),
            };
            let client = world.link.near().enter(|| peer.start(&role, None))?;
            world.way = Way::Entry(client.at());
            world.members = vec![("client", client), ("server", server)];
        }
        Ok(world)
    }

    fn widen(end: &Namespace) -> Result<()> {
        end.enter(|| {
            LIMITS
                .iter()
                .try_for_each(|limit| fs::write(limit, BUFFERS).context(*limit))
        })
    }

    impl World {
        fn cpu(&self) -> Result<Vec<Duration>> {
            let pids = self.members.iter().map(|(_, running)| running.pid());
            pids.map(account::cpu_time).collect()
        }

        /// Both directions, and how the processes were started.
        fn measure(&self, case: &str, warm_up: u64, bytes: u64) -> Result<(Cases, Vec<String>)> {
            let mut cases = Cases::new();
            for direction in Direction::BOTH {
                let carry = |bytes| {
                    let moved = || transfer(self.way, direction, bytes, 1, Check::Sampled);
                    self.link.near().enter(moved)
                };
                if warm_up > 0 {
                    carry(warm_up).context("warm-up")?;
                }
                let before = self.cpu()?;
                let moved = carry(bytes)?;
                let rate = float(moved.bytes) / 1e6 / moved.elapsed.as_secs_f64();
                let mut figures = vec![one(MB, rate)];
                let spent: Vec<_> = self
                    .members
                    .iter()
                    .zip(self.cpu()?.into_iter().zip(before))
                    .map(|((part, _), (now, then))| {
                        let spent = now.saturating_sub(then).as_secs_f64();
                        (*part, spent / as_gib(moved.bytes))
                    })
                    .collect();
                figures.extend(each(CPU_PER_GIB, &spent));
                cases.push((format!("{case}, {direction}"), figures));
            }
            let shown = self.members.iter().map(|(_, running)| running.shown());
            Ok((cases, shown.map(str::to_owned).collect()))
        }
    }

    /// The origin's threads wait inside: they are told to end there.
    impl Drop for World {
        fn drop(&mut self) {
            let origin = self.origin.take();
            self.link.far().enter(|| drop(origin));
        }
    }
}
