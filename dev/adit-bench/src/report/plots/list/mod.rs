//! The charts of the documents: one message each, from which figures.

mod connections;
mod memory;
mod proxies;

use crate::figure::Better;
use crate::suite::Suite;

/// A chart. The first of a suite has its name, and the names of all others begin with it.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) suite: Suite,
    /// The name of its file, without `.svg`.
    pub(super) name: &'static str,
    /// Its message.
    pub(super) title: &'static str,
    pub(super) detail: &'static str,
    /// Under the axis.
    pub(super) unit: &'static str,
    pub(super) better: Better,
    pub(super) groups: &'static [Source],
}

/// Where the bars of a group are on the page of the suite.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) label: &'static str,
    pub(super) bars: Bars,
}

#[derive(Debug)]
pub(super) enum Bars {
    /// A bar for each row of a table.
    Rows {
        table: &'static str,
        column: &'static str,
        /// The load without a proxy is a bar too. Elsewhere it would make all others look alike.
        bound: bool,
    },
    /// A bar for each column of a row: those of a quantity, or all of a grid.
    Columns {
        table: &'static str,
        row: &'static str,
        quantity: &'static str,
    },
    /// Bars with names of their own, each of a table and row.
    Cells {
        column: &'static str,
        cells: &'static [(&'static str, &'static str, &'static str)],
    },
}

/// Returns the charts of a suite.
pub(super) fn of(suite: Suite) -> impl Iterator<Item = &'static Plot> {
    let all = [proxies::PLOTS, connections::PLOTS, memory::PLOTS];
    let all = all.into_iter().flatten();
    all.filter(move |plot| plot.suite == suite)
}

const fn rows(label: &'static str, table: &'static str, column: &'static str) -> Source {
    let bars = Bars::Rows {
        table,
        column,
        bound: false,
    };
    Source { label, bars }
}

const fn with_bound(label: &'static str, table: &'static str, column: &'static str) -> Source {
    let bars = Bars::Rows {
        table,
        column,
        bound: true,
    };
    Source { label, bars }
}

const fn columns(
    label: &'static str,
    table: &'static str,
    row: &'static str,
    quantity: &'static str,
) -> Source {
    let bars = Bars::Columns {
        table,
        row,
        quantity,
    };
    Source { label, bars }
}

const fn cells(
    label: &'static str,
    column: &'static str,
    cells: &'static [(&'static str, &'static str, &'static str)],
) -> Source {
    let bars = Bars::Cells { column, cells };
    Source { label, bars }
}
