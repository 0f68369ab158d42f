//! Draws the nodes.

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::model::Model;
use crate::command::fleet::megabits;
use crate::command::top::keys::{Mode, TableModel};
use crate::command::top::look::Look;
use crate::command::top::table_view::{self, TableView};
use crate::command::top::view::{SMALLEST, sparkline, status_line};

/// Help on the keys.
const HELP: &str = "\
arrows, j k      select a node
PgUp, PgDn       a page; g, Home: first; G, End: last
s                sort by the next column; r: reverse
/                filter; Enter keeps it, Esc clears it
d                drain the selected node (asks)
u                put a drained node back into service
p                pause, and continue
q                quit";

/// Draws the model.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model, look: Look, now: Instant) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("adit fleet top needs {} x {}", SMALLEST.0, SMALLEST.1);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let heights = [1, 1, 1].map(Constraint::Length).into_iter();
    let heights = heights.chain([Constraint::Fill(1), Constraint::Length(1)]);
    let areas = Layout::vertical(heights).split(area);
    let [title, traffic, blank, table, status] = *areas else {
        return;
    };
    let _ = blank;
    draw_title(frame, title, model, look, now);
    draw_traffic(frame, traffic, model, look);
    model.dialogue.page = table_view::page_of(table);
    let (rows, selected) = model.shown_rows();
    let view = TableView {
        columns: model.columns(),
        rows: &rows,
        selected,
        sort: model.table.sort,
        is_reversed: model.table.is_reversed,
        empty: match model.table.filter.is_empty() {
            true => "no nodes: `adit fleet token` prints a token for one",
            false => "nothing matches the filter; Esc clears it",
        },
    };
    view.draw(frame, table, look);
    let line = status_line(&model.dialogue, &model.table.filter, look, now);
    frame.render_widget(line.unwrap_or_else(|| hint_text(model).into()), status);
    if model.dialogue.mode == Mode::Help {
        table_view::draw_help(frame, area, "adit fleet top", HELP);
    }
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look, now: Instant) {
    if let Some(silence) = model.dialogue.silence(now) {
        let seconds = silence.as_secs();
        let why = model
            .fault
            .as_deref()
            .unwrap_or("the store server does not answer");
        let text = format!("no answer for {seconds} s: {why}");
        frame.render_widget(Line::styled(text, look.warning()), area);
        return;
    }
    let paused = if model.dialogue.is_paused {
        "  paused"
    } else {
        ""
    };
    let text = format!("adit fleet  {}{paused}", model.title);
    frame.render_widget(Line::styled(text, Look::strong()), area);
}

fn draw_traffic(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let up = model.nodes.iter().filter(|node| node.is_up()).count();
    let sessions: u64 = model
        .nodes
        .iter()
        .map(|node| node.sessions)
        .fold(0, u64::saturating_add);
    let rate = model.rates.back().copied().unwrap_or(0);
    let before = format!(
        "{up} of {} nodes up  {sessions} sessions  {} Mbit/s ",
        model.nodes.len(),
        megabits(rate)
    );
    let room = usize::from(area.width).saturating_sub(before.chars().count());
    let rates: Vec<u64> = model.rates.iter().copied().collect();
    let graph = sparkline(&rates, room, look.levels);
    let line = Line::from(vec![
        Span::raw(before),
        Span::styled(graph, look.colour(Color::Green)),
    ]);
    frame.render_widget(line, area);
}

fn hint_text(model: &Model) -> String {
    let keys = "q quit  s sort  / filter  d drain  u undo  p pause  ? help";
    match model.table.filter.as_str() {
        "" => keys.to_owned(),
        filter => format!("{keys}  [/{filter}]"),
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
