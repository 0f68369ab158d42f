//! The results of a benchmark: rows of figures, printed as a table, as Markdown, as JSON lines or as a chart.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use serde::{Serialize, Serializer};

use crate::args::bench::{BenchFormat, BenchOutput};
use crate::json;

/// A column of figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// Its heading.
    pub(super) head: &'static str,
    /// Its key in JSON; empty if it follows from the other columns.
    pub(super) key: &'static str,
    /// Its width in a table, in characters.
    pub(super) width: usize,
    /// The number of digits after the point. In JSON, figures have at least one more.
    pub(super) digits: usize,
}

/// The shape of the results of a benchmark.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportLayout {
    pub(super) columns: &'static [Column],
    /// The index of the column that charts show.
    pub(super) chart: usize,
    /// The index of a column that is part of the names in a chart, if these are not unique.
    pub(super) chart_label: Option<usize>,
    /// The heading of a chart.
    pub(super) chart_title: &'static str,
    /// The width of the names in a table, in characters.
    pub(super) name_width: usize,
}

/// Prints rows in the format of the command line. A chart is printed at the end, the others row by row.
pub(super) struct ReportPrinter {
    /// The command, if rows are JSON.
    json: Option<&'static str>,
    format: BenchFormat,
    layout: ReportLayout,
    rows: RefCell<Vec<ReportRow>>,
    progress: Progress,
}

/// A name, and the figure of each column; `None` where it cannot be measured.
struct ReportRow {
    name: String,
    figures: Vec<Option<f64>>,
}

impl ReportPrinter {
    /// Prints the head of a table.
    pub(super) fn new(command: &'static str, output: &BenchOutput, layout: ReportLayout) -> Self {
        let json = output.is_json().then_some(command);
        match output.format {
            _ if json.is_some() => {}
            BenchFormat::Table => {
                let mut head = format!("{:<width$}", "", width = layout.name_width);
                for column in layout.columns {
                    let _ = write!(head, " {:>width$}", column.head, width = column.width);
                }
                println!("{head}");
            }
            BenchFormat::Markdown => {
                let heads: Vec<&str> = layout.columns.iter().map(|column| column.head).collect();
                println!(
                    "| | {} |\n|---|{}",
                    heads.join(" | "),
                    "--:|".repeat(heads.len())
                );
            }
            BenchFormat::Svg => {}
        }
        Self {
            json,
            format: output.format,
            layout,
            rows: RefCell::default(),
            progress: Progress::new(),
        }
    }

    /// Returns true if the output is for people, who want to read more than the rows.
    pub(super) fn is_for_people(&self) -> bool {
        self.json.is_none() && self.format != BenchFormat::Svg
    }

    /// Shows the name of the row that is measured next, on a terminal. `total` is the number of rows; 0 if it is not
    /// known.
    pub(super) fn show_progress(&self, name: &str, total: usize) {
        self.progress.show(self.rows.borrow().len(), total, name);
    }

    /// Prints a row.
    pub(super) fn print_row(&self, name: &str, figures: &[Option<f64>]) {
        debug_assert_eq!(figures.len(), self.layout.columns.len());
        self.progress.clear();
        let row = ReportRow {
            name: name.to_owned(),
            figures: figures.to_vec(),
        };
        match (self.json, self.format) {
            (Some(command), _) => {
                json::print_event(command, "row", &row.for_programs(&self.layout));
            }
            (None, BenchFormat::Table) => println!("{}", row.to_table(&self.layout)),
            (None, BenchFormat::Markdown) => println!("{}", row.to_markdown(&self.layout)),
            (None, BenchFormat::Svg) => {}
        }
        self.rows.borrow_mut().push(row);
    }

    /// Returns the row with the best figure of the chart's column among those that `names` selects, and the figure.
    pub(super) fn best(
        &self,
        is_better: fn(f64, f64) -> bool,
        names: impl Fn(&str) -> bool,
    ) -> Option<(String, f64)> {
        let rows = self.rows.borrow();
        let figures = rows
            .iter()
            .filter(|row| names(&row.name))
            .filter_map(|row| {
                let figure = row.figures.get(self.layout.chart).copied().flatten()?;
                Some((row.name.clone(), figure))
            });
        figures.reduce(|best, one| if is_better(one.1, best.1) { one } else { best })
    }

    /// Prints the chart, if that is the format, or a line of advice.
    pub(super) fn finish(self, advice: Option<&str>) {
        self.progress.clear();
        // Each document has a row.
        if self.json.is_some() {
            return;
        }
        match (self.format, advice) {
            (BenchFormat::Svg, _) => print!("{}", chart(&self.layout, &self.rows.borrow())),
            (_, Some(advice)) => println!("\n{advice}"),
            (_, None) => {}
        }
    }
}

impl ReportRow {
    fn cells<'a>(
        &'a self,
        layout: &'a ReportLayout,
    ) -> impl Iterator<Item = (&'a Column, Option<f64>)> {
        layout.columns.iter().zip(self.figures.iter().copied())
    }

    fn to_table(&self, layout: &ReportLayout) -> String {
        let mut line = format!("{:<width$}", self.name, width = layout.name_width);
        for (column, figure) in self.cells(layout) {
            let cell = cell(column, figure);
            let _ = write!(line, " {cell:>width$}", width = column.width);
        }
        line
    }

    fn to_markdown(&self, layout: &ReportLayout) -> String {
        let cells: Vec<String> = self
            .cells(layout)
            .map(|(column, figure)| cell(column, figure))
            .collect();
        format!("| {} | {} |", self.name, cells.join(" | "))
    }

    fn for_programs<'a>(&'a self, layout: &'a ReportLayout) -> JsonRow<'a> {
        JsonRow { row: self, layout }
    }
}

/// The JSON object of a row, with its keys in the order of the columns.
struct JsonRow<'a> {
    row: &'a ReportRow,
    layout: &'a ReportLayout,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let name = ("name", JsonCell::Name(&self.row.name));
        let with_key = self
            .row
            .cells(self.layout)
            .filter(|(column, _)| !column.key.is_empty());
        let figures =
            with_key.map(|(column, figure)| (column.key, JsonCell::of_figure(column, figure)));
        to.collect_map(std::iter::once(name).chain(figures))
    }
}

/// A value in JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum JsonCell<'a> {
    Name(&'a str),
    /// A size or a count.
    Whole(u64),
    Figure(Option<f64>),
}

impl JsonCell<'_> {
    fn of_figure(column: &Column, figure: Option<f64>) -> Self {
        match figure {
            // Far below 2⁵³.
            Some(figure) if column.digits == 0 => Self::Whole(figure as u64),
            _ => {
                let factor = if column.digits < 2 { 100.0 } else { 10_000.0 };
                Self::Figure(figure.map(|figure| (figure * factor).round() / factor))
            }
        }
    }
}

fn cell(column: &Column, figure: Option<f64>) -> String {
    figure.map_or_else(
        || "-".to_owned(),
        |figure| format!("{figure:.*}", column.digits),
    )
}

/// Height of a bar with its distance to the next one, and the place of the bars, in pixels.
const BAR: usize = 22;
const BARS_AT: usize = 320;
const BARS_WIDTH: f64 = 320.0;

/// Returns a chart of horizontal bars as SVG, for light and dark pages.
fn chart(layout: &ReportLayout, rows: &[ReportRow]) -> String {
    let charted = |row: &ReportRow| row.figures.get(layout.chart).copied().flatten();
    let label = |row: &ReportRow| match layout.chart_label {
        None => row.name.clone(),
        Some(label) => {
            let mut cells = row.cells(layout);
            let cell = cells
                .nth(label)
                .map(|(column, figure)| cell(column, figure));
            format!("{}, {}", row.name, cell.unwrap_or_default())
        }
    };
    let bars: Vec<(String, f64)> = rows
        .iter()
        .filter_map(|row| Some((label(row), charted(row)?)))
        .collect();
    let largest = bars
        .iter()
        .fold(f64::MIN_POSITIVE, |most, (_, figure)| most.max(*figure));
    let digits = layout
        .columns
        .get(layout.chart)
        .map_or(2, |column| column.digits);
    let height = 40 + bars.len() * BAR;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 740 {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <style>text{{fill:#222}}rect{{fill:#2a78b5}}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}rect{{fill:#5aa9e6}}}}</style>\n\
         <text x=\"8\" y=\"20\" font-weight=\"bold\">{}</text>\n",
        layout.chart_title
    );
    for (place, (name, figure)) in bars.iter().enumerate() {
        let (top, width) = (34 + place * BAR, figure / largest * BARS_WIDTH);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{BARS_AT}\" y=\"{top}\" width=\"{width:.1}\" height=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{}\">{figure:.digits$}</text>",
            BARS_AT - 8,
            top + 13,
            BAR - 6,
            BARS_AT as f64 + width + 6.0,
            top + 13,
        );
    }
    svg + "</svg>\n"
}

/// A bar in the last line of the terminal, while rows are measured.
struct Progress {
    enabled: bool,
    is_shown: Cell<bool>,
}

impl Progress {
    fn new() -> Self {
        Self {
            enabled: std::io::stderr().is_terminal(),
            is_shown: Cell::new(false),
        }
    }

    fn show(&self, done: usize, total: usize, name: &str) {
        const WIDTH: usize = 24;
        if !self.enabled {
            return;
        }
        // The cursor returns to the start of the line, which is cleared.
        match (done * WIDTH).checked_div(total) {
            Some(filled) => {
                let filled = filled.min(WIDTH);
                let (full, empty) = ("#".repeat(filled), ".".repeat(WIDTH - filled));
                eprint!("\r\x1b[K[{full}{empty}] {done}/{total} {name}");
            }
            None => eprint!("\r\x1b[K{done} rows are measured{name}"),
        }
        let _ = std::io::stderr().flush();
        self.is_shown.set(true);
    }

    fn clear(&self) {
        if self.is_shown.replace(false) {
            eprint!("\r\x1b[K");
            let _ = std::io::stderr().flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::json_option::JsonOption;

    const LAYOUT: ReportLayout = ReportLayout {
        columns: &[
            Column {
                head: "bytes",
                key: "bytes",
                width: 7,
                digits: 0,
            },
            Column {
                head: "GB/s",
                key: "",
                width: 8,
                digits: 2,
            },
            Column {
                head: "ns",
                key: "ns_per_op",
                width: 10,
                digits: 1,
            },
        ],
        chart: 1,
        chart_label: Some(0),
        chart_title: "GB/s: more is better",
        name_width: 10,
    };

    fn row(name: &str, speed: Option<f64>) -> ReportRow {
        ReportRow {
            name: name.to_owned(),
            figures: vec![Some(1400.0), speed, Some(12.345)],
        }
    }

    #[test]
    fn rows_have_each_format() {
        let (row, without) = (row("seal", Some(1.5)), row("seal", None));
        assert_eq!(
            row.to_table(&LAYOUT),
            "seal          1400     1.50       12.3"
        );
        assert_eq!(row.to_markdown(&LAYOUT), "| seal | 1400 | 1.50 | 12.3 |");
        assert_eq!(
            serde_json::to_string(&row.for_programs(&LAYOUT)).unwrap(),
            r#"{"name":"seal","bytes":1400,"ns_per_op":12.35}"#
        );
        assert_eq!(
            without.to_table(&LAYOUT),
            "seal          1400        -       12.3"
        );
    }

    #[test]
    fn the_longest_bar_is_the_largest_figure() {
        let svg = chart(
            &LAYOUT,
            &[row("a", Some(1.0)), row("b", Some(4.0)), row("c", None)],
        );
        assert!(
            svg.contains("width=\"320.0\"") && svg.contains("width=\"80.0\""),
            "{svg}"
        );
        assert_eq!(svg.matches("<rect").count(), 2, "{svg}");
        assert!(svg.contains(">a, 1400</text>"), "{svg}");
    }

    #[test]
    fn the_best_row_is_found() {
        let output = BenchOutput {
            format: BenchFormat::Svg,
            json: JsonOption { json: false },
        };
        let report = ReportPrinter::new("bench test", &output, LAYOUT);
        for (name, figure) in [("a", 2.0), ("b", 3.0), ("c", 1.0)] {
            report.print_row(name, &[None, Some(figure), None]);
        }
        let best = report.best(|a, b| a > b, |name| name != "b");
        assert_eq!(best, Some(("a".to_owned(), 2.0)));
    }
}
