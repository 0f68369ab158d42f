//! The third part of suite `users`: what it costs on the path of bytes that a process is looked at, by its log, its
//! metrics and the dashboard. Of two processes, one is looked at, and the other has no page and warnings alone in its log;
//! short transfers go through both in turn. Then they swap roles, so that the places of their memory do not matter.

use std::path::Path;
use std::thread::sleep;

use adit_interop::{AditProcess, TempFolder};
use anyhow::Result;

use super::Suite;
use super::managed_process::{DashboardPage, ManagedProcess, SETTLE_TIME};
use super::processors::AssignedProcessors;
use super::rounds::BenchRun;
use super::turn_costs::{DirectionCosts, record_directions};
use crate::args::LoadAmounts;
use crate::load::in_step::OriginInStep;
use crate::load::{LoadDirection, OriginRoute};

/// The requests of a scraper of metrics, at each event of the page: twice a second or more, where Prometheus would ask
/// every 15 seconds.
const SCRAPE: [&str; 1] = ["GET /metrics"];

/// Parts of a transfer, each of which goes through one process and then through the other.
const PARTS: usize = 8;

/// The key of the Shadowsocks server.
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

/// The listener of the process that is measured.
#[derive(Debug, Clone, Copy)]
enum Dialect {
    Socks,
    Shadowsocks,
}

impl Dialect {
    const ALL: [Self; 2] = [Self::Socks, Self::Shadowsocks];

    /// Returns by what the bytes of a transfer are divided: in step through both processes of a tunnel, they take ten times
    /// as long, of which both wait for most.
    const fn transfer_divisor(self) -> u64 {
        match self {
            Self::Socks => 1,
            Self::Shadowsocks => 8,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Socks => "SOCKS5",
            Self::Shadowsocks => "Shadowsocks, the server",
        }
    }

    fn listener(self) -> String {
        match self {
            Self::Socks => "mixed://127.0.0.1:0?allow_private=127.0.0.0/8".to_owned(),
            Self::Shadowsocks => {
                format!("ss://2022-blake3-aes-128-gcm:{KEY}@127.0.0.1:0?allow_private=127.0.0.0/8")
            }
        }
    }
}

/// Measures each dialect with and without.
pub(super) fn measure_watching(bench: &mut BenchRun, program: &Path) {
    let (amounts, extent) = (bench.settings.amounts(), bench.settings.extent());
    for dialect in Dialect::ALL {
        let amounts = amounts.divided_by(dialect.transfer_divisor());
        let outcome = DirectionCosts::of_starts(extent.starts, |costs| {
            measure_start(program, dialect, amounts, extent.pairs, costs)
        });
        let case = format!("transfers over {}", dialect.title());
        record_directions(
            &mut bench.journal,
            Suite::Users,
            &case,
            ["with warnings alone", "with dashboard, metrics and `info`"],
            outcome,
        );
    }
}

/// Transfers through two processes, one of which is looked at.
fn measure_start(
    program: &Path,
    dialect: Dialect,
    amounts: LoadAmounts,
    pairs: u32,
    costs: &mut DirectionCosts,
) -> Result<()> {
    let processors = AssignedProcessors::single()?;
    let start = || Server::start(&processors, program, dialect);
    let mut pair = ServerPair {
        servers: [start()?, start()?],
        watched: 0,
        origin: OriginInStep::bind()?,
    };
    costs.measure_joint(pairs, amounts, |direction, bytes| {
        pair.transfer_costs(direction, bytes)
    })?;
    pair.close_pages()
}

/// Two processes, one of which is looked at.
struct ServerPair {
    servers: [Server; 2],
    /// The index of the one that is looked at.
    watched: usize,
    origin: OriginInStep,
}

impl ServerPair {
    /// Transfers through both in turn, with each of them looked at. Returns the mean CPU seconds per GiB of the one that is
    /// looked at, and of the other one.
    fn transfer_costs(&mut self, direction: LoadDirection, bytes: u64) -> Result<(f64, f64)> {
        let (mut with, mut without) = (0.0, 0.0);
        // One of them is looked at already, from the call before.
        for watched in [self.watched, 1 - self.watched] {
            self.set_watched(watched)?;
            for part in 0..PARTS {
                for index in [part % 2, 1 - part % 2] {
                    let Some(server) = self.servers.get_mut(index) else {
                        continue;
                    };
                    let bytes = bytes / PARTS as u64;
                    let cost = server.transfer_cost(&self.origin, direction, bytes)?;
                    // Sums, not medians: most of the short transfers see no event of the page.
                    if index == watched {
                        with += cost;
                    } else {
                        without += cost;
                    }
                }
            }
        }
        let count = 2.0 * PARTS as f64;
        Ok((with / count, without / count))
    }

    fn set_watched(&mut self, watched: usize) -> Result<()> {
        self.watched = watched;
        let mut has_changed = false;
        for (index, server) in self.servers.iter_mut().enumerate() {
            has_changed |= server.set_watched(index == watched)?;
        }
        if has_changed {
            // The first look is larger than the others.
            sleep(SETTLE_TIME);
        }
        Ok(())
    }

    fn close_pages(&mut self) -> Result<()> {
        for server in &mut self.servers {
            server.set_watched(false)?;
        }
        Ok(())
    }
}

/// The process that is measured, and the client in front of it.
struct Server {
    process: ManagedProcess,
    client: Option<AditProcess>,
    /// The page, while the process is looked at.
    page: Option<DashboardPage>,
}

impl Server {
    fn start(processors: &AssignedProcessors, program: &Path, dialect: Dialect) -> Result<Self> {
        let folder = TempFolder::new("bench-watched")?;
        let listener = dialect.listener();
        let start = || ManagedProcess::start(program, folder, &listener);
        let process = processors.start_measured(start)?;
        process.set_log_level("warn")?;
        let client = match dialect {
            Dialect::Socks => None,
            Dialect::Shadowsocks => {
                let hop = format!("ss://2022-blake3-aes-128-gcm:{KEY}@{}", process.adit.addr());
                let args = ["run", "-L", "mixed://127.0.0.1:0", "-F", &hop];
                Some(AditProcess::start_with(program, &args, 1)?)
            }
        };
        Ok(Self {
            process,
            client,
            page: None,
        })
    }

    /// Opens the page, and has the process log sessions; or the opposite. Returns true if that was not so before.
    fn set_watched(&mut self, is_watched: bool) -> Result<bool> {
        match (is_watched, self.page.take()) {
            (true, None) => {
                self.process.set_log_level("info")?;
                self.page = Some(DashboardPage::open(&self.process.socket(), &SCRAPE)?);
            }
            (false, Some(page)) => {
                page.close()?;
                self.process.set_log_level("warn")?;
            }
            (_, page) => {
                self.page = page;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn transfer_cost(
        &mut self,
        origin: &OriginInStep,
        direction: LoadDirection,
        bytes: u64,
    ) -> Result<f64> {
        let server = self.process.adit.addr();
        let proxy = self.client.as_ref().map_or(server, AditProcess::addr);
        let to = origin.addr()?;
        let route = OriginRoute::Socks { proxy, to };
        self.process.transfer_cost(origin, route, direction, bytes)
    }
}
