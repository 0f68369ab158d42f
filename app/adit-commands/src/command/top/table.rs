//! Tables of rows that can be sorted, filtered and selected.

use std::cmp::Ordering;

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) width: Width,
    /// Numbers are aligned to the right.
    pub(super) is_number: bool,
    /// Width of the terminal from which it is shown.
    pub(super) from_width: u16,
}

/// The width of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Width {
    /// In characters.
    Fixed(u16),
    /// A share of what the others leave.
    Rest(u16),
}

/// A cell: its text, and its value for sorting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) value: SortValue,
}

/// A value to sort by.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SortValue {
    /// Largest first.
    Number(u64),
    /// In the order of the alphabet.
    Text,
}

impl Cell {
    pub(super) fn text(text: impl ToString) -> Self {
        Self {
            text: text.to_string(),
            value: SortValue::Text,
        }
    }

    pub(super) fn number(value: u64, text: impl ToString) -> Self {
        Self {
            text: text.to_string(),
            value: SortValue::Number(value),
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (&self.value, &other.value) {
            (SortValue::Number(a), SortValue::Number(b)) => b.cmp(a),
            _ => self.text.to_lowercase().cmp(&other.text.to_lowercase()),
        }
    }
}

/// A row with the identity that it keeps from one update to the next.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row<K> {
    pub(super) key: K,
    pub(super) cells: Vec<Cell>,
    /// True for rows that are the ones in use, such as the selected member of a group.
    pub(super) is_marked: bool,
    /// True for rows about a failure.
    pub(super) is_warning: bool,
}

/// The order of a table, its filter, and the selected row.
#[derive(Debug, Clone)]
pub(super) struct TableState<K> {
    /// The text that rows contain; all do if it is empty.
    pub(super) filter: String,
    /// The column to sort by; `None` keeps the order of the process.
    pub(super) sort: Option<usize>,
    pub(super) is_reversed: bool,
    selected: Option<K>,
    /// The position of the selected row, which is used if that has gone.
    position: usize,
}

impl<K> Default for TableState<K> {
    fn default() -> Self {
        Self {
            filter: String::new(),
            sort: None,
            is_reversed: false,
            selected: None,
            position: 0,
        }
    }
}

impl<K: PartialEq + Clone> TableState<K> {
    /// Returns the rows that contain the text of the filter, in order, and the position of the selected one.
    pub(super) fn arrange(&mut self, mut rows: Vec<Row<K>>) -> (Vec<Row<K>>, usize) {
        let filter = self.filter.to_lowercase();
        let matches = |cell: &Cell| cell.text.to_lowercase().contains(&filter);
        rows.retain(|row| filter.is_empty() || row.cells.iter().any(matches));
        if let Some(column) = self.sort {
            rows.sort_by(|a, b| match (a.cells.get(column), b.cells.get(column)) {
                (Some(a), Some(b)) => a.compare(b),
                _ => Ordering::Equal,
            });
        }
        if self.is_reversed {
            rows.reverse();
        }
        let found = rows
            .iter()
            .position(|row| Some(&row.key) == self.selected.as_ref());
        let last = rows.len().saturating_sub(1);
        self.select(&rows, found.unwrap_or(self.position).min(last));
        (rows, self.position)
    }

    /// Selects the row at a position.
    pub(super) fn select(&mut self, rows: &[Row<K>], position: usize) {
        self.position = position;
        self.selected = rows.get(position).map(|row| row.key.clone());
    }

    /// Sorts by the next of `columns` columns; after the last one, in the order of the process.
    pub(super) fn sort_by_next(&mut self, columns: usize) {
        self.sort = match self.sort {
            None => Some(0),
            Some(last) if last + 1 >= columns => None,
            Some(column) => Some(column + 1),
        };
        self.is_reversed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: u64, name: &str, bytes: u64) -> Row<u64> {
        Row {
            key,
            cells: vec![Cell::text(name), Cell::number(bytes, bytes)],
            is_marked: false,
            is_warning: false,
        }
    }

    fn keys(rows: &[Row<u64>]) -> Vec<u64> {
        rows.iter().map(|row| row.key).collect()
    }

    #[test]
    fn rows_are_sorted_and_filtered() {
        let rows = || vec![row(1, "bert", 9), row(2, "Anna", 10), row(3, "cleo", 9)];
        let mut state = TableState::default();
        assert_eq!(keys(&state.arrange(rows()).0), [1, 2, 3]);
        state.sort_by_next(2);
        assert_eq!(keys(&state.arrange(rows()).0), [2, 1, 3]);
        state.sort_by_next(2);
        assert_eq!(keys(&state.arrange(rows()).0), [2, 1, 3]);
        state.is_reversed = true;
        assert_eq!(keys(&state.arrange(rows()).0), [3, 1, 2]);
        state.filter = "AN".to_owned();
        assert_eq!(keys(&state.arrange(rows()).0), [2]);
        state.sort_by_next(2);
        assert_eq!(state.sort, None);
    }

    #[test]
    fn the_selected_row_stays_selected() {
        let mut state = TableState::default();
        let rows = vec![row(1, "a", 1), row(2, "b", 2), row(3, "c", 3)];
        let (rows, _) = state.arrange(rows);
        state.select(&rows, 1);
        let more = vec![row(9, "z", 0), row(1, "a", 1), row(2, "b", 2)];
        assert_eq!(state.arrange(more).1, 2);
        // It has gone: the row in its place is selected.
        let fewer = vec![row(9, "z", 0), row(1, "a", 1)];
        assert_eq!(state.arrange(fewer).1, 1);
        assert_eq!(state.arrange(Vec::new()).1, 0);
    }
}
