//! A page of Markdown for a suite: how, the tables, the machine, the commands.

use std::fmt::Write;

use super::grid::grids;
use super::stacks::stacks;
use crate::environment::Environment;
use crate::figure::{Metric, Spread};
use crate::journal::{Journal, Table};
use crate::suite::Suite;

/// The whole page, without its charts.
pub(super) fn page(environment: &Environment, journal: &Journal, suite: Suite) -> String {
    format!(
        "<!-- Written by `cargo xtask bench --write-docs`. -->\n\n{}\n{}\n{}",
        tables(journal, suite),
        machine(environment, journal.rounds(suite)),
        commands(journal, suite)
    )
}

/// How a suite was measured and what came of it.
pub(crate) fn tables(journal: &Journal, suite: Suite) -> String {
    let mut out = format!("# {}\n\n{}\n", suite.title(), suite.method());
    match suite {
        Suite::SsTable => out.push_str(&grids(journal)),
        Suite::Ssr => out.push_str(&stacks(journal)),
        _ => {
            for table in journal.tables(suite) {
                let _ = write!(out, "\n**{}**\n\n{}", table.case, rows(&table));
            }
        }
    }
    for line in journal.unmeasured(suite) {
        let _ = write!(out, "\nNot measured: {line}\n");
    }
    out
}

/// A table of Markdown: what stands in the corner and over the columns, and the rows with their
/// names in front.
pub(super) fn grid<'a>(
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

fn rows(table: &Table) -> String {
    let heads = table.columns.iter().map(Metric::head);
    let heads: Vec<String> = heads.collect();
    let cell = |cell: &Option<Spread>| cell.map_or_else(|| "–".to_owned(), |one| one.to_string());
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(cell);
        (row.who.clone(), cells.collect())
    });
    grid("", heads.iter().map(String::as_str), rows)
}

/// One paragraph: how many rounds there were, and the machine, hour and versions.
///
/// One round has no median and no spread, so the paragraph claims neither.
pub(crate) fn machine(environment: &Environment, rounds: u32) -> String {
    let Environment {
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
        several => format!("Median of {several} rounds (least–most)"),
    };
    let mut out = format!(
        "{rounds}; all programs in turn in the same run. `{command}` on {date}; {cpu}, \
         Linux {kernel}, load average before {load}."
    );
    if !commit.is_empty() {
        let _ = write!(out, " Commit {commit}.");
    }
    let named: Vec<String> = versions
        .iter()
        .map(|(name, version)| labelled(name, version))
        .collect();
    if !named.is_empty() {
        let _ = write!(out, " Versions: {}.", named.join(", "));
    }
    if !missing.is_empty() {
        let _ = write!(out, " Not installed: {}.", missing.join(", "));
    }
    let _ = match counter {
        None => write!(out, " System calls were not counted: perf cannot here."),
        Some(version) => write!(out, " System calls by perf {version}."),
    };
    out
}

/// Most programs say their name themselves.
fn labelled(name: &str, version: &str) -> String {
    let bare = version.to_lowercase();
    if bare.contains(name) {
        version.to_owned()
    } else {
        format!("{name} ({version})")
    }
}

fn commands(journal: &Journal, suite: Suite) -> String {
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
    use crate::journal::Command;
    use crate::journal::tests::journal;

    fn environment() -> Environment {
        Environment {
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
            ..Environment::default()
        }
    }

    #[test]
    fn the_table_has_a_row_each() {
        let table = rows(&journal().tables(Suite::SsTcp)[0]);
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
        let machine = |journal: &Journal| machine(&environment(), journal.rounds(Suite::SsTcp));
        let text = machine(&journal);
        assert!(
            text.starts_with("Median of 2 rounds (least–most); "),
            "{text}"
        );
        journal.samples.retain(|sample| sample.round == 1);
        let text = machine(&journal);
        assert!(text.starts_with("One round, without a spread; "), "{text}");
        let page = page(&environment(), &journal, Suite::SsTcp);
        for claim in ["edian", "least", "–"] {
            assert!(!text.contains(claim), "{claim} in {text}");
        }
        assert!(page.contains(&text), "{page}");
    }

    #[test]
    fn a_page_says_how_where_and_with_what() {
        let mut journal = journal();
        journal.commands.push(Command {
            suite: Suite::SsTcp,
            topology: "m".to_owned(),
            who: "adit".to_owned(),
            line: "adit run x".to_owned(),
        });
        journal.keep(
            Suite::SsTcp,
            "m",
            "other",
            1,
            Err(anyhow::anyhow!("broken\nlog")),
        );
        let text = page(&environment(), &journal, Suite::SsTcp);
        for part in [
            "# Shadowsocks over TCP\n",
            "`cargo xtask bench --suite ss-tcp` on 2020-01-01 00:00 UTC; 2 × CPU, Linux 6.1",
            "Versions: adit 0.1.0, other (1.2).",
            "Not installed: third.",
            "perf cannot here",
            "Not measured: other, m: broken\n",
            "```sh\n# m\nadit run x\n```",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
