//! The arguments of `adit fleet`, and those with which `adit user` acts on a realm.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::json_option::JsonOption;

/// The commands of `adit fleet`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum FleetCommand {
    /// Create a realm on a store server, and print the token of the first node
    ///
    /// Makes the realm's key, creates logins on the store server if it allows that, and writes the
    /// operator's membership: a file that only you can read, with which the other commands and
    /// `adit user` act on the realm. Keep a copy: without its key, the stored users cannot be read.
    Init(FleetInitArgs),
    /// Print a token with which one more node joins
    ///
    /// The token contains what the node needs to reach the store server, is valid once, and expires
    /// after a quarter of an hour.
    Token(FleetTokenArgs),
    /// Make this machine a node of a realm
    ///
    /// Fetches the node's membership with a token of `adit fleet token`, writes it to a file that only
    /// this account can read, and prints the lines that the configuration needs.
    Join(FleetJoinArgs),
    /// Remove this node from its realm, and delete its membership
    Leave(FleetLeaveArgs),
    /// List the nodes: version, time since the start, traffic, users, lag, clock, state
    ///
    /// Exit code 0 if every node that should be up is, 1 if one is missing or reports a fault.
    Status(FleetStatusArgs),
    /// Watch the nodes live: sorts, filters, and drains the selected one
    #[cfg(feature = "top")]
    Top(FleetTopArgs),
    /// Print what operators have done in the realm, and which nodes joined and left
    ///
    /// The newest entry is the last. The store server keeps about 10,000 of them.
    Audit(FleetAuditArgs),
    /// Show, rename, weight or remove a node
    #[command(subcommand)]
    Node(FleetNodeCommand),
    /// Take a node out of service without closing its sessions, or put it back
    ///
    /// Subscriptions omit the node at once, its readiness check fails, and after the grace period it
    /// accepts no more connections; open ones may end on their own. Without NODE, it is this node that
    /// drains, with its own membership, as the stop hook of a service: exit code 0 also at the end of
    /// --timeout.
    Drain(FleetDrainArgs),
    /// Upgrade the nodes one after the other, each without closing a connection
    ///
    /// Each node starts the program that is installed at the path it was started from, and hands its
    /// sockets over. The first node is watched before the others follow; a fault stops the upgrade.
    Upgrade(FleetUpgradeArgs),
    /// Have nodes accept the store server's state after it was flushed or restored from a backup
    ///
    /// Nodes refuse a store server whose change number went backwards, and keep the users they have.
    /// Without --accept, shows what would be dropped.
    Resync(FleetResyncArgs),
    /// Write the users that a node knows to a store server that has lost them
    Restore(FleetRestoreArgs),
    /// Replace the key of the realm, because someone has it who should not
    ///
    /// Seals all users under a new key, replaces the logins of all members, and prints a token for each
    /// node, which joins again with it: the new key is never sent under the old one. Until then, nodes
    /// serve the users they know. Clients of the 2022 edition need new URLs, which subscriptions have.
    RotateKey(FleetRotateKeyArgs),
    /// Without a store server: copy the sealed users to nodes, over SSH
    ///
    /// For a realm in a file (`--engine file:///PATH`). A machine that is no node yet becomes one. A running
    /// node follows at once; a quota counts at each node on its own.
    #[cfg(feature = "ssh")]
    Push(FleetPushArgs),
    /// Without a store server: fetch the usage of users from nodes, over SSH
    #[cfg(feature = "ssh")]
    Pull(FleetPushArgs),
    /// The node's end of `push`, on standard input
    #[cfg(feature = "ssh")]
    #[command(hide = true)]
    Receive(FleetNodeEndArgs),
    /// The node's end of `pull`, on standard output
    #[cfg(feature = "ssh")]
    #[command(hide = true)]
    Report(FleetNodeEndArgs),
}

impl FleetCommand {
    /// Returns true if the result is JSON.
    pub(crate) const fn is_json(&self) -> bool {
        let option = match self {
            Self::Init(typed) => &typed.json,
            Self::Token(typed) => &typed.json,
            Self::Join(typed) => &typed.json,
            Self::Leave(typed) => &typed.json,
            Self::Status(typed) => &typed.json,
            Self::Audit(typed) => &typed.json,
            #[cfg(feature = "top")]
            Self::Top(_) => return false,
            Self::Node(FleetNodeCommand::Show(typed) | FleetNodeCommand::Remove(typed)) => {
                &typed.json
            }
            Self::Node(FleetNodeCommand::Rename(typed)) => &typed.json,
            Self::Node(FleetNodeCommand::Weight(typed)) => &typed.json,
            Self::Drain(typed) => &typed.json,
            Self::Upgrade(typed) => &typed.json,
            Self::Resync(typed) => &typed.json,
            Self::Restore(typed) => &typed.json,
            Self::RotateKey(typed) => &typed.json,
            #[cfg(feature = "ssh")]
            Self::Push(typed) | Self::Pull(typed) => &typed.json,
            #[cfg(feature = "ssh")]
            Self::Receive(_) | Self::Report(_) => return false,
        };
        option.json
    }
}

// The membership of a command that acts on a realm.
#[derive(Debug, Args)]
pub(crate) struct OperatorArgs {
    /// The membership to act with [default: /etc/adit/fleet.json for root, else ~/.config/adit/fleet.json]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) membership: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FleetInitArgs {
    /// The store server, Valkey or Redis: valkey://HOST:PORT, rediss://HOST:PORT (TLS), unix:///PATH,
    /// valkey+sentinel://HOST,HOST/SERVICE or valkey+cluster://HOST,HOST
    #[arg(long, value_name = "URL")]
    pub(crate) engine: String,
    /// The store server as the first node reaches it, if that differs from --engine
    #[arg(long, value_name = "URL")]
    pub(crate) node_engine: Option<String>,
    /// A file with the login that creates the realm: `PASSWORD` or `USER:PASSWORD` in one line
    #[arg(long, value_name = "@FILE")]
    pub(crate) engine_password: Option<String>,
    /// The name of the realm: letters, digits, `-` and `_`
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) realm: String,
    /// The certificate authority of the store server's TLS certificate, in PEM
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) ca: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetTokenArgs {
    /// The name of the node [default: node-1, node-2 …]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// A node of the realm that joins again, with `adit fleet join --replace`; its login ends
    #[arg(long, value_name = "NODE", conflicts_with = "node")]
    pub(crate) again: Option<String>,
    /// The store server as this node reaches it, if that differs from the operator's address
    #[arg(long, value_name = "URL")]
    pub(crate) node_engine: Option<String>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetJoinArgs {
    /// The token, or `@FILE` with it, or `-` for standard input
    #[arg(value_name = "TOKEN")]
    pub(crate) token: String,
    /// Replace the membership of this node, which joins again
    #[arg(long)]
    pub(crate) replace: bool,
    /// Where the node's membership is kept [default: /var/lib/adit/fleet/membership.json for root, else
    /// in the state folder]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) membership: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetLeaveArgs {
    /// The node's membership [default: that of `adit fleet join`]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) membership: Option<PathBuf>,
    /// Delete the membership even if the store server cannot be reached
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetStatusArgs {
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetAuditArgs {
    /// Number of entries
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) last: u16,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[cfg(feature = "top")]
#[derive(Debug, Args)]
pub(crate) struct FleetTopArgs {
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
}

/// The commands of `adit fleet node`.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetNodeCommand {
    /// Show one node
    Show(FleetNodeShowArgs),
    /// Give a node another name
    Rename(FleetNodeRenameArgs),
    /// Set the share of clients that subscriptions send to a node: 0 to 100
    Weight(FleetNodeWeightArgs),
    /// Forget a node, and delete its login at the store server
    Remove(FleetNodeShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FleetNodeShowArgs {
    /// The name or number of the node
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetNodeRenameArgs {
    /// The name or number of the node
    pub(crate) node: String,
    /// The new name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetNodeWeightArgs {
    /// The name or number of the node
    pub(crate) node: String,
    /// The weight; 0 omits the node from subscriptions
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) weight: u8,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetDrainArgs {
    /// The name or number of the node [default: this one, with its own membership]
    pub(crate) node: Option<String>,
    /// Wait until the node has no more sessions
    #[arg(long, conflicts_with = "undo")]
    pub(crate) wait: bool,
    /// Put the node back into service
    #[arg(long)]
    pub(crate) undo: bool,
    /// Longest wait
    #[arg(long, value_name = "TIME", default_value = "1h", requires = "wait", value_parser = adit_cli::parse_time)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetUpgradeArgs {
    /// Number of nodes that are upgraded at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) max_unavailable: u16,
    /// Time for which the first node is watched before the others follow
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = adit_cli::parse_time)]
    pub(crate) canary: Duration,
    /// The program to start on the nodes, instead of the file that each was started from
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<String>,
    /// The old program on the nodes, which the first node starts again if it gets worse
    #[arg(long, value_name = "FILE")]
    pub(crate) previous: Option<String>,
    /// Only these nodes; can be repeated
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Vec<String>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetResyncArgs {
    /// Accept the state of the store server: users that only the nodes know are dropped
    #[arg(long)]
    pub(crate) accept: bool,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetRestoreArgs {
    /// The node whose users are written
    #[arg(long, value_name = "NODE")]
    pub(crate) from_node: String,
    /// On the node itself, while adit does not run there: the folder of its local state
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, Args)]
pub(crate) struct FleetRotateKeyArgs {
    /// All users get new keys and passwords, too: those who had the old key may know them
    #[arg(long)]
    pub(crate) users: bool,
    /// The store server as nodes reach it, if that differs from the operator's address
    #[arg(long, value_name = "URL")]
    pub(crate) node_engine: Option<String>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[cfg(feature = "ssh")]
#[derive(Debug, Args)]
pub(crate) struct FleetPushArgs {
    /// The nodes: `[user@]host[:port] [NAME]` in each line
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) nodes: PathBuf,
    /// The path of adit on the nodes
    #[arg(long, value_name = "FILE", default_value = "adit")]
    pub(crate) program: String,
    /// A configuration of SSH, as for `adit ssh -F`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) ssh_config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[cfg(feature = "ssh")]
#[derive(Debug, Args)]
pub(crate) struct FleetNodeEndArgs {
    /// The node's membership [default: that of `adit fleet join`]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) membership: Option<PathBuf>,
}
