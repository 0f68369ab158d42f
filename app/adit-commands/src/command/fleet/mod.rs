//! `adit fleet`: a realm, whose users several nodes share through a store server.
//!
//! [`realm`] opens the realm of a membership; [`setup`] creates realms and members, [`nodes`] shows and steers nodes,
//! [`upgrade`] replaces their programs, [`recovery`] mends a store server that has lost data. The users of a realm are in
//! `command::user`, the live view is in `command::top`.

mod credentials;
mod failure;
mod interrupt;
mod logins;
mod node_view;
mod nodes;
#[cfg(feature = "ssh")]
mod push;
mod realm;
mod recovery;
mod setup;
mod upgrade;

use adit_cli::CommandResult;

pub(super) use self::credentials::credentials;
pub(super) use self::interrupt::run;
#[cfg(feature = "top")]
pub(super) use self::node_view::{NodeView, TITLES, megabits};
#[cfg(feature = "top")]
pub(super) use self::nodes::set_drain;
pub(super) use self::realm::{Realm, kind_of, operator_file};
use crate::args::fleet::FleetCommand;

/// Runs a command of `adit fleet`.
pub(super) fn run_fleet(command: &FleetCommand) -> CommandResult {
    match command {
        FleetCommand::Init(typed) => setup::run_init(typed),
        FleetCommand::Token(typed) => setup::run_token(typed),
        FleetCommand::Join(typed) => setup::run_join(typed),
        FleetCommand::Leave(typed) => setup::run_leave(typed),
        FleetCommand::Status(typed) => nodes::run_status(typed),
        #[cfg(feature = "top")]
        FleetCommand::Top(typed) => super::top::run_fleet_top(typed),
        FleetCommand::Node(command) => nodes::run_node(command),
        FleetCommand::Drain(typed) => nodes::run_drain(typed),
        FleetCommand::Upgrade(typed) => upgrade::run_upgrade(typed),
        FleetCommand::Resync(typed) => recovery::run_resync(typed),
        FleetCommand::Restore(typed) => recovery::run_restore(typed),
        #[cfg(feature = "ssh")]
        FleetCommand::Push(typed) => push::run_push(typed),
        #[cfg(feature = "ssh")]
        FleetCommand::Pull(typed) => push::run_pull(typed),
        #[cfg(feature = "ssh")]
        FleetCommand::Receive(typed) => push::run_receive(typed),
        #[cfg(feature = "ssh")]
        FleetCommand::Report(typed) => push::run_report(typed),
    }
}
