//! The suite `ss-table` as grids: a row for each method, a column for each implementation.

use std::fmt::Write;

use super::suite_page::markdown_grid;
use crate::figures::{CPU_PER_GIB, GBIT, WHOLE_PARTS};
use crate::sample_log::SampleLog;
use crate::suite::Suite;
use crate::suite::method_table::{COLUMNS, METHODS};

/// Returns a grid for each transport, direction and quantity. No cell is empty: if an
/// implementation does not support the method, or failed, the cell says so.
pub(super) fn method_grids(journal: &SampleLog) -> String {
    let tables = journal.case_tables(Suite::SsTable);
    let seen = |who: &str| {
        let rows = tables.iter().flat_map(|table| &table.rows);
        let gaps = journal
            .gaps
            .iter()
            .filter(|gap| gap.suite == Suite::SsTable);
        let rows = rows.map(|row| &row.implementation);
        rows.chain(gaps.map(|gap| &gap.implementation))
            .any(|one| one == who)
    };
    let columns: Vec<&str> = COLUMNS.into_iter().filter(|who| seen(who)).collect();
    let mut out = String::new();
    for (transport, direction) in [
        ("TCP", "up"),
        ("TCP", "down"),
        ("UDP", "up"),
        ("UDP", "down"),
    ] {
        for quantity in [GBIT, CPU_PER_GIB] {
            let (title, arrow) = (quantity.title, quantity.arrow());
            let rows = METHODS.into_iter().filter_map(|method| {
                let case = format!("{}, {transport}, {direction}", method.name);
                let table = tables.iter().find(|table| table.case == case)?;
                let cell = |who: &&str| match table.figure(who, quantity, &WHOLE_PARTS) {
                    Some(spread) => spread.to_string(),
                    None => missing_cell(journal, method.name, who),
                };
                Some((method.name.to_owned(), columns.iter().map(cell).collect()))
            });
            let _ = write!(
                out,
                "\n**{transport}, {direction}: {title} {arrow}**\n\n{}",
                markdown_grid("", columns.iter().copied(), rows)
            );
        }
    }
    out
}

/// Returns the text of a cell without a measurement.
fn missing_cell(journal: &SampleLog, method: &str, who: &str) -> String {
    let absent = journal.gaps.iter().find(|gap| {
        !gap.failed
            && gap.suite == Suite::SsTable
            && gap.case == method
            && gap.implementation == who
    });
    absent.map_or_else(|| "failed".to_owned(), |gap| gap.reason.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{figures_with_sum, whole_figure};

    #[test]
    fn every_cell_says_something() {
        let mut journal = SampleLog::default();
        let [method, other, ..] = METHODS;
        for (method, who, speed) in [
            (method, "adit", 8.0),
            (method, "sing-box", 4.0),
            (other, "adit", 2.0),
        ] {
            for transport in ["TCP", "UDP"] {
                for direction in ["up", "down"] {
                    let mut figures = vec![whole_figure(GBIT, speed)];
                    figures.extend(figures_with_sum(
                        CPU_PER_GIB,
                        &[("client", 0.5), ("server", 0.25)],
                    ));
                    journal.record_outcome(
                        Suite::SsTable,
                        &format!("{}, {transport}, {direction}", method.name),
                        who,
                        1,
                        Ok(figures),
                    );
                }
            }
        }
        journal.record_skipped(Suite::SsTable, method.name, "shadowsocks-go", "not offered");
        let text = method_grids(&journal);
        assert_eq!(text.matches("\n**").count(), 8, "{text}");
        let grid = format!(
            "**UDP, down: CPU s/GiB ↓**\n\n| | adit | shadowsocks-go | sing-box |\n\
             |---|--:|--:|--:|\n\
             | {} | 0.750 | not offered | 0.750 |\n\
             | {} | 0.750 | failed | failed |\n",
            method.name, other.name
        );
        assert!(text.contains(&grid), "{text}");
        assert!(text.contains("| 8.00 | not offered | 4.00 |"), "{text}");
    }
}
