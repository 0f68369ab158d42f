//! The tables of a page, read back: charts are drawn from the figures that the reader sees.

/// A table under its bold title.
#[derive(Debug, PartialEq)]
pub(crate) struct PageTable {
    pub(crate) title: String,
    /// Columns, without the arrow that names the better direction.
    heads: Vec<String>,
    rows: Vec<(String, Vec<Option<Span>>)>,
}

/// A figure with the least and the most of its rounds; all three are equal after one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl PageTable {
    /// Returns the names of the rows and their figures in a column, where they have one.
    pub(super) fn column(&self, head: &str) -> Vec<(&str, Span)> {
        let Some(at) = self.heads.iter().position(|one| one == head) else {
            return Vec::new();
        };
        let rows = self.rows.iter();
        rows.filter_map(|(name, cells)| Some((name.as_str(), (*cells.get(at)?)?)))
            .collect()
    }

    /// Returns the columns and figures of a row, where it has one.
    pub(super) fn row(&self, name: &str) -> Vec<(&str, Span)> {
        let own = self.rows.iter().filter(|(row, _)| row == name);
        let cells = own.flat_map(|(_, cells)| self.heads.iter().zip(cells));
        cells
            .filter_map(|(head, cell)| Some((head.as_str(), (*cell)?)))
            .collect()
    }
}

/// Returns the tables of a page of Markdown that have a title of their own.
pub(super) fn tables(page: &str) -> Vec<PageTable> {
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
            let heads = cells(line).into_iter().skip(1);
            let heads = heads.map(|head| head.trim_end_matches([' ', '↑', '↓']).to_owned());
            let heads = heads.collect();
            let body = lines
                .by_ref()
                .skip(1)
                .take_while(|row| row.starts_with('|'));
            let rows = body.filter_map(row).collect();
            tables.push(PageTable { title, heads, rows });
        }
    }
    tables
}

fn row(line: &str) -> Option<(String, Vec<Option<Span>>)> {
    let mut cells = cells(line).into_iter();
    let name = cells.next()?.to_owned();
    Some((name, cells.map(span).collect()))
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(str::trim).collect()
}

/// `12.3` or `12.3 (11.9–13.0)`; anything else is not a figure.
fn span(cell: &str) -> Option<Span> {
    let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
    let Some((median, range)) = cell.split_once(" (") else {
        let value = number(cell)?;
        return Some(Span {
            median: value,
            min: value,
            max: value,
        });
    };
    let (min, max) = range.strip_suffix(')')?.split_once('–')?;
    Some(Span {
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
        let tables = tables(PAGE);
        let titles: Vec<&str> = tables.iter().map(|table| &*table.title).collect();
        assert_eq!(titles, ["m, up", "TCP: CPU s/GiB"]);
        let speed = tables[0].column("Gbit/s");
        assert_eq!(
            (speed[0].1.median, speed[0].1.min, speed[0].1.max),
            (10.2, 8.02, 11.2)
        );
        assert_eq!((speed[1].0, speed[1].1.max), ("other", 1230.0));
        assert_eq!(tables[0].column("CPU s/GiB, both").len(), 1);
        assert_eq!(tables[0].column("CPU s/GiB"), []);
        let row = tables[1].row("aes");
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
            assert_eq!(span(cell), None, "{cell}");
        }
    }
}
