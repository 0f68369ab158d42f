//! A parser for the tables of a page: charts are drawn from the figures that the reader sees.

/// A table under its bold title.
#[derive(Debug, PartialEq)]
pub(crate) struct PageTable {
    pub(crate) title: String,
    /// Heads of the columns, without the arrow in the better direction.
    heads: Vec<String>,
    rows: Vec<(String, Vec<Option<PageFigure>>)>,
}

/// A figure with its lowest and highest value of all rounds; all three are equal after one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PageFigure {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl PageTable {
    /// Returns the rows that have a figure in a column, each with its name and figure.
    pub(super) fn column_figures(&self, head: &str) -> Vec<(&str, PageFigure)> {
        let Some(at) = self.heads.iter().position(|one| one == head) else {
            return Vec::new();
        };
        let rows = self.rows.iter();
        rows.filter_map(|(name, cells)| Some((name.as_str(), (*cells.get(at)?)?)))
            .collect()
    }

    /// Returns the columns in which a row has a figure, each with its head and figure.
    pub(super) fn row_figures(&self, name: &str) -> Vec<(&str, PageFigure)> {
        let own = self.rows.iter().filter(|(row, _)| row == name);
        let cells = own.flat_map(|(_, cells)| self.heads.iter().zip(cells));
        cells
            .filter_map(|(head, cell)| Some((head.as_str(), (*cell)?)))
            .collect()
    }
}

/// Returns the tables of a Markdown page that have their own title.
pub(super) fn parse_tables(page: &str) -> Vec<PageTable> {
    let mut tables = Vec::new();
    let mut title = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let bold = line
            .strip_prefix("**")
            .and_then(|rest| rest.strip_suffix("**"));
        if let Some(text) = bold {
            title = Some(text.trim_end_matches([' ', '↑', '↓']).to_owned());
        } else if line.starts_with('|')
            && let Some(title) = title.take()
        {
            let heads = split_cells(line).into_iter().skip(1);
            let heads = heads.map(|head| head.trim_end_matches([' ', '↑', '↓']).to_owned());
            let heads = heads.collect();
            let body = lines
                .by_ref()
                .skip(1)
                .take_while(|row| row.starts_with('|'));
            let rows = body.filter_map(parse_row).collect();
            tables.push(PageTable { title, heads, rows });
        }
    }
    tables
}

fn parse_row(line: &str) -> Option<(String, Vec<Option<PageFigure>>)> {
    let mut cells = split_cells(line).into_iter();
    let name = cells.next()?.to_owned();
    Some((name, cells.map(parse_figure).collect()))
}

fn split_cells(line: &str) -> Vec<&str> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(str::trim).collect()
}

/// Parses `12.3` or `12.3 (11.9–13.0)`; returns `None` for anything else.
fn parse_figure(cell: &str) -> Option<PageFigure> {
    let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
    let Some((median, range)) = cell.split_once(" (") else {
        let value = number(cell)?;
        return Some(PageFigure {
            median: value,
            min: value,
            max: value,
        });
    };
    let (min, max) = range.strip_suffix(')')?.split_once('–')?;
    Some(PageFigure {
        median: number(median)?,
        min: number(min)?,
        max: number(max)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# T\n\n**m, up**\n\n| | Gbit/s ↑ | CPU s/GiB, both ↓ |\n|---|--:|--:|\n\
        | adit | 10.2 (8.02–11.2) | 1.09 |\n| other | 1,230 | – |\n\n\
        **TCP: CPU s/GiB ↓**\n\n| | adit | other |\n|---|--:|--:|\n| aes | 0.5 | not offered |\n\n\
        | | no title |\n|---|--:|\n| x | 1 |\n";

    #[test]
    fn figures_are_read_as_they_are_written() {
        let tables = parse_tables(PAGE);
        let titles: Vec<&str> = tables.iter().map(|table| &*table.title).collect();
        assert_eq!(titles, ["m, up", "TCP: CPU s/GiB"]);
        let speed = tables[0].column_figures("Gbit/s");
        assert_eq!(
            (speed[0].1.median, speed[0].1.min, speed[0].1.max),
            (10.2, 8.02, 11.2)
        );
        assert_eq!((speed[1].0, speed[1].1.max), ("other", 1230.0));
        assert_eq!(tables[0].column_figures("CPU s/GiB, both").len(), 1);
        assert_eq!(tables[0].column_figures("CPU s/GiB"), []);
        let row = tables[1].row_figures("aes");
        assert_eq!(row.len(), 1);
        assert_eq!((row[0].0, row[0].1.median), ("adit", 0.5));
    }

    #[test]
    fn words_are_not_figures() {
        for cell in [
            "",
            "–",
            "not offered",
            "1.20, kept",
            "1 (2)",
            "(1–2)",
            "1 (a–b)",
        ] {
            assert_eq!(parse_figure(cell), None, "{cell}");
        }
    }
}
