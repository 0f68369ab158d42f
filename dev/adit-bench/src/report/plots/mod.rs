//! The charts of the documents, drawn from the figures of a suite's page.

mod axis;
mod draw;
mod list;
mod read;
mod style;
mod words;

pub(crate) use draw::escaped;

use crate::figure::{AT_MOST, Better};
use crate::suite::{NO_RELAY, Suite};
use draw::{Bar, Chart, Group};
use list::{Bars, Plot, Source};
use read::{PageTable, Span};

/// A drawn chart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Drawing {
    /// The name of its file.
    pub(crate) name: String,
    pub(crate) svg: String,
    /// Its message and figures, in words.
    pub(crate) words: String,
}

/// Returns the charts of a suite, from its page. Those whose figures the page lacks are omitted.
pub(crate) fn drawings(suite: Suite, page: &str) -> Vec<Drawing> {
    let tables = read::tables(page);
    let charts = list::of(suite).filter_map(|plot| Some((plot.name, chart(plot, &tables)?)));
    charts
        .map(|(name, chart)| Drawing {
            name: format!("{name}.svg"),
            svg: chart.draw(),
            words: chart.in_words(),
        })
        .collect()
}

/// Returns the chart; None without a bar.
fn chart(plot: &Plot, tables: &[PageTable]) -> Option<Chart> {
    let groups = plot.groups.iter().filter_map(|source| {
        let bars = bars(source, tables);
        let title = source.label;
        (!bars.is_empty()).then_some(Group { title, bars })
    });
    let groups: Vec<Group> = groups.collect();
    let ranges = groups.iter().flat_map(|group| &group.bars);
    let ranges = ranges.map(|bar| bar.span).any(|span| span.max > span.min);
    let better = match plot.better {
        Better::More => "more is better",
        Better::Less => "less is better",
    };
    let rounds = match ranges {
        true => "; the line spans all rounds",
        false => "",
    };
    (!groups.is_empty()).then(|| Chart {
        title: plot.title,
        subtitle: format!("{}; {better}{rounds}", plot.detail),
        unit: plot.unit,
        groups,
    })
}

fn bars(source: &Source, tables: &[PageTable]) -> Vec<Bar> {
    let table = |title: &str| tables.iter().find(|table| table.title == title);
    let found: Vec<(&str, Span)> = match &source.bars {
        Bars::Rows {
            table: title,
            column,
            bound,
        } => {
            let rows = table(title).map_or_else(Vec::new, |table| table.column(column));
            let kept = rows.into_iter();
            kept.filter(|(who, _)| *bound || *who != NO_RELAY).collect()
        }
        Bars::Columns {
            table: title,
            row,
            quantity,
        } => {
            let cells = table(title).map_or_else(Vec::new, |table| table.row(row));
            let whose = |(head, span)| Some((part(head, quantity)?, span));
            cells.into_iter().filter_map(whose).collect()
        }
        Bars::Cells { column, cells } => {
            let cell = |(name, title, row): &(&'static str, &str, &str)| {
                let cells = table(title)?.column(column);
                let own = cells.into_iter().find(|(who, _)| who == row)?;
                Some((*name, own.1))
            };
            cells.iter().filter_map(cell).collect()
        }
    };
    let bar = |(who, span)| {
        let (name, whose) = words::named(who);
        Bar { name, whose, span }
    };
    found.into_iter().map(bar).collect()
}

/// Whose column it is, of those of a quantity. Limits are nobody's.
fn part<'a>(head: &'a str, quantity: &str) -> Option<&'a str> {
    let part = match head.strip_prefix(quantity)? {
        "" => "adit",
        _ if quantity.is_empty() => head,
        rest => rest.strip_prefix(", ")?,
    };
    (part != AT_MOST).then_some(part)
}

#[cfg(test)]
mod tests;
