//! The loop of every live view: between its feed, its model and the terminal.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use adit_cli::{CommandResult, Failure, FailureCode, SignalRequest, Signals, result_of_end};
use ratatui::Frame;
use tokio::time::{MissedTickBehavior, interval};

use super::keys::{Outcome, TableModel};
use super::look::Look;
use super::screen::{Input, Screen};

/// Time between two looks at the clock, for the messages about it.
const TICK: Duration = Duration::from_millis(250);
/// Number of seconds in the graphs of the traffic.
pub(super) const HISTORY: usize = 120;

/// Appends to the values of a graph, of which the oldest ones are dropped.
pub(super) fn push_value<T>(values: &mut VecDeque<T>, value: T) {
    if values.len() >= HISTORY {
        values.pop_front();
    }
    values.push_back(value);
}

/// The source of the content of a view.
pub(super) trait LiveFeed {
    type Model: LiveModel;

    /// Waits for the next update; fails when there will be none.
    ///
    /// # Cancel safety
    /// Cancel-safe: no update is lost.
    async fn next_update(&mut self) -> Result<<Self::Model as LiveModel>::Update, Failure>;

    /// Starts an action. Its result is an update.
    fn perform(&mut self, action: <Self::Model as TableModel>::Action);

    /// Asks for what the model shows from now on.
    fn follow(&mut self, _model: &Self::Model) {}
}

/// The content of a view.
pub(super) trait LiveModel: TableModel {
    /// News of the other side.
    type Update;

    /// Takes over news.
    fn update(&mut self, update: Self::Update, now: Instant);

    fn draw(&mut self, frame: &mut Frame<'_>, look: Look, now: Instant);
}

/// Shows the model until a key or a signal ends the view, or until the feed has ended.
pub(super) async fn show<F: LiveFeed>(
    mut feed: F,
    mut model: F::Model,
    mut signals: Signals,
) -> CommandResult {
    let look = Look::of_environment();
    let mut screen = Screen::open()?;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        screen.draw(|frame| model.draw(frame, look, Instant::now()))?;
        tokio::select! {
            update = feed.next_update() => model.update(update?, Instant::now()),
            input = screen.next_input() => match input {
                Input::Key(key) => match model.press(key, Instant::now()) {
                    Outcome::Continue => feed.follow(&model),
                    Outcome::Perform(action) => feed.perform(action),
                    Outcome::Quit => return Ok(()),
                    Outcome::Interrupt => return result_of_end(Duration::ZERO),
                },
                Input::Resized => {}
                Input::Closed => {
                    return Err(Failure::new(FailureCode::Failure, "the terminal is closed"));
                }
            },
            // SIGHUP too: the terminal is gone.
            request = signals.next_request() => return result_of_end(match request {
                SignalRequest::Stop => Duration::ZERO,
                _ => Duration::from_secs(1),
            }),
            _ = ticks.tick() => {}
        }
    }
}
