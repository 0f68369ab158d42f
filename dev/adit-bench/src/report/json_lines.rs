//! JSON lines: the run, every sample, failures and skipped cases, and all command lines.
//!
//! The keys of figures are [`Metric::key`](crate::figures::Metric::key), not the titles of tables.

use serde_json::{Map, Value, json};

use crate::environment::RunEnvironment;
use crate::sample_log::{BenchSample, MissingSample, SampleLog, StartedCommand};

/// Returns one object per line, distinguished by `record`.
pub(crate) fn json_lines(environment: &RunEnvironment, journal: &SampleLog) -> String {
    let mut records = vec![run_record(environment)];
    records.extend(journal.commands.iter().map(command_record));
    records.extend(journal.samples.iter().map(sample_record));
    records.extend(journal.gaps.iter().map(gap_record));
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn run_record(environment: &RunEnvironment) -> Value {
    let versions: Map<String, Value> = environment
        .versions
        .iter()
        .map(|(name, version)| ((*name).to_owned(), json!(version)))
        .collect();
    json!({
        "record": "run",
        "date": environment.date,
        "cpu": environment.cpu,
        "kernel": environment.kernel,
        "load_average": environment.load,
        "command": environment.command,
        "commit": environment.commit,
        "versions": versions,
        "missing": environment.missing,
        "perf": environment.counter,
    })
}

fn command_record(command: &StartedCommand) -> Value {
    json!({
        "record": "command",
        "suite": command.suite.to_string(),
        "topology": command.topology,
        "implementation": command.implementation,
        "command": command.line,
    })
}

fn sample_record(sample: &BenchSample) -> Value {
    let figures: Map<String, Value> = sample
        .figures
        .iter()
        .map(|(metric, value)| (metric.key(), json!(value)))
        .collect();
    json!({
        "record": "sample",
        "suite": sample.suite.to_string(),
        "case": sample.case,
        "implementation": sample.implementation,
        "round": sample.round,
        "figures": figures,
    })
}

fn gap_record(gap: &MissingSample) -> Value {
    json!({
        "record": if gap.failed { "failure" } else { "absence" },
        "suite": gap.suite.to_string(),
        "case": gap.case,
        "implementation": gap.implementation,
        "why": gap.reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_log::tests::journal;

    #[test]
    fn every_line_is_an_object() {
        let text = json_lines(&RunEnvironment::default(), &journal());
        let records: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let kinds: Vec<&str> = records
            .iter()
            .map(|r| r["record"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["run", "sample", "sample", "sample", "sample"]);
        assert_eq!(records[1]["figures"]["cpu_s_per_gib_client"], 1.0);
    }
}
