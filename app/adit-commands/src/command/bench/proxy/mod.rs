//! `adit bench proxy`: a transfer through client and server of each protocol, over loopback.
//!
//! ```text
//! this process ── SOCKS5 or CONNECT ──▶ client process ── the protocol ──▶ server process ──▶ this process
//! ```
//!
//! `subject` lists the protocols of adit, `rivals` those of other programs, `running` starts their processes and reads
//! their processor time, `transfer` moves the bytes.

mod rivals;
mod running;
mod subject;
mod transfer;

use std::time::Duration;

use adit_cli::{CommandResult, Failure, FailureCode};
use anyhow::{Context, Result, anyhow};
use tokio::time::timeout;

use super::report::{Column, ReportLayout, ReportPrinter};
use crate::args::bench::BenchProxyArgs;
use running::{RunningChain, ScratchFolder};
use subject::Subject;
use transfer::DownloadServer;

/// Bytes that are downloaded first, to warm up.
const WARM_UP: u64 = 8 << 20;
/// Time limit of a transfer: 1 MiB/s, and no less than this.
const TIME_MIN: Duration = Duration::from_secs(60);

const GIB: f64 = (1u64 << 30) as f64;

/// The columns of a transfer.
const LAYOUT: ReportLayout = ReportLayout {
    columns: &[
        Column {
            head: "MB/s",
            key: "mbPerS",
            width: 8,
            digits: 0,
        },
        Column {
            head: "client",
            key: "cpuSPerGibClient",
            width: 8,
            digits: 3,
        },
        Column {
            head: "server",
            key: "cpuSPerGibServer",
            width: 8,
            digits: 3,
        },
        Column {
            head: "CPU s/GiB",
            key: "cpuSPerGib",
            width: 10,
            digits: 3,
        },
    ],
    chart: 3,
    chart_label: None,
    chart_title: "Seconds of processor time per GiB, all processes: less is better",
    name_width: 51,
};

/// The result of a transfer.
struct Measurement {
    took: Duration,
    /// The processor time of each process, the client first.
    cpu: Vec<Option<Duration>>,
}

pub(super) fn bench_proxy(typed: &BenchProxyArgs) -> CommandResult {
    adit_cli::block_on(
        |mut signals| async move { signals.run_until_ended(measure_all(typed)).await },
    )
}

async fn measure_all(typed: &BenchProxyArgs) -> CommandResult {
    let own = std::env::current_exe().context("finding this program")?;
    let folder = ScratchFolder::create()?;
    let mut subjects = subject::of_adit(&own, &folder);
    let mut missing = Vec::new();
    if typed.compare {
        let (found, absent) = rivals::installed();
        subjects.extend(found);
        missing = absent;
    }
    if let Some(text) = &typed.only {
        subjects.retain(|subject| subject.name.contains(text.as_str()));
    }
    if subjects.is_empty() {
        let text = typed.only.as_deref().unwrap_or_default();
        let what = format!("no protocol's name contains `{text}`; without --only all are measured");
        return Err(Failure::new(FailureCode::Usage, what));
    }
    let origin = DownloadServer::start().await?;
    let report = ReportPrinter::new("bench proxy", &typed.output, LAYOUT);
    let bytes = u64::from(typed.mib) << 20;
    let mut failed = Vec::new();
    for subject in &subjects {
        report.show_progress(&subject.name, subjects.len());
        match measure(subject, &folder, &origin, bytes).await {
            Ok(measured) => report.print_row(&subject.name, &figures(&measured, bytes)),
            Err(why) => {
                report.print_row(&subject.name, &[None; LAYOUT.columns.len()]);
                failed.push(format!("{}: {why:#}", subject.name));
            }
        }
    }
    let best = report.best(|a, b| a < b, |name| name.starts_with("adit: ss, 2022-"));
    let advice = best.map(|(name, cost)| {
        let method = name.trim_start_matches("adit: ss, ");
        format!("Use {method}: {cost:.2} s of processor time per GiB, client and server together")
    });
    let people = report.is_for_people();
    report.finish(advice.as_deref());
    if people && !missing.is_empty() {
        println!("Not installed, and not compared: {}", missing.join(", "));
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(FailureCode::Failure, failed.join("\n")))
}

async fn measure(
    subject: &Subject,
    folder: &ScratchFolder,
    origin: &DownloadServer,
    bytes: u64,
) -> Result<Measurement> {
    let limit = TIME_MIN.max(Duration::from_secs(bytes >> 20));
    let chain = RunningChain::start(subject, folder).await?;
    let download = async |bytes| {
        let download = origin.download_through(subject.entry, chain.addr, bytes);
        let result = timeout(limit, download).await;
        let result = result.unwrap_or_else(|_| Err(anyhow!("no end within {} s", limit.as_secs())));
        result.with_context(|| chain.output())
    };
    download(WARM_UP).await?;
    let before = chain.processor_times();
    let took = download(bytes).await?;
    let after = chain.processor_times();
    let spent = before
        .iter()
        .zip(&after)
        .map(|(before, after)| Some((*after)?.saturating_sub((*before)?)));
    Ok(Measurement {
        took,
        cpu: spent.collect(),
    })
}

fn figures(measured: &Measurement, bytes: u64) -> [Option<f64>; 4] {
    let per_gib = |cpu: &Option<Duration>| Some((*cpu)?.as_secs_f64() * GIB / bytes as f64);
    let each: Vec<Option<f64>> = measured.cpu.iter().map(per_gib).collect();
    let sum = each.iter().copied().sum::<Option<f64>>();
    let server = if each.len() > 1 {
        each.last().copied().flatten()
    } else {
        None
    };
    [
        Some(bytes as f64 / 1e6 / measured.took.as_secs_f64()),
        each.first().copied().flatten(),
        server,
        sum,
    ]
}
