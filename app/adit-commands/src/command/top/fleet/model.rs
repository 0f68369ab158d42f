//! The state of the view: the nodes, and the dialogue with the user.

use std::collections::VecDeque;
use std::time::Instant;

use adit_config::text::sanitize_for_terminal;
use adit_fleet::NodeView;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;

use super::feed::Update;
use super::view;
use crate::command::fleet::{TITLES, cells};
use crate::command::top::keys::{Dialogue, Outcome, TableModel};
use crate::command::top::live_view::{HISTORY, LiveModel, push_value};
use crate::command::top::look::Look;
use crate::command::top::table::{Cell, Column, Row, TableState, Width};

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

/// A request to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) node: u32,
    pub(super) name: String,
    /// True for a drain, false for its end.
    pub(super) is_drain: bool,
}

/// The state of the view.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) title: String,
    pub(super) nodes: Vec<NodeView>,
    /// Bytes per second of all nodes, the newest last.
    pub(super) rates: VecDeque<u64>,
    pub(super) dialogue: Dialogue<Action>,
    pub(super) table: TableState<u32>,
    /// Why the store server does not answer.
    pub(super) fault: Option<String>,
}

impl Model {
    pub(super) fn new(title: &str, first: Vec<NodeView>, now: Instant) -> Self {
        let mut model = Self {
            title: sanitize_for_terminal(title),
            nodes: Vec::new(),
            rates: VecDeque::with_capacity(HISTORY),
            dialogue: Dialogue::new(now),
            table: TableState::default(),
            fault: None,
        };
        model.update(Update::Nodes(first), now);
        model
    }

    fn selected_node(&mut self) -> Option<NodeView> {
        let key = self.selected_key()?;
        self.nodes.iter().find(|node| node.id == key).cloned()
    }
}

impl TableModel for Model {
    type Action = Action;
    type Key = u32;

    fn dialogue(&mut self) -> &mut Dialogue<Action> {
        &mut self.dialogue
    }

    fn columns(&self) -> &'static [Column] {
        &COLUMNS
    }

    fn rows(&self) -> Vec<Row<u32>> {
        self.nodes.iter().map(row).collect()
    }

    fn table(&mut self) -> &mut TableState<u32> {
        &mut self.table
    }

    fn press_own(&mut self, code: KeyCode, now: Instant) -> Outcome<Action> {
        match code {
            KeyCode::Char('d') => match self.selected_node() {
                Some(node) if node.state == "active" => {
                    let name = &node.name;
                    let question = format!("drain {name}? y drains it, any other key does not");
                    self.dialogue.ask(action_of(&node, true), &question);
                }
                Some(node) if node.is_up() => {
                    let text = "u puts this node back into service";
                    self.dialogue.show_message(text, now);
                }
                _ => {
                    let text = "d drains a node that is up: select one";
                    self.dialogue.show_message(text, now);
                }
            },
            KeyCode::Char('u') => match self.selected_node() {
                Some(node) if node.state.starts_with("drain") => {
                    return Outcome::Perform(action_of(&node, false));
                }
                _ => self.dialogue.show_message("this node is not drained", now),
            },
            _ => {}
        }
        Outcome::Continue
    }
}

impl LiveModel for Model {
    type Update = Update;

    fn update(&mut self, update: Update, now: Instant) {
        match update {
            Update::Performed(done) => self.dialogue.show_result(&done, now),
            Update::Failed(why) => self.fault = Some(sanitize_for_terminal(&why)),
            Update::Nodes(nodes) => {
                self.dialogue.note_answer(now);
                self.fault = None;
                if self.dialogue.is_paused {
                    return;
                }
                let rate = |node: &NodeView| node.up_rate.saturating_add(node.down_rate);
                let total = nodes.iter().map(rate).fold(0, u64::saturating_add);
                push_value(&mut self.rates, total);
                self.nodes = nodes;
            }
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>, look: Look, now: Instant) {
        view::draw(frame, self, look, now);
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
    let [name, version, up, sessions, rate, users, lag, clock, state] = cells(node);
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
