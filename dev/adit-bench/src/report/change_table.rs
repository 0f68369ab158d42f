//! The change of figures since an older build of adit, of `--before`.

use super::suite_page::markdown_grid;
use crate::figures::{ChangeSpread, Metric};
use crate::peers::BEFORE;
use crate::sample_log::{BenchSample, SampleLog};

/// Returns a table of all figures that both builds have: by how much each has grown, as the median of the rounds, then of
/// all rounds and cases of a suite.
pub(crate) fn change_table(log: &SampleLog) -> String {
    let cases = collect_rows(log, |sample| format!("{}: {}", sample.suite, sample.case));
    let suites = collect_rows(log, |sample| format!("{}, all cases", sample.suite));
    let rows = cases.into_iter().chain(suites).filter_map(|row| {
        let ChangeSpread { median, margin } = ChangeSpread::from_pairs(row.pairs)?;
        let cells = [
            row.metric.column_head(),
            format!("{median:+.1}"),
            format!("{margin:.1}"),
        ];
        Some((row.name, cells.to_vec()))
    });
    let columns = ["figure", "change since `--before`, %", "margin"];
    markdown_grid("", columns, rows)
}

/// Collects the figures of both builds, in rows of this name.
fn collect_rows(log: &SampleLog, name: impl Fn(&BenchSample) -> String) -> Vec<ChangeRow> {
    let mut rows: Vec<ChangeRow> = Vec::new();
    let samples = log.samples.iter();
    for sample in samples.filter(|sample| sample.implementation == BEFORE) {
        let after = log.samples.iter().find(|other| {
            other.implementation == "adit"
                && (other.suite, &other.case, other.round)
                    == (sample.suite, &sample.case, sample.round)
        });
        for (metric, before) in &sample.figures {
            let own = after.and_then(|after| after.figures.iter().find(|(m, _)| m == metric));
            let Some((_, after)) = own else { continue };
            let (name, pair) = (name(sample), (*before, *after));
            match rows
                .iter_mut()
                .find(|row| row.name == name && row.metric == *metric)
            {
                Some(row) => row.pairs.push(pair),
                None => rows.push(ChangeRow {
                    name,
                    metric: *metric,
                    pairs: vec![pair],
                }),
            }
        }
    }
    rows
}

/// A figure of both builds, in all rounds.
struct ChangeRow {
    name: String,
    metric: Metric,
    /// The older build's value, and the newer one's.
    pairs: Vec<(f64, f64)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{CPU_PER_GIB, whole_figure};
    use crate::suite::Suite;

    #[test]
    fn a_row_has_the_median_of_the_rounds() {
        let mut log = SampleLog::default();
        for (round, cost) in [(1, 1.02), (2, 2.04), (3, 0.5)] {
            let rest = [(BEFORE, cost / 1.02), ("adit", cost), ("other", 9.0)];
            for (who, cost) in rest {
                let figures = Ok(vec![whole_figure(CPU_PER_GIB, cost)]);
                log.record_outcome(Suite::Socks, "down", who, round, figures);
            }
        }
        let alone = Ok(vec![whole_figure(CPU_PER_GIB, 1.0)]);
        log.record_outcome(Suite::Socks, "up", "adit", 1, alone);
        let table = change_table(&log);
        assert!(
            table.ends_with(
                "|--:|--:|--:|\n| socks: down | CPU s/GiB ↓ | +2.0 | 0.0 |\n\
                 | socks, all cases | CPU s/GiB ↓ | +2.0 | 0.0 |\n"
            ),
            "{table}"
        );
    }
}
