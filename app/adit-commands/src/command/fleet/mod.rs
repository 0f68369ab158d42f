//! `adit fleet`: a realm, whose users several nodes share through a store server.
//!
//! [`realm`] opens the realm of a membership; [`setup`] creates realms and tokens, by which nodes [`join`]; [`nodes`] shows
//! and steers nodes, [`audit`] prints what was done, [`rotation`] replaces the key, [`upgrade`] replaces their programs,
//! [`recovery`] mends a store server that has lost data. The users of a realm are in `command::user`, the live view is in
//! `command::top`.

mod audit;
mod credentials;
mod failure;
mod interrupt;
mod join;
mod logins;
mod node_view;
mod nodes;
#[cfg(feature = "ssh")]
mod push;
#[cfg(feature = "ssh")]
mod push_target;
mod realm;
mod recovery;
mod rotation;
mod setup;
mod upgrade;

use adit_cli::CommandResult;

pub(super) use self::credentials::UserAccess;
pub(super) use self::interrupt::run;
#[cfg(feature = "top")]
pub(super) use self::node_view::{TITLES, cells, megabits};
#[cfg(feature = "top")]
pub(super) use self::nodes::set_drain;
pub(super) use self::realm::{Realm, kind_of, operator_file};
use crate::args::fleet::FleetCommand;

/// Runs a command of `adit fleet`.
pub(super) fn run_fleet(command: &FleetCommand) -> CommandResult {
    match command {
        FleetCommand::Init(typed) => setup::run_init(typed),
        FleetCommand::Token(typed) => setup::run_token(typed),
        FleetCommand::Join(typed) => join::run_join(typed),
        FleetCommand::Leave(typed) => join::run_leave(typed),
        FleetCommand::Status(typed) => nodes::run_status(typed),
        #[cfg(feature = "top")]
        FleetCommand::Top(typed) => super::top::run_fleet_top(typed),
        FleetCommand::Audit(typed) => audit::run_audit(typed),
        FleetCommand::Node(command) => nodes::run_node(command),
        FleetCommand::Drain(typed) => nodes::run_drain(typed),
        FleetCommand::Upgrade(typed) => upgrade::run_upgrade(typed),
        FleetCommand::Resync(typed) => recovery::run_resync(typed),
        FleetCommand::Restore(typed) => recovery::run_restore(typed),
        FleetCommand::RotateKey(typed) => rotation::run_rotate_key(typed),
        #[cfg(feature = "ssh")]
        FleetCommand::Push(typed) => push::run_push(typed),
        #[cfg(feature = "ssh")]
        FleetCommand::Pull(typed) => push::run_pull(typed),
        #[cfg(feature = "ssh")]
        FleetCommand::Receive(typed) => push_target::run_receive(typed),
        #[cfg(feature = "ssh")]
        FleetCommand::Report(typed) => push_target::run_report(typed),
    }
}
