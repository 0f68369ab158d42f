//! The collector of OpenTelemetry itself.

use std::process::Command;

use adit_interop::external_tools::{self, missing_program_message};
use adit_interop::origin::OriginServer;
use adit_interop::{ChildProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};

use crate::{download, start_exporting};

#[test]
fn the_collector_of_opentelemetry_reads_metrics_and_traces() {
    let folder = TempFolder::new("otlp-collector").unwrap();
    let at = loopback_addr(free_port());
    let config = format!(
        "receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: {at}\n\
         exporters:\n  debug:\n    verbosity: detailed\n\
         service:\n  telemetry:\n    metrics:\n      level: none\n  pipelines:\n    \
         traces: {{receivers: [otlp], exporters: [debug]}}\n    \
         metrics: {{receivers: [otlp], exporters: [debug]}}\n"
    );
    let config = folder.write_file("otelcol.yaml", config).unwrap();
    let program = external_tools::peer_path("otelcol");
    assert!(program.is_file(), "{}", missing_program_message("otelcol"));
    let mut command = Command::new(program);
    command
        .arg("--config")
        .arg(format!("file:{}", config.display()));
    let mut collector = ChildProcess::spawn(command).unwrap();
    collector
        .wait_lines("Everything is ready", 1, TEST_TIMEOUT)
        .unwrap();
    let origin = OriginServer::start().unwrap();
    let adit = start_exporting(&folder, at, None);
    download(adit.addr(), &origin, 100_000);
    for line in [
        "-> service.name: Str(adit)",
        ": session",
        "-> adit.route: Str(main)",
        "-> adit.end: Str(finished)",
        "-> Name: adit_bytes",
        "-> Name: adit_dial_seconds",
        "-> IsMonotonic: true",
        "-> AggregationTemporality: Cumulative",
    ] {
        let found = collector.wait_lines(line, 1, TEST_TIMEOUT);
        found.unwrap_or_else(|why| panic!("{line}: {why}"));
    }
    adit.stop().unwrap();
    collector.terminate().unwrap();
}
