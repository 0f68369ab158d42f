//! The third part of suite `users`: what it costs on the path of bytes that a process is looked at, by its log, its
//! metrics and the dashboard. In every other turn, the same process has no page and warnings alone in its log.

use std::net::SocketAddr;
use std::path::Path;
use std::thread::sleep;

use adit_interop::{AditProcess, TempFolder};
use anyhow::Result;

use super::Suite;
use super::managed_process::{DashboardPage, ManagedProcess, SETTLE_TIME};
use super::processors::SplitProcessors;
use super::rounds::BenchRun;
use super::turn_costs::{DirectionCosts, record_directions};
use crate::args::LoadAmounts;
use crate::load::origin::{LoadOrigin, OriginService};
use crate::load::{LoadDirection, OriginRoute};

/// The requests of a scraper of metrics, at each event of the page: twice a second or more, where Prometheus would ask
/// every 15 seconds.
const SCRAPE: [&str; 1] = ["GET /metrics"];

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

    /// Returns by what the bytes of a transfer are divided: through both processes of a tunnel they take several times as
    /// long.
    const fn transfer_divisor(self) -> u64 {
        match self {
            Self::Socks => 1,
            Self::Shadowsocks => 2,
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
        let mut costs = DirectionCosts::default();
        let mut starts = 0..extent.starts;
        let outcome = starts
            .try_for_each(|_| measure_start(program, dialect, amounts, extent.pairs, &mut costs));
        let case = format!("transfers over {}", dialect.title());
        record_directions(
            &mut bench.journal,
            Suite::Users,
            &case,
            ["with warnings alone", "with dashboard, metrics and `info`"],
            outcome.map(|()| costs),
        );
    }
}

/// Transfers through a process that is looked at in every other turn.
fn measure_start(
    program: &Path,
    dialect: Dialect,
    amounts: LoadAmounts,
    pairs: u32,
    costs: &mut DirectionCosts,
) -> Result<()> {
    let processors = SplitProcessors::new()?;
    let mut server = Server::start(&processors, program, dialect)?;
    let origin = LoadOrigin::start(OriginService::Streams)?;
    let to = origin.addr();
    costs.measure(pairs, amounts, |is_watched, direction, bytes| {
        server.set_watched(is_watched)?;
        server.transfer_cost(to, direction, bytes)
    })?;
    server.set_watched(false)
}

/// The process that is measured, and the client in front of it.
struct Server {
    process: ManagedProcess,
    client: Option<AditProcess>,
    /// The page, while the process is looked at.
    page: Option<DashboardPage>,
}

impl Server {
    fn start(processors: &SplitProcessors, program: &Path, dialect: Dialect) -> Result<Self> {
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

    /// Opens the page, and has the process log sessions; or the opposite.
    fn set_watched(&mut self, is_watched: bool) -> Result<()> {
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
                return Ok(());
            }
        }
        // The first look is larger than the others.
        sleep(SETTLE_TIME);
        Ok(())
    }

    fn transfer_cost(
        &mut self,
        to: SocketAddr,
        direction: LoadDirection,
        bytes: u64,
    ) -> Result<f64> {
        let server = self.process.adit.addr();
        let proxy = self.client.as_ref().map_or(server, AditProcess::addr);
        let route = OriginRoute::Socks { proxy, to };
        self.process.transfer_cost(route, direction, bytes)
    }
}
