//! The state of the view: the last documents of the process, the tab, and the dialogue with the user.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use adit_config::text::sanitize_for_terminal;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;

use super::feed::Update;
use super::keys::{Dialogue, Outcome, TableModel};
use super::live_view::{HISTORY, LiveModel, push_value};
use super::look::Look;
use super::rows::{self, RowKey};
use super::table::{Column, Row, TableState};
use super::view;
use crate::command::process_documents::{AccountList, GroupList, Overview, SessionList};

/// The parts of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Sessions,
    Users,
    Groups,
    Listeners,
    Kcp,
}

impl Tab {
    pub(super) const ALL: [Self; 5] = [
        Self::Sessions,
        Self::Users,
        Self::Groups,
        Self::Listeners,
        Self::Kcp,
    ];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Sessions => "Sessions",
            Self::Users => "Users",
            Self::Groups => "Groups",
            Self::Listeners => "Listeners",
            Self::Kcp => "KCP",
        }
    }

    /// Returns its position in [`Self::ALL`].
    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// Returns the tab that is this many positions further, around the ends.
    fn moved(self, by: usize) -> Self {
        let index = (self.index() + by) % Self::ALL.len();
        Self::ALL.get(index).copied().unwrap_or(self)
    }
}

/// A request to the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Ends a session.
    EndSession(u64),
    /// Has a manual group use a member.
    SelectMember { group: String, member: String },
}

/// Bytes per second of a session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SessionRate {
    pub(super) up: u64,
    pub(super) down: u64,
}

/// The state of the view.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) address: String,
    pub(super) overview: Overview,
    /// The counters of KCP a second before.
    pub(super) kcp_before: serde_json::Map<String, serde_json::Value>,
    /// Bytes per second up and down, the newest last.
    pub(super) rates: VecDeque<(u64, u64)>,
    pub(super) sessions: Option<SessionList>,
    pub(super) session_rates: HashMap<u64, SessionRate>,
    sessions_since: Instant,
    /// `Some(None)` if the process has no accounts.
    pub(super) accounts: Option<Option<AccountList>>,
    pub(super) groups: Option<GroupList>,
    pub(super) dialogue: Dialogue<Action>,
    tables: [TableState<RowKey>; Tab::ALL.len()],
    tab: Tab,
}

impl Model {
    pub(super) fn new(address: &str, first: Overview, now: Instant) -> Self {
        let mut model = Self {
            address: sanitize_for_terminal(address),
            overview: Overview::default(),
            kcp_before: serde_json::Map::new(),
            rates: VecDeque::with_capacity(HISTORY),
            sessions: None,
            session_rates: HashMap::new(),
            sessions_since: now,
            accounts: None,
            groups: None,
            dialogue: Dialogue::new(now),
            tables: Default::default(),
            tab: Tab::Sessions,
        };
        model.update(Update::Overview(Box::new(first)), now);
        model
    }

    pub(super) const fn tab(&self) -> Tab {
        self.tab
    }

    fn update_sessions(&mut self, list: SessionList, now: Instant) {
        let seconds = (now - self.sessions_since).as_secs_f64();
        self.sessions_since = now;
        self.session_rates.clear();
        let before = self.sessions.iter().flat_map(|list| &list.sessions);
        let before: HashMap<u64, (u64, u64)> = before
            .map(|session| (session.id, (session.up, session.down)))
            .collect();
        let rate = |now: u64, before: u64| (now.saturating_sub(before) as f64 / seconds) as u64;
        if seconds > 0.1 {
            for session in &list.sessions {
                if let Some((up, down)) = before.get(&session.id) {
                    let rate = SessionRate {
                        up: rate(session.up, *up),
                        down: rate(session.down, *down),
                    };
                    self.session_rates.insert(session.id, rate);
                }
            }
        }
        self.sessions = Some(list);
    }

    /// Returns the table of the tab.
    pub(super) const fn shown_table(&self) -> &TableState<RowKey> {
        &self.tables[self.tab.index()]
    }
}

impl TableModel for Model {
    type Action = Action;
    type Key = RowKey;

    fn dialogue(&mut self) -> &mut Dialogue<Action> {
        &mut self.dialogue
    }

    fn columns(&self) -> &'static [Column] {
        rows::columns(self.tab)
    }

    fn rows(&self) -> Vec<Row<RowKey>> {
        rows::rows(self, self.tab)
    }

    fn table(&mut self) -> &mut TableState<RowKey> {
        &mut self.tables[self.tab.index()]
    }

    fn press_own(&mut self, code: KeyCode, now: Instant) -> Outcome<Action> {
        match code {
            KeyCode::Tab | KeyCode::Right => self.tab = self.tab.moved(1),
            KeyCode::BackTab | KeyCode::Left => self.tab = self.tab.moved(Tab::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='5') => {
                let index = usize::from(digit as u8 - b'1');
                self.tab = Tab::ALL.get(index).copied().unwrap_or(self.tab);
            }
            KeyCode::Char('K') | KeyCode::Delete => match self.selected_key() {
                Some(RowKey::Session(id)) => {
                    let question = format!("end session {id}? y ends it, any other key does not");
                    self.dialogue.ask(Action::EndSession(id), &question);
                }
                _ => self
                    .dialogue
                    .show_message("K ends a session: select one", now),
            },
            KeyCode::Enter => match self.selected_key() {
                Some(RowKey::Member {
                    group,
                    member,
                    is_manual: true,
                }) => return Outcome::Perform(Action::SelectMember { group, member }),
                Some(RowKey::Member { .. }) => {
                    let text = "only members of a `manual` group can be selected";
                    self.dialogue.show_message(text, now);
                }
                _ => {}
            },
            _ => {}
        }
        Outcome::Continue
    }
}

impl LiveModel for Model {
    type Update = Update;

    fn update(&mut self, update: Update, now: Instant) {
        if let Update::Performed(done) = &update {
            self.dialogue.show_result(done, now);
            return;
        }
        self.dialogue.note_answer(now);
        if self.dialogue.is_paused {
            return;
        }
        match update {
            Update::Overview(overview) => {
                push_value(&mut self.rates, (overview.up_rate, overview.down_rate));
                let before = std::mem::replace(&mut self.overview, *overview);
                self.kcp_before = before.kcp;
            }
            Update::Sessions(list) => self.update_sessions(list, now),
            Update::Accounts(list) => self.accounts = Some(list),
            Update::Groups(list) => self.groups = Some(list),
            // It is handled above.
            Update::Performed(_) => {}
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>, look: Look, now: Instant) {
        view::draw(frame, self, look, now);
    }
}
