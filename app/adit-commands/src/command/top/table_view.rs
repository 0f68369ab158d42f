//! Draws tables, and the help on keys, for all live views.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Padding, Paragraph, Row as TableRow, Table, TableState};

use super::look::Look;
use super::table::{Column, Row, Width};

/// Mark of the selected row, which shows without colours too.
pub(super) const MARK: &str = "> ";

/// A table as it is drawn.
pub(super) struct TableView<'a, K> {
    pub(super) columns: &'a [Column],
    pub(super) rows: &'a [Row<K>],
    pub(super) selected: usize,
    /// The column that the rows are sorted by.
    pub(super) sort: Option<usize>,
    pub(super) is_reversed: bool,
    /// The text of a table without rows.
    pub(super) empty: &'a str,
}

/// Returns the number of rows that fit below the head.
pub(super) fn page_of(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(1))
}

impl<K> TableView<'_, K> {
    /// Draws the rows around the selected one.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, look: Look) {
        let columns = self.columns;
        let width = frame.area().width;
        let visible = |column: &Column| column.from_width <= width;
        let heads = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| visible(column));
        let heads = heads.map(|(at, column)| {
            let mark = match (self.sort == Some(at), self.is_reversed) {
                (true, false) => "v",
                (true, true) => "^",
                (false, _) => "",
            };
            align(column, format!("{}{mark}", column.title))
        });
        let head = TableRow::new(heads).style(Look::strong().add_modifier(Modifier::UNDERLINED));
        if self.rows.is_empty() {
            let table = Table::new([TableRow::new([""])], widths(columns, visible));
            frame.render_widget(table.header(head), area);
            let below = Rect {
                y: area.y.saturating_add(1),
                height: area.height.saturating_sub(1),
                ..area
            };
            frame.render_widget(Line::raw(format!("{MARK}{}", self.empty)), below);
            return;
        }
        // Rows that are not visible are not built: a list has a thousand of them.
        let page = page_of(area).max(1);
        let first = (self.selected + 1).saturating_sub(page);
        let rows = self.rows.iter().skip(first).take(page).map(|row| {
            let cells = row.cells.iter().zip(columns);
            let cells = cells.filter(|(_, column)| visible(column));
            let style = match (row.is_marked, row.is_warning) {
                (true, false) => look.colour(Color::Green).add_modifier(Modifier::BOLD),
                (_, true) => look.colour(Color::Red),
                (false, false) => Style::new(),
            };
            TableRow::new(cells.map(|(cell, column)| align(column, cell.text.clone()))).style(style)
        });
        let table = Table::new(rows, widths(columns, visible))
            .header(head)
            .highlight_symbol(MARK)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut state = TableState::new().with_selected(Some(self.selected - first));
        frame.render_stateful_widget(table, area, &mut state);
    }
}

fn align(column: &Column, text: String) -> Text<'static> {
    let text = Text::raw(text);
    match column.is_number {
        true => text.alignment(Alignment::Right),
        false => text,
    }
}

fn widths(columns: &[Column], visible: impl Fn(&Column) -> bool) -> Vec<Constraint> {
    let columns = columns.iter().filter(|column| visible(column));
    let constraint = |column: &Column| match column.width {
        Width::Fixed(width) => Constraint::Length(width),
        Width::Rest(share) => Constraint::Fill(share),
    };
    columns.map(constraint).collect()
}

/// Draws a text in a box in the middle of the screen.
pub(super) fn draw_help(frame: &mut Frame<'_>, area: Rect, title: &str, help: &str) {
    let lines = u16::try_from(help.lines().count()).unwrap_or(u16::MAX);
    let longest = help.lines().map(|line| line.chars().count()).max();
    let longest = longest
        .and_then(|width| u16::try_from(width).ok())
        .unwrap_or(u16::MAX);
    // A border on each side, and a blank beside it.
    let (width, height) = (
        longest.saturating_add(4).min(area.width),
        lines.saturating_add(2).min(area.height),
    );
    let area = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, area);
    let block = Block::bordered()
        .title(title)
        .padding(Padding::horizontal(1));
    frame.render_widget(Paragraph::new(help).block(block), area);
}
