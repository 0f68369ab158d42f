//! The results of one run.

use std::fmt::Display;

use anyhow::Result;

use crate::figures::{Figures, Metric, Quantity, RoundSpread, format_short};
use crate::suite::Suite;

/// The samples of a run, in chronological order.
#[derive(Debug, Default)]
pub(crate) struct SampleLog {
    pub(crate) samples: Vec<BenchSample>,
    pub(crate) gaps: Vec<MissingSample>,
    pub(crate) commands: Vec<StartedCommand>,
}

/// One measurement of one implementation.
#[derive(Debug, Clone)]
pub(crate) struct BenchSample {
    pub(crate) suite: Suite,
    /// The case: a method, the number of streams, a direction.
    pub(crate) case: String,
    pub(crate) implementation: String,
    /// Number of the round, from 1.
    pub(crate) round: u32,
    pub(crate) figures: Figures,
}

/// A missing measurement, and the reason.
#[derive(Debug, Clone)]
pub(crate) struct MissingSample {
    /// True if it failed; otherwise it was not tried.
    pub(crate) failed: bool,
    pub(crate) suite: Suite,
    pub(crate) case: String,
    pub(crate) implementation: String,
    pub(crate) reason: String,
}

/// The command line of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartedCommand {
    pub(crate) suite: Suite,
    /// The topology of its processes; the cases differ only in the load.
    pub(crate) topology: String,
    pub(crate) implementation: String,
    pub(crate) line: String,
}

/// A table: one case, with a row per implementation.
#[derive(Debug)]
pub(crate) struct CaseTable {
    pub(crate) case: String,
    pub(crate) columns: Vec<Metric>,
    pub(crate) rows: Vec<TableRow>,
}

/// A row: the figures of one implementation, `None` where it has none.
#[derive(Debug)]
pub(crate) struct TableRow {
    pub(crate) implementation: String,
    pub(crate) cells: Vec<Option<RoundSpread>>,
}

impl CaseTable {
    /// Returns a figure of one implementation, for the first of these parts that has a column.
    pub(crate) fn figure(
        &self,
        who: &str,
        quantity: Quantity,
        parts: &[&str],
    ) -> Option<RoundSpread> {
        let column = |part: &&str| {
            let fits = |metric: &Metric| metric.quantity == quantity && metric.part == *part;
            self.columns.iter().position(fits)
        };
        let at = parts.iter().find_map(column)?;
        let row = self.rows.iter().find(|row| row.implementation == who)?;
        *row.cells.get(at)?
    }
}

impl SampleLog {
    /// Records the command lines of one implementation, once.
    pub(crate) fn record_command(
        &mut self,
        suite: Suite,
        topology: impl Display,
        who: &str,
        lines: Vec<String>,
    ) {
        let topology = topology.to_string();
        let known = |c: &StartedCommand| {
            c.suite == suite && c.implementation == who && c.topology == topology
        };
        if self.commands.iter().any(known) {
            return;
        }
        self.commands.extend(lines.into_iter().map(|line| {
            let (topology, who) = (topology.clone(), who.to_owned());
            StartedCommand {
                suite,
                topology,
                implementation: who,
                line,
            }
        }));
    }

    /// Records the outcome of one measurement, and prints it.
    pub(crate) fn record_outcome(
        &mut self,
        suite: Suite,
        case: &str,
        who: &str,
        round: u32,
        outcome: Result<Figures>,
    ) {
        let place = format!("{suite}: round {round}: {who}: {case}");
        let (case, who) = (case.to_owned(), who.to_owned());
        match outcome {
            Ok(figures) => {
                eprintln!("{place}: {}", progress_figures(suite, &figures));
                self.samples.push(BenchSample {
                    suite,
                    case,
                    implementation: who,
                    round,
                    figures,
                });
            }
            Err(why) => {
                let why = format!("{why:#}");
                eprintln!("{place}: FAILED: {why}");
                self.gaps.push(MissingSample {
                    failed: true,
                    suite,
                    case,
                    implementation: who,
                    reason: why,
                });
            }
        }
    }

    /// Records why a case was not tried.
    pub(crate) fn record_skipped(&mut self, suite: Suite, case: &str, who: &str, why: &str) {
        self.gaps.push(MissingSample {
            failed: false,
            suite,
            case: case.to_owned(),
            implementation: who.to_owned(),
            reason: why.to_owned(),
        });
    }

    /// Returns what was not measured in a suite, and why, in one line each and once.
    pub(crate) fn missing_lines(&self, suite: Suite) -> Vec<String> {
        let own = self.gaps.iter().filter(|gap| gap.suite == suite);
        // In the table of methods, cases that were not tried are in the cells.
        let told = own.filter(|gap| gap.failed || suite != Suite::SsTable);
        distinct_values(told.map(|gap| {
            let why = gap.reason.lines().next().unwrap_or_default();
            format!("{}, {}: {why}", gap.implementation, gap.case)
        }))
    }

    /// Returns the suites that have at least one sample or failure, in the order of the run.
    pub(crate) fn suites(&self) -> Vec<Suite> {
        let samples = self.samples.iter().map(|sample| sample.suite);
        let failures = self.gaps.iter().filter(|gap| gap.failed);
        distinct_values(samples.chain(failures.map(|gap| gap.suite)))
    }

    /// Returns the number of rounds in which a suite was measured; 0 if it has no sample.
    pub(crate) fn round_count(&self, suite: Suite) -> u32 {
        let own = self.samples.iter().filter(|sample| sample.suite == suite);
        own.map(|sample| sample.round).max().unwrap_or(0)
    }

    /// Returns the cases of a suite, each with the medians of its rounds.
    pub(crate) fn case_tables(&self, suite: Suite) -> Vec<CaseTable> {
        let of_suite = || {
            self.samples
                .iter()
                .filter(move |sample| sample.suite == suite)
        };
        let cases = distinct_values(of_suite().map(|sample| sample.case.clone()));
        let table = |case: String| {
            let of_case: Vec<&BenchSample> =
                of_suite().filter(|sample| sample.case == case).collect();
            let metrics = of_case
                .iter()
                .flat_map(|sample| sample.figures.iter().map(|(m, _)| *m));
            let columns = group_by_quantity(distinct_values(metrics));
            // In the order of the first round.
            let rows = distinct_values(of_case.iter().map(|sample| sample.implementation.clone()))
                .into_iter()
                .map(|who| TableRow {
                    cells: row_cells(&of_case, &who, &columns),
                    implementation: who,
                })
                .collect();
            CaseTable {
                case,
                columns,
                rows,
            }
        };
        cases.into_iter().map(table).collect()
    }
}

fn row_cells(samples: &[&BenchSample], who: &str, columns: &[Metric]) -> Vec<Option<RoundSpread>> {
    let values = |metric: &Metric| {
        let own = samples.iter().filter(|sample| sample.implementation == who);
        let values = own
            .flat_map(|sample| &sample.figures)
            .filter(|(m, _)| m == metric);
        RoundSpread::from_values(values.map(|(_, value)| *value))
    };
    columns.iter().map(values).collect()
}

/// Returns the most important figures, for the line of progress.
fn progress_figures(suite: Suite, figures: &Figures) -> String {
    let charted = |metric: &Metric| metric.quantity == suite.headline_quantity();
    let shown = figures
        .iter()
        .filter(|(metric, _)| charted(metric) || metric.part.is_empty());
    shown
        .map(|(metric, value)| format!("{} {metric}", format_short(*value)))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Groups metrics of the same quantity, in the order in which the quantities first occur.
fn group_by_quantity(metrics: Vec<Metric>) -> Vec<Metric> {
    let quantities = distinct_values(metrics.iter().map(|metric| metric.quantity));
    let group = |quantity| {
        metrics
            .iter()
            .filter(move |m| m.quantity == quantity)
            .copied()
    };
    quantities.into_iter().flat_map(group).collect()
}

/// Returns each value once, in the order of first occurrence.
fn distinct_values<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::figures::{CALLS_PER_GIB, CPU_PER_GIB, GBIT, figures_with_sum, whole_figure};
    use crate::topology::Topology;

    /// A journal of two implementations, two rounds and one case, with system calls only in the
    /// first round.
    pub(crate) fn journal() -> SampleLog {
        let mut journal = SampleLog::default();
        for (round, whos) in [(1, ["adit", "other"]), (2, ["other", "adit"])] {
            for who in whos {
                let slow = if who == "adit" { 1.0 } else { 2.0 };
                let mut figures = vec![whole_figure(GBIT, 8.0 / slow)];
                let cost = slow * f64::from(round);
                figures.extend(figures_with_sum(
                    CPU_PER_GIB,
                    &[("client", cost), ("server", cost)],
                ));
                if round == 1 {
                    figures.extend(figures_with_sum(
                        CALLS_PER_GIB,
                        &[("client", 3000.0 * slow)],
                    ));
                }
                journal.record_outcome(Suite::SsTcp, "m, 1 stream, up", who, round, Ok(figures));
            }
        }
        journal
    }

    #[test]
    fn rounds_become_rows() {
        let journal = journal();
        assert_eq!(journal.suites(), [Suite::SsTcp]);
        assert_eq!(journal.round_count(Suite::SsTcp), 2);
        assert_eq!(journal.round_count(Suite::Idle), 0);
        let tables = journal.case_tables(Suite::SsTcp);
        let [table] = &tables[..] else {
            panic!("{tables:?}")
        };
        let columns: Vec<String> = table.columns.iter().map(Metric::to_string).collect();
        assert_eq!(
            columns,
            [
                "Gbit/s",
                "CPU s/GiB, client",
                "CPU s/GiB, server",
                "CPU s/GiB, both",
                "syscalls/GiB, client"
            ]
        );
        let whos: Vec<&str> = table
            .rows
            .iter()
            .map(|row| row.implementation.as_str())
            .collect();
        assert_eq!(whos, ["adit", "other"]);
        let cost = table.rows[1].cells[1].unwrap();
        assert_eq!(
            (cost.median, cost.min, cost.max, cost.rounds),
            (3.0, 2.0, 4.0, 2)
        );
        assert_eq!(table.rows[0].cells[4].unwrap().rounds, 1);
    }

    #[test]
    fn commands_and_failures_are_kept_once() {
        let mut journal = journal();
        for line in ["one", "two"] {
            journal.record_command(Suite::Socks, Topology::Relay, "adit", vec![line.to_owned()]);
            journal.record_outcome(
                Suite::Socks,
                "up",
                "adit",
                1,
                Err(anyhow::anyhow!("broken\n{line}")),
            );
        }
        let lines: Vec<&str> = journal.commands.iter().map(|c| c.line.as_str()).collect();
        assert_eq!(lines, ["one"]);
        assert_eq!(journal.missing_lines(Suite::Socks), ["adit, up: broken"]);
        for suite in [Suite::Idle, Suite::SsTable] {
            journal.record_skipped(suite, "many", "other", "too many");
        }
        assert_eq!(
            journal.missing_lines(Suite::Idle),
            ["other, many: too many"]
        );
        assert_eq!(journal.missing_lines(Suite::SsTable), [""; 0]);
    }

    #[test]
    fn other_suites_have_no_tables() {
        assert!(journal().case_tables(Suite::Idle).is_empty());
    }
}
