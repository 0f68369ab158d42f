//! The charts of the documents, drawn from the figures of a suite's page.

mod bar_chart;
mod bar_names;
mod chart_axis;
mod chart_list;
mod chart_style;
mod page_tables;

pub(crate) use bar_chart::escape_xml;

use crate::figures::{AT_MOST, BetterWhen};
use crate::suite::{NO_RELAY, Suite};
use bar_chart::{BarChart, BarGroup, ChartBar};
use chart_list::{BarSource, ChartSpec, GroupSource};
use page_tables::{PageFigure, PageTable};

/// A drawn chart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChartFile {
    /// The name of its file.
    pub(crate) name: String,
    pub(crate) svg: String,
    /// Its message and figures, in words.
    pub(crate) alt_text: String,
}

/// Returns the charts of a suite, from its page. Charts whose figures are not on the page are
/// omitted.
pub(crate) fn draw_charts(suite: Suite, page: &str) -> Vec<ChartFile> {
    let tables = page_tables::parse_tables(page);
    let charts = chart_list::charts_of(suite)
        .filter_map(|plot| Some((plot.name, build_chart(plot, &tables)?)));
    charts
        .map(|(name, chart)| ChartFile {
            name: format!("{name}.svg"),
            svg: chart.to_svg(),
            alt_text: chart.alt_text(),
        })
        .collect()
}

/// Returns the chart, or `None` if it has no bar.
fn build_chart(plot: &ChartSpec, tables: &[PageTable]) -> Option<BarChart> {
    let groups = plot.groups.iter().filter_map(|source| {
        let bars = source_bars(source, tables);
        let title = source.label;
        (!bars.is_empty()).then_some(BarGroup { title, bars })
    });
    let groups: Vec<BarGroup> = groups.collect();
    let ranges = groups.iter().flat_map(|group| &group.bars);
    let ranges = ranges.map(|bar| bar.span).any(|span| span.max > span.min);
    let better = match plot.better {
        BetterWhen::More => "more is better",
        BetterWhen::Less => "less is better",
    };
    let rounds = match ranges {
        true => "; the line spans all rounds",
        false => "",
    };
    (!groups.is_empty()).then(|| BarChart {
        title: plot.title,
        subtitle: format!("{}; {better}{rounds}", plot.detail),
        unit: plot.unit,
        groups,
    })
}

fn source_bars(source: &GroupSource, tables: &[PageTable]) -> Vec<ChartBar> {
    let table = |title: &str| tables.iter().find(|table| table.title == title);
    let found: Vec<(&str, PageFigure)> = match &source.bars {
        BarSource::Rows {
            table: title,
            column,
            shows_no_relay,
        } => {
            let rows = table(title).map_or_else(Vec::new, |table| table.column_figures(column));
            let kept = rows.into_iter();
            kept.filter(|(who, _)| *shows_no_relay || *who != NO_RELAY)
                .collect()
        }
        BarSource::Columns {
            table: title,
            row,
            quantity,
        } => {
            let cells = table(title).map_or_else(Vec::new, |table| table.row_figures(row));
            let owner = |(head, span)| Some((column_part(head, quantity)?, span));
            cells.into_iter().filter_map(owner).collect()
        }
        BarSource::Cells { column, cells } => {
            let cell = |(name, title, row): &(&'static str, &str, &str)| {
                let cells = table(title)?.column_figures(column);
                let own = cells.into_iter().find(|(who, _)| who == row)?;
                Some((*name, own.1))
            };
            cells.iter().filter_map(cell).collect()
        }
    };
    let bar = |(who, span)| {
        let (name, owner) = bar_names::display_name(who);
        ChartBar { name, owner, span }
    };
    found.into_iter().map(bar).collect()
}

/// Returns the implementation of a column with this quantity; `None` for other columns and limits.
fn column_part<'a>(head: &'a str, quantity: &str) -> Option<&'a str> {
    let part = match head.strip_prefix(quantity)? {
        "" => "adit",
        _ if quantity.is_empty() => head,
        rest => rest.strip_prefix(", ")?,
    };
    (part != AT_MOST).then_some(part)
}

#[cfg(test)]
mod tests;
