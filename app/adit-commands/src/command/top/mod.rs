//! `adit top`: a live view of a running process in a terminal.
//!
//! ```text
//! feed: events, lists ──▶ Update ──▶ model ──▶ view ──▶ screen
//! keys ─────────────────▶ Key ────────┘  └──▶ Action ──▶ feed
//! ```
//!
//! [`feed`] asks the management API, [`model`] holds what is shown and decides what a key does, [`view`] draws it, and
//! [`screen`] sets the terminal up and restores it.

mod feed;
#[cfg(feature = "fleet")]
mod fleet;
mod model;
mod rows;
mod screen;
mod table;
mod table_view;
mod view;

use std::time::{Duration, Instant};

use adit_admin::api::ApiClient;
use adit_cli::{CommandResult, Failure, FailureCode, Signals, result_of_end};
use tokio::time::{MissedTickBehavior, interval};

use self::feed::{Feed, Update};
#[cfg(feature = "fleet")]
pub(super) use self::fleet::run_fleet_top;
use self::model::{Model, Outcome};
use self::screen::{Input, Screen};
use self::view::Look;
use super::running_process;
use crate::args;

/// Time between two looks at the clock, for the messages about it.
const TICK: Duration = Duration::from_millis(250);

/// Shows the process until a key or a signal ends it, or until the process has ended.
pub(super) fn run_top(typed: &args::TopArgs) -> CommandResult {
    let mut process = args::ProcessArgs {
        config: typed.process.config.clone(),
        admin: typed.process.admin.clone(),
        admin_token: typed.process.admin_token.clone(),
    };
    if let Some(address) = &typed.address {
        process.admin = Some(address.clone());
    }
    let client = running_process::client_of(&process)?;
    let hint = "`adit status`, `adit sessions` and `adit routes` print the same, with `--json` for programs";
    screen::check_terminal("adit top", hint)?;
    adit_cli::block_on(|mut signals| async move {
        let feed = signals.run_until_ended(Feed::open(client.clone())).await?;
        show(&client, feed, signals).await
    })
}

async fn show(client: &ApiClient, mut feed: Feed, mut signals: Signals) -> CommandResult {
    let mut model = Model::new(client.address(), feed.first(), Instant::now());
    let look = Look::of_environment();
    let mut screen = Screen::open()?;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        screen.draw(|frame| view::draw(frame, &mut model, &look, Instant::now()))?;
        tokio::select! {
            update = feed.next_update() => match update {
                Update::Ended => {
                    drop(screen);
                    return Err(Failure::new(FailureCode::Network, "the process has ended"));
                }
                update => model.update(update, Instant::now()),
            },
            input = screen.next_input() => match input {
                Input::Key(key) => match model.press(key, Instant::now()) {
                    Outcome::Continue => feed.look_at(model.tab()),
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
