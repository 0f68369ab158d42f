//! The keys that all live views have: they move in a table, sort and filter it, and answer questions.

use std::time::{Duration, Instant};

use adit_config::text::sanitize_for_terminal;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::table::{Column, Row, TableState};

/// Time for which the result of an action is shown.
const MESSAGE_TIME: Duration = Duration::from_secs(6);
/// Time after which a missing answer is a message. There is one a second.
const SILENCE: Duration = Duration::from_secs(3);
/// Maximum length of a filter, in characters.
const MAX_FILTER: usize = 64;

/// The meaning of the keys. `A` is an action of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode<A> {
    /// They are commands.
    Normal,
    /// They change the filter.
    Filter,
    /// `y` performs the action.
    Confirm {
        /// The action.
        action: A,
        /// The question that is shown.
        question: String,
    },
    /// Any of them closes the help.
    Help,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome<A> {
    Continue,
    Perform(A),
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

/// The dialogue of a view with the user.
#[derive(Debug)]
pub(super) struct Dialogue<A> {
    pub(super) mode: Mode<A>,
    pub(super) is_paused: bool,
    /// Number of rows that fit, which the view sets.
    pub(super) page: usize,
    message: Option<Message>,
    last_answer: Instant,
}

impl<A> Dialogue<A> {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            mode: Mode::Normal,
            is_paused: false,
            page: 1,
            message: None,
            last_answer: now,
        }
    }

    /// Returns the message to show.
    pub(super) fn message(&self, now: Instant) -> Option<&Message> {
        let message = self.message.as_ref();
        message.filter(|message| now.saturating_duration_since(message.since) < MESSAGE_TIME)
    }

    /// Shows a remark.
    pub(super) fn show_message(&mut self, text: &str, now: Instant) {
        self.set_message(text, false, now);
    }

    /// Shows the result of an action.
    pub(super) fn show_result(&mut self, done: &Result<String, String>, now: Instant) {
        match done {
            Ok(text) => self.set_message(text, false, now),
            Err(text) => self.set_message(text, true, now),
        }
    }

    fn set_message(&mut self, text: &str, is_error: bool, since: Instant) {
        self.message = Some(Message {
            text: sanitize_for_terminal(text),
            is_error,
            since,
        });
    }

    /// Asks if the action is to be performed.
    pub(super) fn ask(&mut self, action: A, question: &str) {
        self.mode = Mode::Confirm {
            action,
            question: sanitize_for_terminal(question),
        };
    }

    /// Notes that the other side has answered.
    pub(super) const fn note_answer(&mut self, now: Instant) {
        self.last_answer = now;
    }

    /// Returns the time for which the other side has not answered, if that is long.
    pub(super) fn silence(&self, now: Instant) -> Option<Duration> {
        let silence = now.saturating_duration_since(self.last_answer);
        (silence >= SILENCE).then_some(silence)
    }
}

/// A model that shows a table.
pub(super) trait TableModel {
    /// A request of the user to the other side.
    type Action;
    /// The identity of a row.
    type Key: PartialEq + Clone;

    fn dialogue(&mut self) -> &mut Dialogue<Self::Action>;

    fn columns(&self) -> &'static [Column];

    /// Returns all rows, in the order of the other side.
    fn rows(&self) -> Vec<Row<Self::Key>>;

    fn table(&mut self) -> &mut TableState<Self::Key>;

    /// Performs the command of a key that only this view has.
    fn press_own(&mut self, code: KeyCode, now: Instant) -> Outcome<Self::Action>;

    /// Returns the rows in their order that match the filter, and the position of the selected one.
    fn shown_rows(&mut self) -> (Vec<Row<Self::Key>>, usize) {
        let rows = self.rows();
        self.table().arrange(rows)
    }

    /// Returns the identity of the selected row.
    fn selected_key(&mut self) -> Option<Self::Key> {
        let (rows, selected) = self.shown_rows();
        rows.into_iter().nth(selected).map(|row| row.key)
    }

    /// Performs the command of a key.
    fn press(&mut self, key: KeyEvent, now: Instant) -> Outcome<Self::Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Outcome::Interrupt;
        }
        match std::mem::replace(&mut self.dialogue().mode, Mode::Normal) {
            Mode::Normal => return press_command(self, key.code, now),
            Mode::Filter => {
                if press_in_filter(&mut self.table().filter, key.code) {
                    self.dialogue().mode = Mode::Filter;
                }
            }
            Mode::Confirm { action, .. } => {
                if matches!(key.code, KeyCode::Char('y' | 'Y')) {
                    return Outcome::Perform(action);
                }
            }
            Mode::Help => {}
        }
        Outcome::Continue
    }
}

fn press_command<M: TableModel + ?Sized>(
    model: &mut M,
    code: KeyCode,
    now: Instant,
) -> Outcome<M::Action> {
    let page = model.dialogue().page.max(1);
    match code {
        KeyCode::Char('q') => return Outcome::Quit,
        KeyCode::Down | KeyCode::Char('j') => select(model, |at, _| at.saturating_add(1)),
        KeyCode::Up | KeyCode::Char('k') => select(model, |at, _| at.saturating_sub(1)),
        KeyCode::PageDown => select(model, |at, _| at.saturating_add(page)),
        KeyCode::PageUp => select(model, |at, _| at.saturating_sub(page)),
        KeyCode::Home | KeyCode::Char('g') => select(model, |_, _| 0),
        KeyCode::End | KeyCode::Char('G') => select(model, |_, last| last),
        KeyCode::Char('s') => {
            let columns = model.columns().len();
            model.table().sort_by_next(columns);
        }
        KeyCode::Char('r') => {
            let table = model.table();
            table.is_reversed = !table.is_reversed;
        }
        KeyCode::Char('/') => model.dialogue().mode = Mode::Filter,
        KeyCode::Esc => model.table().filter.clear(),
        KeyCode::Char('p') => {
            let dialogue = model.dialogue();
            dialogue.is_paused = !dialogue.is_paused;
        }
        KeyCode::Char('?' | 'h') => model.dialogue().mode = Mode::Help,
        code => return model.press_own(code, now),
    }
    Outcome::Continue
}

/// Selects the row that `choose` returns for the position of the selected one and of the last one.
fn select<M: TableModel + ?Sized>(model: &mut M, choose: impl FnOnce(usize, usize) -> usize) {
    let (rows, selected) = model.shown_rows();
    let last = rows.len().saturating_sub(1);
    let position = choose(selected, last).min(last);
    model.table().select(&rows, position);
}

/// Changes the filter. Returns true if the next key is for it too.
fn press_in_filter(filter: &mut String, code: KeyCode) -> bool {
    match code {
        KeyCode::Enter => return false,
        KeyCode::Esc => {
            filter.clear();
            return false;
        }
        KeyCode::Backspace => {
            filter.pop();
        }
        KeyCode::Char(c) if !c.is_control() && filter.chars().count() < MAX_FILTER => {
            filter.push(c);
        }
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::table::Cell;
    use super::super::test_terminal::press;
    use super::*;

    /// A table with the numbers 0 to 9.
    struct Numbers {
        dialogue: Dialogue<u8>,
        table: TableState<u8>,
    }

    impl Numbers {
        fn new() -> Self {
            Self {
                dialogue: Dialogue::new(Instant::now()),
                table: TableState::default(),
            }
        }
    }

    impl TableModel for Numbers {
        type Action = u8;
        type Key = u8;

        fn dialogue(&mut self) -> &mut Dialogue<u8> {
            &mut self.dialogue
        }

        fn columns(&self) -> &'static [Column] {
            &[]
        }

        fn rows(&self) -> Vec<Row<u8>> {
            let row = |key| Row {
                key,
                cells: vec![Cell::text(key)],
                is_marked: false,
                is_warning: false,
            };
            (0..10).map(row).collect()
        }

        fn table(&mut self) -> &mut TableState<u8> {
            &mut self.table
        }

        fn press_own(&mut self, code: KeyCode, _: Instant) -> Outcome<u8> {
            if code == KeyCode::Char('x') {
                self.dialogue.ask(7, "x?\u{1b}");
            }
            Outcome::Continue
        }
    }

    #[test]
    fn keys_move_in_the_table() {
        let mut numbers = Numbers::new();
        numbers.dialogue.page = 4;
        for (keys, selected) in [("jjj", 3), ("k", 2), ("G", 9), ("j", 9), ("g", 0), ("k", 0)] {
            press(&mut numbers, keys);
            assert_eq!(numbers.selected_key(), Some(selected), "{keys}");
        }
        for (code, selected) in [(KeyCode::PageDown, 4), (KeyCode::PageUp, 0)] {
            numbers.press(KeyEvent::from(code), Instant::now());
            assert_eq!(numbers.selected_key(), Some(selected), "{code:?}");
        }
        press(&mut numbers, "/7\n");
        assert_eq!(numbers.selected_key(), Some(7));
        press(&mut numbers, "\u{1b}");
        assert_eq!(numbers.shown_rows().0.len(), 10);
    }

    #[test]
    fn a_question_has_one_answer() {
        let mut numbers = Numbers::new();
        assert_eq!(press(&mut numbers, "xy"), Outcome::Perform(7));
        // The answer is not a command.
        assert_eq!(press(&mut numbers, "xq"), Outcome::Continue);
        assert_eq!(numbers.dialogue.mode, Mode::Normal);
        press(&mut numbers, "x");
        let asks = |mode: &Mode<u8>| matches!(mode, Mode::Confirm { question, .. } if question == "x?\u{fffd}");
        assert!(asks(&numbers.dialogue.mode), "{:?}", numbers.dialogue.mode);
    }

    #[test]
    fn ctrl_c_ends_every_mode() {
        for keys in ["", "/", "?", "x"] {
            let mut numbers = Numbers::new();
            press(&mut numbers, keys);
            let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
            assert_eq!(numbers.press(key, Instant::now()), Outcome::Interrupt);
        }
        // A filter contains the letter.
        let mut numbers = Numbers::new();
        assert_eq!(press(&mut numbers, "/q"), Outcome::Continue);
        assert_eq!(numbers.table.filter, "q");
        press(&mut numbers, &"1".repeat(2 * MAX_FILTER));
        assert_eq!(numbers.table.filter.len(), MAX_FILTER);
        assert_eq!(press(&mut numbers, "\nq"), Outcome::Quit);
    }
}
