//! The contents of a chart: its texts, and the places of its bars.

use crate::figures::BetterWhen;
use crate::suite::Suite;

/// The contents of a chart. The first chart of a suite has the name of the suite, and the names of
/// all others begin with it.
#[derive(Debug)]
pub(in super::super) struct ChartSpec {
    pub(in super::super) suite: Suite,
    /// The name of its file, without `.svg`.
    pub(in super::super) name: &'static str,
    /// Its message.
    pub(in super::super) title: &'static str,
    pub(in super::super) detail: &'static str,
    /// The label of the axis.
    pub(in super::super) unit: &'static str,
    pub(in super::super) better: BetterWhen,
    pub(in super::super) groups: &'static [GroupSource],
}

/// The place of a group's bars on the page of the suite.
#[derive(Debug)]
pub(in super::super) struct GroupSource {
    pub(in super::super) label: &'static str,
    pub(in super::super) bars: BarSource,
}

/// The place of bars on a page.
#[derive(Debug)]
pub(in super::super) enum BarSource {
    /// A bar for each row of a table.
    Rows {
        table: &'static str,
        column: &'static str,
        /// True if the load without a proxy is a bar too. In other charts, it would make all others
        /// look alike.
        shows_no_relay: bool,
    },
    /// A bar for each column of a row: the columns of a quantity, or all columns of a grid.
    Columns {
        table: &'static str,
        row: &'static str,
        quantity: &'static str,
    },
    /// Bars with their own names, each with a table and a row.
    Cells {
        column: &'static str,
        cells: &'static [(&'static str, &'static str, &'static str)],
    },
}

pub(super) const fn row_bars(
    label: &'static str,
    table: &'static str,
    column: &'static str,
) -> GroupSource {
    let bars = BarSource::Rows {
        table,
        column,
        shows_no_relay: false,
    };
    GroupSource { label, bars }
}

pub(super) const fn row_bars_and_no_relay(
    label: &'static str,
    table: &'static str,
    column: &'static str,
) -> GroupSource {
    let bars = BarSource::Rows {
        table,
        column,
        shows_no_relay: true,
    };
    GroupSource { label, bars }
}

pub(super) const fn column_bars(
    label: &'static str,
    table: &'static str,
    row: &'static str,
    quantity: &'static str,
) -> GroupSource {
    let bars = BarSource::Columns {
        table,
        row,
        quantity,
    };
    GroupSource { label, bars }
}

pub(super) const fn cell_bars(
    label: &'static str,
    column: &'static str,
    cells: &'static [(&'static str, &'static str, &'static str)],
) -> GroupSource {
    let bars = BarSource::Cells { column, cells };
    GroupSource { label, bars }
}
