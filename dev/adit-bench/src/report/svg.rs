//! A bar chart as SVG: a group for each case, a bar for each implementation, a whisker from the
//! least to the most. Where a case is a list of steps and its columns are implementations, each
//! step is a group.

use std::fmt::Write;

use crate::figures::{AT_MOST, BetterWhen, Metric, Quantity, RoundSpread, format_short};
use crate::sample_log::{CaseTable, SampleLog, TableRow};
use crate::suite::{ChartSpec, NO_RELAY, Suite};

const WIDTH: f64 = 760.0;
/// Left of the bars: the names, at least and at most.
const NAMES: (f64, f64) = (150.0, 320.0);
/// A letter of a name.
const LETTER: f64 = 7.0;
/// Right of them: the figures.
const FIGURES: f64 = 140.0;
const BAR: f64 = 18.0;
const STEP: f64 = 24.0;
const HEADING: f64 = 26.0;
const TOP: f64 = 44.0;

/// The chart of a suite; None if nothing of what it shows was measured.
pub(crate) fn chart(journal: &SampleLog, suite: Suite) -> Option<String> {
    let chart = suite.chart();
    let tables = journal.case_tables(suite);
    let shown = tables.iter().filter(|t| t.case.ends_with(chart.cases));
    let groups: Vec<Group> = shown
        .flat_map(|table| match group(table, chart.quantity) {
            Some(group) => vec![group],
            None => steps(table, chart.quantity),
        })
        .collect();
    if groups.is_empty() {
        return None;
    }
    Some(draw(suite.title(), chart, &groups))
}

struct Group {
    title: String,
    bars: Vec<(String, RoundSpread)>,
}

/// The sum of all processes if there is one, else the process nearest to the user.
fn group(table: &CaseTable, quantity: Quantity) -> Option<Group> {
    let parts = [
        ("", ""),
        ("both", " (client and server)"),
        ("all", " (client, relay and server)"),
        ("client", " (client)"),
    ];
    let (at, whose) = parts.into_iter().find_map(|(part, whose)| {
        let fits = |metric: &Metric| metric.quantity == quantity && metric.part == part;
        Some((table.columns.iter().position(fits)?, whose))
    })?;
    let bars = table
        .rows
        .iter()
        .filter_map(|row| Some((row.implementation.clone(), (*row.cells.get(at)?)?)));
    // What the load alone can do would make all others look alike.
    let bars: Vec<_> = bars.filter(|(who, _)| who != NO_RELAY).collect();
    (!bars.is_empty()).then(|| Group {
        title: format!("{}{whose}", table.case),
        bars,
    })
}

/// A group for each row, whose columns are implementations. What is only a limit is no bar.
fn steps(table: &CaseTable, quantity: Quantity) -> Vec<Group> {
    let of_row = |row: &TableRow| {
        let cells = table.columns.iter().zip(&row.cells);
        let bars: Vec<_> = cells
            .filter(|(metric, _)| metric.quantity == quantity && metric.part != AT_MOST)
            .filter_map(|(metric, cell)| Some((metric.part.to_owned(), (*cell)?)))
            .collect();
        (!bars.is_empty()).then(|| Group {
            title: row.implementation.clone(),
            bars,
        })
    };
    table.rows.iter().filter_map(of_row).collect()
}

/// The most of some bars.
fn most<'a>(groups: impl IntoIterator<Item = &'a Group>) -> f64 {
    let bars = groups.into_iter().flat_map(|group| &group.bars);
    bars.map(|(_, spread)| spread.max)
        .fold(f64::MIN_POSITIVE, f64::max)
}

fn draw(title: &str, chart: ChartSpec, groups: &[Group]) -> String {
    let quantity = chart.quantity;
    let names = groups.iter().flat_map(|group| &group.bars);
    let longest = names.map(|(who, _)| who.chars().count()).max();
    let names = (longest.unwrap_or(0) as f64 * LETTER + 20.0).clamp(NAMES.0, NAMES.1);
    let room = WIDTH - names - FIGURES;
    let common = most(groups);
    let rows: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = TOP + HEADING * groups.len() as f64 + STEP * rows as f64 + 12.0;
    let wish = match quantity.better {
        BetterWhen::More => "more is better",
        BetterWhen::Less => "less is better",
    };
    let wish = match chart.scale_by_case {
        true => format!("{wish}; each group has a scale of its own"),
        false => wish.to_owned(),
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\n\
         <title>{title}: {what}, {wish}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"26\" font-size=\"16\" font-weight=\"600\" fill=\"#1f2933\">{title}: \
         {what} <tspan font-weight=\"400\" font-size=\"13\" fill=\"#616e7c\">({wish})</tspan></text>\n",
        title = escaped(title),
        what = escaped(quantity.title),
    );
    let mut y = TOP;
    for group in groups {
        let _ = writeln!(
            out,
            "<text x=\"12\" y=\"{}\" font-weight=\"600\" fill=\"#3e4c59\">{}</text>",
            y + 14.0,
            escaped(&group.title)
        );
        y += HEADING;
        let scale = room
            / if chart.scale_by_case {
                most([group])
            } else {
                common
            };
        for (who, spread) in &group.bars {
            bar(&mut out, y, names, who, *spread, scale);
            y += STEP;
        }
    }
    out.push_str("</svg>\n");
    out
}

fn bar(out: &mut String, y: f64, names: f64, who: &str, spread: RoundSpread, scale: f64) {
    let x = |value: f64| names + value.max(0.0) * scale;
    let ours = who.split(", ").any(|part| part == "adit");
    let color = if ours { "#0b69a3" } else { "#9aa5b1" };
    let (text, middle) = (y + BAR / 2.0 + 4.5, y + BAR / 2.0);
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{text:.1}\" text-anchor=\"end\" fill=\"#1f2933\">{}</text>\
         <rect x=\"{names}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{color}\"/>",
        names - 8.0,
        escaped(who),
        x(spread.median) - names,
    );
    if spread.max > spread.min {
        let (from, to) = (x(spread.min), x(spread.max));
        let (top, bottom) = (middle - 4.0, middle + 4.0);
        let _ = writeln!(
            out,
            "<path d=\"M{from:.1} {middle:.1}H{to:.1}M{from:.1} {top:.1}V{bottom:.1}\
             M{to:.1} {top:.1}V{bottom:.1}\" stroke=\"#1f2933\" fill=\"none\"/>",
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{text:.1}\" fill=\"#1f2933\">{}</text>",
        x(spread.max) + 8.0,
        format_short(spread.median)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::figures::NS_PER_OP;
    use crate::sample_log::tests::journal;

    fn numbers_of(svg: &str, attribute: &str) -> Vec<f64> {
        let before = format!(" {attribute}=\"");
        let parts = svg.split(&before).skip(1);
        parts
            .filter_map(|part| part.split('"').next()?.parse().ok())
            .collect()
    }

    #[test]
    fn bars_are_as_long_as_the_figures() {
        let svg = chart(&journal(), Suite::SsTcp).unwrap();
        // Both processes: medians 3 and 6, the most is 8.
        let room = WIDTH - NAMES.0 - FIGURES;
        let drawn = numbers_of(&svg, "width");
        assert_eq!(drawn.len(), 2);
        for (drawn, value) in drawn.into_iter().zip([3.0, 6.0]) {
            assert!((drawn - value / 8.0 * room).abs() < 0.1, "{drawn}");
        }
        assert!(
            svg.contains(">3.00</text>") && svg.contains(">6.00</text>"),
            "{svg}"
        );
        assert_eq!(svg.matches("<path").count(), 2);
        assert!(
            svg.contains(">m, 1 stream, up (client and server)</text>"),
            "{svg}"
        );
    }

    #[test]
    fn every_element_is_closed_and_inside() {
        let svg = chart(&journal(), Suite::SsTcp).unwrap();
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        let view = svg
            .split("viewBox=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let height: f64 = view.split(' ').nth(3).unwrap().parse().unwrap();
        assert!(
            numbers_of(&svg, "y").into_iter().all(|y| y < height),
            "{svg}"
        );
        assert!(
            numbers_of(&svg, "x").into_iter().all(|x| x < WIDTH),
            "{svg}"
        );
    }

    #[test]
    fn names_cannot_break_out() {
        let spread = RoundSpread::from_values([1.0]).unwrap();
        let group = Group {
            title: "a<b & c".to_owned(),
            bars: vec![("\"x\"".to_owned(), spread)],
        };
        let svg = draw("T", Suite::SsTcp.chart(), &[group]);
        assert!(
            svg.contains("a&lt;b &amp; c") && svg.contains("&quot;x&quot;"),
            "{svg}"
        );
    }

    /// Steps of two implementations, far apart, and a limit of one.
    #[test]
    fn steps_are_groups_with_scales_of_their_own() {
        let mut journal = SampleLog::default();
        let metric = |part| Metric {
            quantity: NS_PER_OP,
            part,
        };
        for (step, ours, theirs) in [("small", 4.0, 8.0), ("large", 4000.0, 2000.0)] {
            for (who, ns) in [("adit", ours), ("other", theirs)] {
                let figures = vec![(metric(who), ns), (metric(AT_MOST), 1e6)];
                journal.record_outcome(Suite::Fec, "codes", step, 1, Ok(figures));
            }
        }
        let svg = chart(&journal, Suite::Fec).unwrap();
        let room = WIDTH - NAMES.0 - FIGURES;
        assert_eq!(
            numbers_of(&svg, "width"),
            [room / 2.0, room, room, room / 2.0]
        );
        assert_eq!(svg.matches(">adit</text>").count(), 2);
        for shown in [">small</text>", ">large</text>", "a scale of its own"] {
            assert!(svg.contains(shown), "{shown} in {svg}");
        }
        assert!(!svg.contains(AT_MOST), "{svg}");
    }

    #[test]
    fn every_suite_has_a_chart_of_what_it_measures() {
        for &suite in Suite::value_variants() {
            let mut journal = SampleLog::default();
            let shown = suite.chart();
            let case = format!("a case{}", shown.cases);
            let who = "2022-blake3-chacha20-poly1305 and more, adit";
            journal.record_outcome(
                suite,
                &case,
                who,
                1,
                Ok(vec![crate::figures::whole_figure(shown.quantity, 1.0)]),
            );
            let svg = chart(&journal, suite).unwrap();
            assert!(svg.contains("#0b69a3"), "adit's bar in {svg}");
            assert!(numbers_of(&svg, "x").into_iter().all(|x| x < WIDTH));
            // Not one of those that are left out.
            journal.samples[0].case = "another".to_owned();
            let all = suite.chart().cases.is_empty();
            assert_eq!(chart(&journal, suite).is_some(), all, "{suite}");
        }
    }

    #[test]
    fn nothing_measured_is_no_chart() {
        assert_eq!(chart(&journal(), Suite::Idle), None);
    }
}
