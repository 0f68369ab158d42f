//! `adit fleet top`: a live view of the nodes of a realm.
//!
//! [`feed`] asks the store server, [`model`] holds the nodes and decides what a key does, [`view`] draws them. The
//! terminal, the tables and the graphs are those of `adit top`.

mod feed;
mod model;
mod view;

use std::time::{Duration, Instant};

use adit_cli::{CommandResult, Failure, FailureCode, Signals, result_of_end};
use tokio::time::{MissedTickBehavior, interval};

use self::feed::Feed;
use self::model::{Model, Outcome};
use super::screen::{self, Input, Screen};
use super::view::Look;
use crate::args::fleet::FleetTopArgs;
use crate::command::fleet::Realm;

/// Time between two looks at the clock, for the messages about it.
const TICK: Duration = Duration::from_millis(250);

/// Shows the nodes until a key or a signal ends the view.
pub(in crate::command) fn run_fleet_top(typed: &FleetTopArgs) -> CommandResult {
    let membership = typed.operator.membership.as_deref();
    screen::check_terminal("adit fleet top", "`adit fleet status` prints the same")?;
    adit_cli::block_on(|mut signals| async move {
        let open = async {
            let realm = Realm::open(membership).await?;
            Feed::open(realm).await
        };
        let feed = signals.run_until_ended(open).await?;
        show(feed, signals).await
    })
}

async fn show(mut feed: Feed, mut signals: Signals) -> CommandResult {
    let mut model = Model::new(feed.title(), feed.first(), Instant::now());
    let look = Look::of_environment();
    let mut screen = Screen::open()?;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        screen.draw(|frame| view::draw(frame, &mut model, look, Instant::now()))?;
        tokio::select! {
            update = feed.next_update() => model.update(update, Instant::now()),
            input = screen.next_input() => match input {
                Input::Key(key) => match model.press(key, Instant::now()) {
                    Outcome::Continue => {}
                    Outcome::Perform(action) => feed.perform(action),
                    Outcome::Quit => return Ok(()),
                    Outcome::Interrupt => return result_of_end(Duration::ZERO),
                },
                Input::Resized => {}
                Input::Closed => {
                    drop(screen);
                    return Err(Failure::new(FailureCode::Failure, "the terminal is closed"));
                }
            },
            // SIGHUP too: the terminal is gone.
            request = signals.next_request() => return result_of_end(match request {
                adit_cli::SignalRequest::Stop => Duration::ZERO,
                _ => Duration::from_secs(1),
            }),
            _ = ticks.tick() => {}
        }
    }
}
