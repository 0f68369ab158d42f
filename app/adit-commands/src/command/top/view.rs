//! Draws the view.

use std::time::Instant;

use adit_config::text::format_size;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::keys::{Dialogue, Mode, TableModel};
use super::look::Look;
use super::model::{Model, Tab};
use super::rows::empty_text;
use super::table_view::{self, TableView};
use crate::command::age::format_age;

/// The smallest terminal for the view.
pub(super) const SMALLEST: (u16, u16) = (40, 8);
/// Help on the keys.
const HELP: &str = "\
arrows, j k      select a row
PgUp, PgDn       a page; g, Home: first; G, End: last
Tab, 1 … 5       another tab; also left, right
s                sort by the next column; r: reverse
/                filter; Enter keeps it, Esc clears it
K, Delete        end the selected session (asks)
Enter            use the selected member of a manual group
p                pause, and continue
q                quit

A target is shown as its class and port only.";

/// Draws the model.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model, look: Look, now: Instant) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("adit top needs {} x {}", SMALLEST.0, SMALLEST.1);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let heights = [1, 1, 1, 1].map(Constraint::Length);
    let heights = heights.into_iter();
    let heights = heights.chain([Constraint::Fill(1), Constraint::Length(1)]);
    let areas = Layout::vertical(heights).split(area);
    let [title, traffic, counts, tabs, table, status] = *areas else {
        return;
    };
    draw_title(frame, title, model, look, now);
    draw_traffic(frame, traffic, model, look);
    frame.render_widget(Line::raw(counts_text(model)), counts);
    frame.render_widget(tab_line(model), tabs);
    draw_table(frame, table, model, look);
    let line = status_line(&model.dialogue, &model.shown_table().filter, look, now);
    frame.render_widget(line.unwrap_or_else(|| hint_text(model).into()), status);
    if model.dialogue.mode == Mode::Help {
        table_view::draw_help(frame, area, "adit top", HELP);
    }
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look, now: Instant) {
    let overview = &model.overview;
    let left = format!(
        "adit {}  pid {}  up {}  {}",
        overview.version,
        overview.pid,
        format_age(overview.uptime),
        model.address
    );
    frame.render_widget(Line::styled(left, Look::strong()), area);
    let state = match (model.dialogue.silence(now), model.dialogue.is_paused) {
        (Some(silence), _) => format!(" no answer for {} s", silence.as_secs()),
        (None, true) => " paused".to_owned(),
        (None, false) => return,
    };
    let width = u16::try_from(state.len()).unwrap_or(area.width);
    let area = Rect {
        x: area.right().saturating_sub(width).max(area.x),
        width: width.min(area.width),
        ..area
    };
    frame.render_widget(Line::styled(state, look.warning()), area);
}

/// Draws the rates with their graphs, and the totals.
fn draw_traffic(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let halves = Layout::horizontal([Constraint::Fill(1); 2])
        .spacing(2)
        .split(area);
    let overview = &model.overview;
    let down = (
        model.rates.iter().map(|rate| rate.1).collect(),
        overview.down_rate,
        overview.down,
    );
    let up = (
        model.rates.iter().map(|rate| rate.0).collect(),
        overview.up_rate,
        overview.up,
    );
    for (area, (name, colour, (rates, rate, total))) in halves
        .iter()
        .zip([("down", Color::Green, down), ("up", Color::Blue, up)])
    {
        let rates: Vec<u64> = rates;
        let before = format!("{name} {:>9} ", format_size(rate) + "/s");
        let after = format!(" {}", format_size(total));
        let room = usize::from(area.width).saturating_sub(before.len() + after.len());
        let graph = sparkline(&rates, room, look.levels);
        let line = Line::from(vec![
            Span::raw(before),
            Span::styled(graph, look.colour(colour)),
            Span::raw(after),
        ]);
        frame.render_widget(line, *area);
    }
}

/// Returns the newest values, relative to the largest of them; zero is blank.
pub(super) fn sparkline(values: &[u64], width: usize, levels: &[&str; 8]) -> String {
    let shown = &values
        .get(values.len().saturating_sub(width)..)
        .unwrap_or_default();
    let most = shown.iter().copied().max().unwrap_or(0).max(1);
    let level = |value: &u64| match *value {
        0 => " ",
        value => {
            let level = u128::from(value) * 7 / u128::from(most);
            usize::try_from(level)
                .ok()
                .and_then(|at| levels.get(at))
                .unwrap_or(&" ")
        }
    };
    let blank = " ".repeat(width - shown.len());
    blank + &shown.iter().map(level).collect::<String>()
}

fn counts_text(model: &Model) -> String {
    let overview = &model.overview;
    let rejects = overview.rejects.as_ref().map(|rejects| {
        let count: u64 = rejects.iter().map(|reject| reject.count).sum();
        format!("  rejected {count}")
    });
    format!(
        "sessions {} open, {} total  connections {}  associations {}{}",
        overview.sessions_open,
        overview.sessions_total,
        overview.connections_open,
        overview.associations_open,
        rejects.unwrap_or_default()
    )
}

/// Returns the titles of the tabs. The selected one is in brackets, which need no colours.
fn tab_line(model: &Model) -> Line<'static> {
    let spans = Tab::ALL.into_iter().enumerate().map(|(at, tab)| {
        let title = format!("{} {}", at + 1, tab.title());
        match tab == model.tab() {
            true => Span::styled(
                format!("[{title}] "),
                Look::strong().add_modifier(Modifier::REVERSED),
            ),
            false => Span::raw(format!(" {title}  ")),
        }
    });
    Line::from(spans.collect::<Vec<_>>())
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, model: &mut Model, look: Look) {
    model.dialogue.page = table_view::page_of(area);
    let (rows, selected) = model.shown_rows();
    let table = model.shown_table();
    let view = TableView {
        columns: model.columns(),
        rows: &rows,
        selected,
        sort: table.sort,
        is_reversed: table.is_reversed,
        empty: empty_text(model),
    };
    view.draw(frame, area, look);
}

/// Returns the last line: the filter that is typed, the question, or the message; `None` leaves it to hints.
pub(super) fn status_line<A>(
    dialogue: &Dialogue<A>,
    filter: &str,
    look: Look,
    now: Instant,
) -> Option<Line<'static>> {
    match &dialogue.mode {
        Mode::Filter => Some(Line::styled(format!("/{filter}_"), Look::strong())),
        Mode::Confirm { question, .. } => Some(Line::styled(question.clone(), look.warning())),
        Mode::Normal | Mode::Help => dialogue.message(now).map(|message| {
            let style = match message.is_error {
                true => look.warning(),
                false => Look::strong(),
            };
            Line::styled(message.text.clone(), style)
        }),
    }
}

/// Returns the keys, and what of the list is not shown.
fn hint_text(model: &Model) -> String {
    let keys = match model.tab() {
        Tab::Sessions => "q quit  Tab next  s sort  / filter  K end  p pause  ? help",
        Tab::Groups => "q quit  Tab next  s sort  / filter  Enter use  p pause  ? help",
        _ => "q quit  Tab next  s sort  / filter  p pause  ? help",
    };
    let filter = &model.shown_table().filter;
    if !filter.is_empty() {
        return format!("{keys}  [/{filter}]");
    }
    let sessions = model
        .sessions
        .as_ref()
        .filter(|_| model.tab() == Tab::Sessions);
    match sessions.map(|list| (list.sessions.len(), list.total)) {
        Some((shown, total)) if u64::try_from(shown).is_ok_and(|shown| shown < total) => {
            format!("{keys}  newest {shown} of {total}")
        }
        _ => keys.to_owned(),
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
