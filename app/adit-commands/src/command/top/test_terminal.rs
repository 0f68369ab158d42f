//! A terminal in memory, and its keys, for the tests of live views.

use std::time::Instant;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::keys::{Outcome, TableModel};
use super::live_view::LiveModel;
use super::look::Look;

/// Returns the lines of a view. Without colours in the look, there are none.
pub(super) fn drawn<M: LiveModel>(
    model: &mut M,
    size: (u16, u16),
    look: Look,
    now: Instant,
) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| model.draw(frame, look, now)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let width = usize::from(size.0);
    let cells: Vec<&str> = buffer.content().iter().map(Cell::symbol).collect();
    if !look.has_colours {
        let plain = |cell: &Cell| cell.fg == Color::Reset && cell.bg == Color::Reset;
        assert!(buffer.content().iter().all(plain), "a colour");
    }
    cells
        .chunks(width)
        .map(|line| line.concat().trim_end().to_owned())
        .collect()
}

/// Presses the keys of a text, and returns the outcome of the last one.
pub(super) fn press<M: TableModel>(model: &mut M, keys: &str) -> Outcome<M::Action> {
    let mut last = Outcome::Continue;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            key => KeyCode::Char(key),
        };
        last = model.press(KeyEvent::new(code, KeyModifiers::NONE), Instant::now());
    }
    last
}
