//! A Markdown page for a suite: the method, the tables, the machine, the commands.

use std::fmt::Write;

use super::gate_table::fleet_tables;
use super::method_grid::method_grids;
use super::ssr_stacks::stack_tables;
use crate::environment::RunEnvironment;
use crate::figures::{Metric, RoundSpread};
use crate::sample_log::{CaseTable, SampleLog};
use crate::suite::Suite;

/// Returns the whole page, without its charts.
pub(super) fn suite_page(
    environment: &RunEnvironment,
    journal: &SampleLog,
    suite: Suite,
) -> String {
    format!(
        "<!-- Written by `cargo xtask bench --write-docs`. -->\n\n{}\n{}\n{}",
        suite_tables(journal, suite),
        machine_paragraph(environment, journal.round_count(suite)),
        command_lines(journal, suite)
    )
}

/// Returns the method of a suite and its results.
pub(crate) fn suite_tables(journal: &SampleLog, suite: Suite) -> String {
    let mut out = format!("# {}\n\n{}\n", suite.title(), suite.method());
    match suite {
        Suite::SsTable => out.push_str(&method_grids(journal)),
        Suite::Ssr => out.push_str(&stack_tables(journal)),
        Suite::Fleet => out.push_str(&fleet_tables(journal)),
        _ => out.push_str(&plain_tables(&journal.case_tables(suite))),
    }
    for line in journal.missing_lines(suite) {
        let _ = write!(out, "\nNot measured: {line}\n");
    }
    out
}

/// Returns a Markdown table: the corner, the column heads, and the rows with their names in front.
pub(super) fn markdown_grid<'a>(
    corner: &str,
    columns: impl IntoIterator<Item = &'a str>,
    rows: impl IntoIterator<Item = (String, Vec<String>)>,
) -> String {
    let columns: Vec<&str> = columns.into_iter().collect();
    let line = |first: &str, cells: &str| format!("| {first} | {cells} |\n").replace("|  |", "| |");
    let mut out = line(corner, &columns.join(" | "));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(columns.len()));
    for (name, cells) in rows {
        out.push_str(&line(&name, &cells.join(" | ")));
    }
    out
}

/// Returns tables with a row for each implementation.
pub(super) fn plain_tables(tables: &[CaseTable]) -> String {
    let table = |table: &CaseTable| format!("\n**{}**\n\n{}", table.case, table_rows(table));
    tables.iter().map(table).collect()
}

fn table_rows(table: &CaseTable) -> String {
    let heads = table.columns.iter().map(Metric::column_head);
    let heads: Vec<String> = heads.collect();
    let cell =
        |cell: &Option<RoundSpread>| cell.map_or_else(|| "–".to_owned(), |one| one.to_string());
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(cell);
        (row.implementation.clone(), cells.collect())
    });
    markdown_grid("", heads.iter().map(String::as_str), rows)
}

/// Returns the number of rounds, the time, the machine and the versions of the measurement, in one
/// paragraph.
///
/// One round has no median and no spread, so the paragraph claims neither.
pub(crate) fn machine_paragraph(environment: &RunEnvironment, rounds: u32) -> String {
    let RunEnvironment {
        date,
        cpu,
        kernel,
        load,
        command,
        commit,
        versions,
        missing,
        counter,
    } = environment;
    let rounds = match rounds {
        0 | 1 => "One round, without a spread".to_owned(),
        several => format!("Median of {several} rounds (lowest–highest)"),
    };
    let mut out = format!(
        "{rounds}; all implementations in turn in the same run. `{command}` on {date}; {cpu}, \
         Linux {kernel}, load average before {load}."
    );
    if !commit.is_empty() {
        let _ = write!(out, " Commit {commit}.");
    }
    let named: Vec<String> = versions
        .iter()
        .map(|(name, version)| label_version(name, version))
        .collect();
    if !named.is_empty() {
        let _ = write!(out, " Versions: {}.", named.join(", "));
    }
    if !missing.is_empty() {
        let _ = write!(out, " Not installed: {}.", missing.join(", "));
    }
    let _ = match counter {
        None => write!(
            out,
            " System calls were not counted: perf cannot count them here."
        ),
        Some(version) => write!(out, " System calls by perf {version}."),
    };
    out
}

/// Most programs include their name in the version.
fn label_version(name: &str, version: &str) -> String {
    let bare = version.to_lowercase();
    if bare.contains(name) {
        version.to_owned()
    } else {
        format!("{name} ({version})")
    }
}

fn command_lines(journal: &SampleLog, suite: Suite) -> String {
    let mut lines = String::new();
    let mut before = "";
    for command in journal
        .commands
        .iter()
        .filter(|command| command.suite == suite)
    {
        if command.topology != before {
            let _ = write!(lines, "\n# {}\n", command.topology);
            before = &command.topology;
        }
        let _ = writeln!(lines, "{}", command.line);
    }
    if lines.is_empty() {
        return lines;
    }
    format!(
        "\n<details><summary>Commands</summary>\n\n```sh\n{}```\n\n</details>\n",
        lines.trim_start()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_log::StartedCommand;
    use crate::sample_log::tests::journal;

    fn environment() -> RunEnvironment {
        RunEnvironment {
            date: "2020-01-01 00:00 UTC".to_owned(),
            cpu: "2 × CPU".to_owned(),
            kernel: "6.1".to_owned(),
            load: "0.1 0.2 0.3".to_owned(),
            command: "cargo xtask bench --suite ss-tcp".to_owned(),
            versions: vec![
                ("adit", "adit 0.1.0".to_owned()),
                ("other", "1.2".to_owned()),
            ],
            missing: vec!["third"],
            ..RunEnvironment::default()
        }
    }

    #[test]
    fn the_table_has_a_row_each() {
        let table = table_rows(&journal().case_tables(Suite::SsTcp)[0]);
        assert_eq!(
            table,
            "| | Gbit/s ↑ | CPU s/GiB, client ↓ | CPU s/GiB, server ↓ | CPU s/GiB, both ↓ \
             | syscalls/GiB, client ↓ |\n\
             |---|--:|--:|--:|--:|--:|\n\
             | adit | 8.00 | 1.50 (1.00–2.00) | 1.50 (1.00–2.00) | 3.00 (2.00–4.00) \
             | 3,000 |\n\
             | other | 4.00 | 3.00 (2.00–4.00) | 3.00 (2.00–4.00) | 6.00 (4.00–8.00) \
             | 6,000 |\n"
        );
    }

    #[test]
    fn one_round_has_no_median() {
        let mut journal = journal();
        let paragraph = |journal: &SampleLog| {
            machine_paragraph(&environment(), journal.round_count(Suite::SsTcp))
        };
        let text = paragraph(&journal);
        assert!(
            text.starts_with("Median of 2 rounds (lowest–highest); "),
            "{text}"
        );
        journal.samples.retain(|sample| sample.round == 1);
        let text = paragraph(&journal);
        assert!(text.starts_with("One round, without a spread; "), "{text}");
        let page = suite_page(&environment(), &journal, Suite::SsTcp);
        for claim in ["edian", "lowest", "–"] {
            assert!(!text.contains(claim), "{claim} in {text}");
        }
        assert!(page.contains(&text), "{page}");
    }

    #[test]
    fn a_page_says_how_where_and_with_what() {
        let mut journal = journal();
        journal.commands.push(StartedCommand {
            suite: Suite::SsTcp,
            topology: "m".to_owned(),
            implementation: "adit".to_owned(),
            line: "adit run x".to_owned(),
        });
        journal.record_outcome(
            Suite::SsTcp,
            "m",
            "other",
            1,
            Err(anyhow::anyhow!("broken\nlog")),
        );
        let text = suite_page(&environment(), &journal, Suite::SsTcp);
        for part in [
            "# Shadowsocks over TCP\n",
            "`cargo xtask bench --suite ss-tcp` on 2020-01-01 00:00 UTC; 2 × CPU, Linux 6.1",
            "Versions: adit 0.1.0, other (1.2).",
            "Not installed: third.",
            "perf cannot count them here",
            "Not measured: other, m: broken\n",
            "```sh\n# m\nadit run x\n```",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
