//! The third part of suite `users`: what it costs on the path of bytes that a process is looked at, by its log, its
//! metrics and the dashboard, beside the same process without API and with warnings alone in its log, in turn.

use std::path::Path;

use adit_interop::{AditProcess, TempFolder};
use anyhow::{Context, Result};

use super::Suite;
use super::managed_process::{DashboardPage, ManagedProcess};
use super::rounds::{BenchRun, CaseFigures, pair_in_turn};
use crate::args::LoadAmounts;
use crate::figures::{CPU_PER_GIB, as_gib, whole_figure};
use crate::load::content::CheckMode;
use crate::load::origin::{LoadOrigin, OriginService};
use crate::load::tcp::transfer;
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

/// Measures each dialect with and without, in every round.
pub(super) fn measure_watching(bench: &mut BenchRun, program: &Path) {
    let amounts = bench.settings.amounts();
    for round in 1..=bench.settings.rounds() {
        let pair = pair_in_turn(round);
        for dialect in Dialect::ALL {
            for is_watched in pair {
                let who = match is_watched {
                    true => "with dashboard, metrics and `info`",
                    false => "with warnings alone",
                };
                let case = format!("transfers over {}", dialect.title());
                let cases = match measure_transfers(program, dialect, is_watched, amounts) {
                    Ok(cases) => cases
                        .into_iter()
                        .map(|(case, own)| (case, Ok(own)))
                        .collect(),
                    Err(why) => vec![(case, Err(why))],
                };
                for (case, outcome) in cases {
                    bench
                        .journal
                        .record_outcome(Suite::Users, &case, who, round, outcome);
                }
            }
        }
    }
}

/// Returns the cost of each direction for the process with the listener.
fn measure_transfers(
    program: &Path,
    dialect: Dialect,
    is_watched: bool,
    amounts: LoadAmounts,
) -> Result<CaseFigures> {
    let folder = TempFolder::new("bench-watched")?;
    let mut managed = ManagedProcess::start(program, folder, &dialect.listener(), is_watched)?;
    let origin = LoadOrigin::start(OriginService::Streams)?;
    let server = managed.adit.addr();
    let client = match dialect {
        Dialect::Socks => None,
        Dialect::Shadowsocks => {
            let hop = format!("ss://2022-blake3-aes-128-gcm:{KEY}@{server}");
            let args = ["run", "-L", "mixed://127.0.0.1:0", "-F", &hop];
            Some(AditProcess::start_with(program, &args, 1)?)
        }
    };
    let proxy = client.as_ref().map_or(server, AditProcess::addr);
    let way = OriginRoute::Socks {
        proxy,
        to: origin.addr(),
    };
    for direction in LoadDirection::BOTH {
        transfer(way, direction, amounts.warm_up, 1, CheckMode::Whole).context("warm-up")?;
    }
    let page = match is_watched {
        true => Some(DashboardPage::open(&managed.socket(), &SCRAPE)?),
        false => None,
    };
    let mut cases = CaseFigures::new();
    for direction in LoadDirection::BOTH {
        let before = managed.cpu_time()?;
        let moved = transfer(way, direction, amounts.bytes, 1, CheckMode::Sampled)?;
        let spent = managed.cpu_time()?.saturating_sub(before).as_secs_f64();
        let cost = whole_figure(CPU_PER_GIB, spent / as_gib(moved.bytes));
        cases.push((
            format!("transfers over {}, {direction}", dialect.title()),
            vec![cost],
        ));
    }
    if let Some(page) = page {
        page.close()?;
    }
    Ok(cases)
}
