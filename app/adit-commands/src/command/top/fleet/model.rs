//! The state of the view: the nodes, and the dialogue with the user.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use adit_config::text::sanitize_for_terminal;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::feed::Update;
use crate::command::fleet::{NodeView, TITLES};
use crate::command::top::table::{Cell, Column, Row, TableState, Width};

/// Number of seconds in the graph of the traffic.
const HISTORY: usize = 120;
/// Time for which the result of an action is shown.
const MESSAGE_TIME: Duration = Duration::from_secs(6);
/// Time after which a missing answer is a message.
const SILENCE: Duration = Duration::from_secs(3);
/// Maximum length of a filter, in characters.
const MAX_FILTER: usize = 64;

const fn column(title: &'static str, width: Width, is_number: bool) -> Column {
    Column {
        title,
        width,
        is_number,
        from_width: 0,
    }
}

/// The columns: those of `adit fleet status`.
pub(super) const COLUMNS: [Column; TITLES.len()] = [
    column(TITLES[0], Width::Rest(1), false),
    column(TITLES[1], Width::Fixed(7), false),
    column(TITLES[2], Width::Fixed(6), true),
    column(TITLES[3], Width::Fixed(6), true),
    column(TITLES[4], Width::Fixed(7), true),
    column(TITLES[5], Width::Fixed(6), true),
    column(TITLES[6], Width::Fixed(6), true),
    column(TITLES[7], Width::Fixed(6), true),
    column(TITLES[8], Width::Fixed(8), false),
];

/// The meaning of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are commands.
    Normal,
    /// They change the filter.
    Filter,
    /// `y` drains the node.
    Confirm(Action),
    /// Any of them closes the help.
    Help,
}

/// A request to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) node: u32,
    pub(super) name: String,
    /// True for a drain, false for its end.
    pub(super) is_drain: bool,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Continue,
    Perform(Action),
    Quit,
    /// Ctrl-C.
    Interrupt,
}

/// The state of the view.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) title: String,
    pub(super) nodes: Vec<NodeView>,
    /// Bytes per second of all nodes, the newest last.
    pub(super) rates: VecDeque<u64>,
    pub(super) mode: Mode,
    pub(super) is_paused: bool,
    pub(super) filter: String,
    pub(super) table: TableState<u32>,
    message: Option<(String, bool, Instant)>,
    fault: Option<String>,
    last_answer: Instant,
    /// Number of rows that fit, which the view sets.
    pub(super) page: usize,
}

impl Model {
    pub(super) fn new(title: String, first: Vec<NodeView>, now: Instant) -> Self {
        let mut model = Self {
            title: sanitize_for_terminal(&title),
            nodes: Vec::new(),
            rates: VecDeque::with_capacity(HISTORY),
            mode: Mode::Normal,
            is_paused: false,
            filter: String::new(),
            table: TableState::default(),
            message: None,
            fault: None,
            last_answer: now,
            page: 1,
        };
        model.update(Update::Nodes(first), now);
        model
    }

    /// Takes over what the store server has answered.
    pub(super) fn update(&mut self, update: Update, now: Instant) {
        match update {
            Update::Performed(Ok(text)) => self.show_message(text, false, now),
            Update::Performed(Err(text)) => self.show_message(text, true, now),
            Update::Failed(why) => self.fault = Some(sanitize_for_terminal(&why)),
            Update::Nodes(nodes) => {
                self.last_answer = now;
                self.fault = None;
                if self.is_paused {
                    return;
                }
                if self.rates.len() == HISTORY {
                    self.rates.pop_front();
                }
                let rate = |node: &NodeView| node.up_rate.saturating_add(node.down_rate);
                let total = nodes.iter().map(rate).fold(0, u64::saturating_add);
                self.rates.push_back(total);
                self.nodes = nodes;
            }
        }
    }

    /// Returns the time for which the store server has not answered, if that is long, with the last fault.
    pub(super) fn silence(&self, now: Instant) -> Option<(Duration, Option<&str>)> {
        let silence = now.saturating_duration_since(self.last_answer);
        (silence >= SILENCE).then_some((silence, self.fault.as_deref()))
    }

    /// Returns the message to show, and true if it is an error.
    pub(super) fn message(&self, now: Instant) -> Option<(&str, bool)> {
        let (text, is_error, since) = self.message.as_ref()?;
        (now.saturating_duration_since(*since) < MESSAGE_TIME).then_some((text, *is_error))
    }

    fn show_message(&mut self, text: impl Into<String>, is_error: bool, since: Instant) {
        let text = sanitize_for_terminal(&text.into());
        self.message = Some((text, is_error, since));
    }

    /// Returns the rows in their order, and the position of the selected one.
    pub(super) fn shown_rows(&mut self) -> (Vec<Row<u32>>, usize) {
        let rows = self.nodes.iter().map(row).collect();
        self.table.arrange(rows, &self.filter)
    }

    /// Performs the command of a key.
    pub(super) fn press(&mut self, key: KeyEvent, now: Instant) -> Outcome {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Outcome::Interrupt;
        }
        match self.mode.clone() {
            Mode::Normal => return self.press_command(key.code, now),
            Mode::Filter => self.press_in_filter(key.code),
            Mode::Confirm(action) => {
                self.mode = Mode::Normal;
                if matches!(key.code, KeyCode::Char('y' | 'Y')) {
                    return Outcome::Perform(action);
                }
            }
            Mode::Help => self.mode = Mode::Normal,
        }
        Outcome::Continue
    }

    fn press_command(&mut self, code: KeyCode, now: Instant) -> Outcome {
        let page = self.page.max(1);
        match code {
            KeyCode::Char('q') => return Outcome::Quit,
            KeyCode::Down | KeyCode::Char('j') => self.select(|at, _| at.saturating_add(1)),
            KeyCode::Up | KeyCode::Char('k') => self.select(|at, _| at.saturating_sub(1)),
            KeyCode::PageDown => self.select(|at, _| at.saturating_add(page)),
            KeyCode::PageUp => self.select(|at, _| at.saturating_sub(page)),
            KeyCode::Home | KeyCode::Char('g') => self.select(|_, _| 0),
            KeyCode::End | KeyCode::Char('G') => self.select(|_, last| last),
            KeyCode::Char('s') => self.table.sort_by_next(COLUMNS.len()),
            KeyCode::Char('r') => self.table.is_reversed = !self.table.is_reversed,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char('d') => match self.selected_node() {
                Some(node) if node.state == "active" => {
                    self.mode = Mode::Confirm(action_of(&node, true));
                }
                Some(node) if node.is_up() => {
                    self.show_message("u puts this node back into service", false, now);
                }
                _ => self.show_message("d drains a node that is up: select one", false, now),
            },
            KeyCode::Char('u') => match self.selected_node() {
                Some(node) if node.state.starts_with("drain") => {
                    return Outcome::Perform(action_of(&node, false));
                }
                _ => self.show_message("this node is not drained", false, now),
            },
            _ => {}
        }
        Outcome::Continue
    }

    fn press_in_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.mode = Mode::Normal,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Normal;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) if !c.is_control() && self.filter.chars().count() < MAX_FILTER => {
                self.filter.push(c);
            }
            _ => {}
        }
    }

    /// Selects the row that `choose` returns for the position of the selected one and of the last one.
    fn select(&mut self, choose: impl FnOnce(usize, usize) -> usize) {
        let (rows, selected) = self.shown_rows();
        let last = rows.len().saturating_sub(1);
        self.table.select(&rows, choose(selected, last).min(last));
    }

    fn selected_node(&mut self) -> Option<NodeView> {
        let (rows, selected) = self.shown_rows();
        let key = rows.get(selected)?.key;
        self.nodes.iter().find(|node| node.id == key).cloned()
    }
}

fn action_of(node: &NodeView, is_drain: bool) -> Action {
    Action {
        node: node.id,
        name: node.name.clone(),
        is_drain,
    }
}

fn row(node: &NodeView) -> Row<u32> {
    let [name, version, up, sessions, rate, users, lag, clock, state] = node.cells();
    let traffic = node.up_rate.saturating_add(node.down_rate);
    let millis = |seconds: f64| (seconds.abs() * 1e3) as u64;
    Row {
        key: node.id,
        cells: vec![
            Cell::text(name),
            Cell::text(version),
            Cell::number(node.uptime.unwrap_or(0), up),
            Cell::number(node.sessions, sessions),
            Cell::number(traffic, rate),
            Cell::number(node.users, users),
            Cell::number(millis(node.lag_seconds), lag),
            Cell::number(millis(node.clock_offset_seconds), clock),
            Cell::text(state),
        ],
        is_marked: false,
        is_warning: !node.is_well(),
    }
}
