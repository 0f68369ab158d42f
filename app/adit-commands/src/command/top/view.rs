//! Draws the view.

use std::time::Instant;

use adit_config::text::format_size;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::model::{Mode, Model, Tab};
use super::rows::empty_text;
use super::table_view::{self, TableView};
use crate::command::age::format_age;

/// The smallest terminal for the view.
pub(super) const SMALLEST: (u16, u16) = (40, 8);
/// Characters for eight levels, and without a character set that has them.
const LEVELS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII_LEVELS: [&str; 8] = ["_", ".", ":", "-", "=", "+", "*", "#"];

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

/// The means of the terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    has_colours: bool,
    pub(super) levels: &'static [&'static str; 8],
}

impl Look {
    /// Returns the look for the variables of the environment: `NO_COLOR`, and the character set.
    pub(super) fn of_environment() -> Self {
        let value = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(value);
        let locale = locale.unwrap_or_default().to_lowercase();
        let is_unicode = cfg!(windows) || locale.contains("utf-8") || locale.contains("utf8");
        Self::new(std::env::var_os("NO_COLOR").is_none(), is_unicode)
    }

    pub(super) const fn new(has_colours: bool, is_unicode: bool) -> Self {
        Self {
            has_colours,
            levels: match is_unicode {
                true => &LEVELS,
                false => &ASCII_LEVELS,
            },
        }
    }

    pub(super) fn colour(self, colour: Color) -> Style {
        match self.has_colours {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    pub(super) const fn strong() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn warning(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }
}

/// Draws the model.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model, look: &Look, now: Instant) {
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
    draw_title(frame, title, model, *look, now);
    draw_traffic(frame, traffic, model, *look);
    frame.render_widget(Line::raw(counts_text(model)), counts);
    frame.render_widget(tab_line(model), tabs);
    draw_table(frame, table, model, *look);
    draw_status(frame, status, model, *look, now);
    if model.mode == Mode::Help {
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
    let state = match (model.silence(now), model.is_paused) {
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
    model.page = table_view::page_of(area);
    let shown = model.shown_rows();
    let (sort, is_reversed) = model.sort();
    let view = TableView {
        columns: model.columns(),
        rows: &shown.rows,
        selected: shown.selected,
        sort,
        is_reversed,
        empty: empty_text(model),
    };
    view.draw(frame, area, look);
}

fn draw_status(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look, now: Instant) {
    let line = match &model.mode {
        Mode::Filter => Line::styled(format!("/{}_", model.filter()), Look::strong()),
        Mode::ConfirmEnd(id) => Line::styled(
            format!("end session {id}? y ends it, any other key does not"),
            look.warning(),
        ),
        Mode::Normal | Mode::Help => match model.message(now) {
            Some(message) if message.is_error => Line::styled(message.text.clone(), look.warning()),
            Some(message) => Line::styled(message.text.clone(), Look::strong()),
            None => Line::raw(hint_text(model)),
        },
    };
    frame.render_widget(line, area);
}

/// Returns the keys, and what of the list is not shown.
fn hint_text(model: &Model) -> String {
    let keys = match model.tab() {
        Tab::Sessions => "q quit  Tab next  s sort  / filter  K end  p pause  ? help",
        Tab::Groups => "q quit  Tab next  s sort  / filter  Enter use  p pause  ? help",
        _ => "q quit  Tab next  s sort  / filter  p pause  ? help",
    };
    if !model.filter().is_empty() {
        return format!("{keys}  [/{}]", model.filter());
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
