//! The suite `fleet`: a table of gates, each with its own unit and bound, before the tables of costs.

use super::suite_page::{markdown_grid, plain_tables};
use crate::figures::{AT_MOST, Metric, RoundSpread, format_short};
use crate::sample_log::{CaseTable, SampleLog, TableRow};
use crate::suite::Suite;
use crate::suite::fleet::GATES;

/// Returns the tables of the suite.
pub(super) fn fleet_tables(journal: &SampleLog) -> String {
    let tables = journal.case_tables(Suite::Fleet);
    let (gates, costs): (Vec<_>, Vec<_>) =
        tables.into_iter().partition(|table| table.case == GATES);
    let gates: String = gates.iter().map(gate_table).collect();
    gates + &plain_tables(&costs)
}

fn gate_table(table: &CaseTable) -> String {
    let rows = table
        .rows
        .iter()
        .filter_map(|row| gate_row(&table.columns, row));
    let grid = markdown_grid("", ["measured", "gate", ""], rows);
    format!("\n**{}**\n\n{grid}", table.case)
}

/// Returns the cells of a gate: the measured figure, the bound, and whether it was kept in every round.
fn gate_row(columns: &[Metric], row: &TableRow) -> Option<(String, Vec<String>)> {
    let cells = || columns.iter().zip(&row.cells);
    let figure = |is_bound: bool| {
        let fits = |metric: &Metric| (metric.part == AT_MOST) == is_bound;
        cells()
            .find_map(|(metric, cell)| Some((metric, (*cell)?)).filter(|(metric, _)| fits(metric)))
    };
    let ((metric, measured), bound) = (figure(false)?, figure(true));
    let unit = metric.quantity.title;
    let with_unit = |text: String| format!("{text} {unit}").trim_end().to_owned();
    let verdict = |bound: RoundSpread| match measured.max <= bound.median {
        true => "kept",
        false => "**missed**",
    };
    let (gate, verdict) = match bound {
        Some((_, bound)) => (
            with_unit(format!("≤ {}", format_short(bound.median))),
            verdict(bound),
        ),
        None => ("–".to_owned(), ""),
    };
    let cells = vec![with_unit(measured.to_string()), gate, verdict.to_owned()];
    Some((row.implementation.clone(), cells))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{COUNT, DURATION, STORE_CPU, whole_figure};

    #[test]
    fn gates_have_units_and_verdicts() {
        let bound = |quantity, value| {
            let part = AT_MOST;
            (Metric { quantity, part }, value)
        };
        let mut journal = SampleLog::default();
        for (round, time) in [(1, 100.0), (2, 301.0)] {
            for (who, figures) in [
                (
                    "slow",
                    vec![whole_figure(DURATION, time), bound(DURATION, 300.0)],
                ),
                ("lost", vec![whole_figure(COUNT, 0.0), bound(COUNT, 0.0)]),
                ("free", vec![whole_figure(DURATION, 7.0)]),
            ] {
                journal.record_outcome(Suite::Fleet, GATES, who, round, Ok(figures));
            }
        }
        let cost = Ok(vec![whole_figure(STORE_CPU, 2.5)]);
        journal.record_outcome(Suite::Fleet, "calls", "one", 1, cost);
        assert_eq!(
            fleet_tables(&journal),
            format!(
                "\n**{GATES}**\n\n| | measured | gate | |\n|---|--:|--:|--:|\n\
                 | slow | 200 (100–301) ms | ≤ 300 ms | **missed** |\n\
                 | lost | 0 | ≤ 0 | kept |\n\
                 | free | 7.00 ms | – | |\n\
                 \n**calls**\n\n| | store CPU µs ↓ |\n|---|--:|\n| one | 2.50 |\n"
            )
        );
    }
}
