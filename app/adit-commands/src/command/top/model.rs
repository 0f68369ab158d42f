//! The state of the view: the last documents of the process, the tab, and the dialogue with the user.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use adit_config::text::sanitize_for_terminal;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::feed::Update;
use super::rows::{self, RowKey};
use super::table::{Column, Row, TableState};
use crate::command::process_documents::{AccountList, GroupList, Overview, SessionList};

/// Number of seconds in the graphs of the traffic.
const HISTORY: usize = 120;
/// Time after which missing totals are a message. They are sent once a second.
const SILENCE: Duration = Duration::from_secs(3);
/// Time for which the result of an action is shown.
const MESSAGE_TIME: Duration = Duration::from_secs(6);
/// Maximum length of a filter, in characters.
const MAX_FILTER: usize = 64;

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

/// The meaning of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are commands.
    Normal,
    /// They change the filter.
    Filter,
    /// `y` ends the session.
    ConfirmEnd(u64),
    /// Any of them closes the help.
    Help,
}

/// A request to the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Ends a session.
    EndSession(u64),
    /// Has a manual group use a member.
    SelectMember { group: String, member: String },
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

/// The result of an action, or a remark about a key.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) is_error: bool,
    since: Instant,
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
    pub(super) mode: Mode,
    pub(super) is_paused: bool,
    /// The filter of each tab.
    filters: [String; Tab::ALL.len()],
    tables: [TableState<RowKey>; Tab::ALL.len()],
    tab: Tab,
    message: Option<Message>,
    last_answer: Instant,
    /// Number of rows that fit, which the view sets.
    pub(super) page: usize,
}

/// The rows of a tab as they are shown.
pub(super) struct ShownRows {
    pub(super) rows: Vec<Row<RowKey>>,
    pub(super) selected: usize,
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
            mode: Mode::Normal,
            is_paused: false,
            filters: Default::default(),
            tables: Default::default(),
            tab: Tab::Sessions,
            message: None,
            last_answer: now,
            page: 1,
        };
        model.update(Update::Overview(Box::new(first)), now);
        model
    }

    pub(super) const fn tab(&self) -> Tab {
        self.tab
    }

    /// Takes over what the process has answered.
    pub(super) fn update(&mut self, update: Update, now: Instant) {
        if let Update::Performed(done) = update {
            let is_error = done.is_err();
            let text = done.unwrap_or_else(|why| why);
            self.show_message(text, is_error, now);
            return;
        }
        self.last_answer = now;
        if self.is_paused {
            return;
        }
        match update {
            Update::Overview(overview) => {
                if self.rates.len() == HISTORY {
                    self.rates.pop_front();
                }
                self.rates.push_back((overview.up_rate, overview.down_rate));
                let before = std::mem::replace(&mut self.overview, *overview);
                self.kcp_before = before.kcp;
            }
            Update::Sessions(list) => self.update_sessions(list, now),
            Update::Accounts(list) => self.accounts = Some(list),
            Update::Groups(list) => self.groups = Some(list),
            // Those end the view, or are handled above.
            Update::Performed(_) | Update::Ended => {}
        }
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

    /// Returns the time for which the process has not answered, if that is long.
    pub(super) fn silence(&self, now: Instant) -> Option<Duration> {
        let silence = now.saturating_duration_since(self.last_answer);
        (silence >= SILENCE).then_some(silence)
    }

    /// Returns the message to show.
    pub(super) fn message(&self, now: Instant) -> Option<&Message> {
        let message = self.message.as_ref();
        message.filter(|message| now.saturating_duration_since(message.since) < MESSAGE_TIME)
    }

    fn show_message(&mut self, text: impl Into<String>, is_error: bool, since: Instant) {
        self.message = Some(Message {
            text: text.into(),
            is_error,
            since,
        });
    }

    /// Returns the filter of the tab.
    pub(super) fn filter(&self) -> &str {
        self.filters
            .get(self.tab.index())
            .map_or("", String::as_str)
    }

    /// Returns the columns of the tab.
    pub(super) const fn columns(&self) -> &'static [Column] {
        rows::columns(self.tab)
    }

    /// Returns the title of the column that the tab is sorted by, and true if that is reversed.
    pub(super) fn sort(&self) -> (Option<usize>, bool) {
        let table = self.tables.get(self.tab.index());
        table.map_or((None, false), |table| (table.sort, table.is_reversed))
    }

    /// Returns the rows of the tab, in their order, that match the filter.
    pub(super) fn shown_rows(&mut self) -> ShownRows {
        let rows = rows::rows(self, self.tab);
        let index = self.tab.index();
        let filter = self.filters.get(index).cloned().unwrap_or_default();
        let (rows, selected) = match self.tables.get_mut(index) {
            Some(table) => table.arrange(rows, &filter),
            None => (rows, 0),
        };
        ShownRows { rows, selected }
    }

    /// Performs the command of a key.
    pub(super) fn press(&mut self, key: KeyEvent, now: Instant) -> Outcome {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Outcome::Interrupt;
        }
        match self.mode.clone() {
            Mode::Normal => self.press_command(key.code, now),
            Mode::Filter => {
                self.press_in_filter(key.code);
                Outcome::Continue
            }
            Mode::ConfirmEnd(id) => {
                self.mode = Mode::Normal;
                match key.code {
                    KeyCode::Char('y' | 'Y') => Outcome::Perform(Action::EndSession(id)),
                    _ => Outcome::Continue,
                }
            }
            Mode::Help => {
                self.mode = Mode::Normal;
                Outcome::Continue
            }
        }
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
            KeyCode::Tab | KeyCode::Right => self.tab = self.tab.moved(1),
            KeyCode::BackTab | KeyCode::Left => self.tab = self.tab.moved(Tab::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='5') => {
                let index = usize::from(digit as u8 - b'1');
                self.tab = Tab::ALL.get(index).copied().unwrap_or(self.tab);
            }
            KeyCode::Char('s') => {
                let columns = self.columns().len();
                self.with_table(|table| table.sort_by_next(columns));
            }
            KeyCode::Char('r') => self.with_table(|table| table.is_reversed = !table.is_reversed),
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc => self.filters[self.tab.index()].clear(),
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char('K') | KeyCode::Delete => match self.selected_key() {
                Some(RowKey::Session(id)) => self.mode = Mode::ConfirmEnd(id),
                _ => self.show_message("K ends a session: select one", false, now),
            },
            KeyCode::Enter => match self.selected_key() {
                Some(RowKey::Member {
                    group,
                    member,
                    is_manual: true,
                }) => return Outcome::Perform(Action::SelectMember { group, member }),
                Some(RowKey::Member { .. }) => {
                    let text = "only members of a `manual` group can be selected";
                    self.show_message(text, false, now);
                }
                _ => {}
            },
            _ => {}
        }
        Outcome::Continue
    }

    fn press_in_filter(&mut self, code: KeyCode) {
        let Some(filter) = self.filters.get_mut(self.tab.index()) else {
            return;
        };
        match code {
            KeyCode::Enter => self.mode = Mode::Normal,
            KeyCode::Esc => {
                filter.clear();
                self.mode = Mode::Normal;
            }
            KeyCode::Backspace => {
                filter.pop();
            }
            KeyCode::Char(c) if !c.is_control() && filter.chars().count() < MAX_FILTER => {
                filter.push(c);
            }
            _ => {}
        }
    }

    fn with_table(&mut self, change: impl FnOnce(&mut TableState<RowKey>)) {
        if let Some(table) = self.tables.get_mut(self.tab.index()) {
            change(table);
        }
    }

    /// Selects the row that `choose` returns for the position of the selected one and of the last one.
    fn select(&mut self, choose: impl FnOnce(usize, usize) -> usize) {
        let ShownRows { rows, selected } = self.shown_rows();
        let last = rows.len().saturating_sub(1);
        let position = choose(selected, last).min(last);
        self.with_table(|table| table.select(&rows, position));
    }

    fn selected_key(&mut self) -> Option<RowKey> {
        let ShownRows { rows, selected } = self.shown_rows();
        rows.into_iter().nth(selected).map(|row| row.key)
    }
}
