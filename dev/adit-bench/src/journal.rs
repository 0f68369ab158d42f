//! Everything that one run has found out.

use std::fmt::Display;

use anyhow::Result;

use crate::figure::{Figures, Metric, Quantity, Spread, short};
use crate::suite::Suite;

/// The samples of a run, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) samples: Vec<Sample>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) commands: Vec<Command>,
}

/// One measurement of one implementation.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) suite: Suite,
    /// What was measured: a method, streams, a direction.
    pub(crate) case: String,
    pub(crate) who: String,
    /// From 1.
    pub(crate) round: u32,
    pub(crate) figures: Figures,
}

/// A measurement that did not come about, and why.
#[derive(Debug, Clone)]
pub(crate) struct Gap {
    /// Else it was not tried, and nothing has gone wrong.
    pub(crate) failed: bool,
    pub(crate) suite: Suite,
    pub(crate) case: String,
    pub(crate) who: String,
    pub(crate) why: String,
}

/// How a process was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) suite: Suite,
    /// How its processes stand; the cases differ only in what is sent through them.
    pub(crate) topology: String,
    pub(crate) who: String,
    pub(crate) line: String,
}

/// A table: one case, a row for each implementation.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) case: String,
    pub(crate) columns: Vec<Metric>,
    pub(crate) rows: Vec<Row>,
}

/// A row: the figures of one implementation, None where it has none.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) who: String,
    pub(crate) cells: Vec<Option<Spread>>,
}

impl Table {
    /// A figure of one implementation, of the first of these parts that has a column.
    pub(crate) fn figure(&self, who: &str, quantity: Quantity, parts: &[&str]) -> Option<Spread> {
        let column = |part: &&str| {
            let fits = |metric: &Metric| metric.quantity == quantity && metric.part == *part;
            self.columns.iter().position(fits)
        };
        let at = parts.iter().find_map(column)?;
        let row = self.rows.iter().find(|row| row.who == who)?;
        *row.cells.get(at)?
    }
}

impl Journal {
    /// Keeps how the processes of one implementation were started, once.
    pub(crate) fn note(
        &mut self,
        suite: Suite,
        topology: impl Display,
        who: &str,
        lines: Vec<String>,
    ) {
        let topology = topology.to_string();
        let known = |c: &Command| c.suite == suite && c.who == who && c.topology == topology;
        if self.commands.iter().any(known) {
            return;
        }
        self.commands.extend(lines.into_iter().map(|line| {
            let (topology, who) = (topology.clone(), who.to_owned());
            Command {
                suite,
                topology,
                who,
                line,
            }
        }));
    }

    /// Keeps what one measurement gave, and tells it.
    pub(crate) fn keep(
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
                eprintln!("{place}: {}", headline(suite, &figures));
                self.samples.push(Sample {
                    suite,
                    case,
                    who,
                    round,
                    figures,
                });
            }
            Err(why) => {
                let why = format!("{why:#}");
                eprintln!("{place}: FAILED: {why}");
                self.gaps.push(Gap {
                    failed: true,
                    suite,
                    case,
                    who,
                    why,
                });
            }
        }
    }

    /// Keeps why something was not tried.
    pub(crate) fn leave_out(&mut self, suite: Suite, case: &str, who: &str, why: &str) {
        self.gaps.push(Gap {
            failed: false,
            suite,
            case: case.to_owned(),
            who: who.to_owned(),
            why: why.to_owned(),
        });
    }

    /// What was not measured in a suite, and why, in one line each and once.
    pub(crate) fn unmeasured(&self, suite: Suite) -> Vec<String> {
        let own = self.gaps.iter().filter(|gap| gap.suite == suite);
        // In the table of methods those who were not tried stand in their cells.
        let told = own.filter(|gap| gap.failed || suite != Suite::SsTable);
        distinct(told.map(|gap| {
            let why = gap.why.lines().next().unwrap_or_default();
            format!("{}, {}: {why}", gap.who, gap.case)
        }))
    }

    /// The suites that have at least one sample or failure, in the order of the run.
    pub(crate) fn suites(&self) -> Vec<Suite> {
        let samples = self.samples.iter().map(|sample| sample.suite);
        let failures = self.gaps.iter().filter(|gap| gap.failed);
        distinct(samples.chain(failures.map(|gap| gap.suite)))
    }

    /// Returns the number of rounds in which a suite was measured; 0 if it has no sample.
    pub(crate) fn rounds(&self, suite: Suite) -> u32 {
        let own = self.samples.iter().filter(|sample| sample.suite == suite);
        own.map(|sample| sample.round).max().unwrap_or(0)
    }

    /// The cases of a suite, each with the medians of its rounds.
    pub(crate) fn tables(&self, suite: Suite) -> Vec<Table> {
        let of_suite = || {
            self.samples
                .iter()
                .filter(move |sample| sample.suite == suite)
        };
        let cases = distinct(of_suite().map(|sample| sample.case.clone()));
        let table = |case: String| {
            let of_case: Vec<&Sample> = of_suite().filter(|sample| sample.case == case).collect();
            let metrics = of_case
                .iter()
                .flat_map(|sample| sample.figures.iter().map(|(m, _)| *m));
            let columns = ordered(distinct(metrics));
            // The order in which they first came, which is that of the first round.
            let rows = distinct(of_case.iter().map(|sample| sample.who.clone()))
                .into_iter()
                .map(|who| Row {
                    cells: cells(&of_case, &who, &columns),
                    who,
                })
                .collect();
            Table {
                case,
                columns,
                rows,
            }
        };
        cases.into_iter().map(table).collect()
    }
}

fn cells(samples: &[&Sample], who: &str, columns: &[Metric]) -> Vec<Option<Spread>> {
    let values = |metric: &Metric| {
        let own = samples.iter().filter(|sample| sample.who == who);
        let values = own
            .flat_map(|sample| &sample.figures)
            .filter(|(m, _)| m == metric);
        Spread::of(values.map(|(_, value)| *value))
    };
    columns.iter().map(values).collect()
}

/// The figures that matter most, for the line of progress.
fn headline(suite: Suite, figures: &Figures) -> String {
    let charted = |metric: &Metric| metric.quantity == suite.headline();
    let shown = figures
        .iter()
        .filter(|(metric, _)| charted(metric) || metric.part.is_empty());
    shown
        .map(|(metric, value)| format!("{} {metric}", short(*value)))
        .collect::<Vec<_>>()
        .join("; ")
}

/// The same quantity stands together, in the order in which the quantities first came.
fn ordered(metrics: Vec<Metric>) -> Vec<Metric> {
    let quantities = distinct(metrics.iter().map(|metric| metric.quantity));
    let group = |quantity| {
        metrics
            .iter()
            .filter(move |m| m.quantity == quantity)
            .copied()
    };
    quantities.into_iter().flat_map(group).collect()
}

/// Each value once, in the order of the first.
fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
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
    use crate::figure::{CALLS_PER_GIB, CPU_PER_GIB, GBIT, each, one};
    use crate::topology::Topology;

    /// Two implementations, two rounds, one case; system calls only in the first round.
    pub(crate) fn journal() -> Journal {
        let mut journal = Journal::default();
        for (round, whos) in [(1, ["adit", "other"]), (2, ["other", "adit"])] {
            for who in whos {
                let slow = if who == "adit" { 1.0 } else { 2.0 };
                let mut figures = vec![one(GBIT, 8.0 / slow)];
                let cost = slow * f64::from(round);
                figures.extend(each(CPU_PER_GIB, &[("client", cost), ("server", cost)]));
                if round == 1 {
                    figures.extend(each(CALLS_PER_GIB, &[("client", 3000.0 * slow)]));
                }
                journal.keep(Suite::SsTcp, "m, 1 stream, up", who, round, Ok(figures));
            }
        }
        journal
    }

    #[test]
    fn rounds_become_rows() {
        let journal = journal();
        assert_eq!(journal.suites(), [Suite::SsTcp]);
        assert_eq!(journal.rounds(Suite::SsTcp), 2);
        assert_eq!(journal.rounds(Suite::Idle), 0);
        let tables = journal.tables(Suite::SsTcp);
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
        let whos: Vec<&str> = table.rows.iter().map(|row| row.who.as_str()).collect();
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
            journal.note(Suite::Socks, Topology::Relay, "adit", vec![line.to_owned()]);
            journal.keep(
                Suite::Socks,
                "up",
                "adit",
                1,
                Err(anyhow::anyhow!("broken\n{line}")),
            );
        }
        let lines: Vec<&str> = journal.commands.iter().map(|c| c.line.as_str()).collect();
        assert_eq!(lines, ["one"]);
        assert_eq!(journal.unmeasured(Suite::Socks), ["adit, up: broken"]);
        for suite in [Suite::Idle, Suite::SsTable] {
            journal.leave_out(suite, "many", "other", "too many");
        }
        assert_eq!(journal.unmeasured(Suite::Idle), ["other, many: too many"]);
        assert_eq!(journal.unmeasured(Suite::SsTable), [""; 0]);
    }

    #[test]
    fn other_suites_have_no_tables() {
        assert!(journal().tables(Suite::Idle).is_empty());
    }
}
