//! `adit fleet top`: a live view of the nodes of a realm.
//!
//! [`feed`] asks the store server, [`model`] holds the nodes, [`view`] draws them. The terminal, the loop, most of the
//! keys, the tables and the graphs are those of `adit top`.

mod feed;
mod model;
mod view;

use std::time::Instant;

use adit_cli::CommandResult;

use self::feed::Feed;
use self::model::Model;
use super::{live_view, screen};
use crate::args::fleet::FleetTopArgs;
use crate::command::fleet::Realm;

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
        let model = Model::new(&feed.title(), feed.first(), Instant::now());
        live_view::show(feed, model, signals).await
    })
}
