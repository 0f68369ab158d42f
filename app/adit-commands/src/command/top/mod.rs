//! `adit top`: a live view of a running process in a terminal.
//!
//! ```text
//! feed: events, lists ──▶ Update ──▶ model ──▶ view ──▶ screen
//! keys ─────────────────▶ Key ────────┘  └──▶ Action ──▶ feed
//! ```
//!
//! [`feed`] asks the management API, [`model`] holds what is shown, [`view`] draws it, and [`screen`] sets the terminal up
//! and restores it. The loop between them ([`live_view`]) and most of the keys ([`keys`]) are those of all live views.

mod feed;
#[cfg(feature = "fleet")]
mod fleet;
mod keys;
mod live_view;
mod look;
mod model;
mod rows;
mod screen;
mod table;
mod table_view;
#[cfg(test)]
mod test_terminal;
mod view;

use std::time::Instant;

use adit_cli::CommandResult;

use self::feed::Feed;
#[cfg(feature = "fleet")]
pub(super) use self::fleet::run_fleet_top;
use self::model::Model;
use super::running_process;
use crate::args;

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
        let model = Model::new(client.address(), feed.first(), Instant::now());
        live_view::show(feed, model, signals).await
    })
}
