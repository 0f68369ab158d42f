//! The arguments of commands about running processes, and of those that other programs manage.

use std::path::PathBuf;

use super::json_option::JsonOption;

// The running process of a command that asks its management API.
#[derive(Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    /// The configuration file of the running process, whose `[admin]` has the API's address
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The address of the running process's management API
    #[arg(long, value_name = "PATH|HOST:PORT")]
    pub(crate) admin: Option<String>,
    /// A file whose first token authorizes the requests
    #[arg(long, value_name = "@FILE")]
    pub(crate) admin_token: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DashboardArgs {
    #[command(flatten)]
    pub(crate) log: super::LogArgs,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// The port of the page; 0 is any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Fail unless new connections are accepted: for the readiness checks of containers
    #[arg(long)]
    pub(crate) ready: bool,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Only the sessions of this user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Maximum number of sessions, of which the newest are listed
    #[arg(long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..=MAX_SESSIONS))]
    pub(crate) limit: u32,
    /// End the session with this ID, instead of listing any
    #[arg(long, value_name = "ID", conflicts_with_all = ["user", "limit"])]
    pub(crate) kill: Option<u64>,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

/// The largest number of sessions in a list.
pub(crate) const MAX_SESSIONS: i64 = 100_000;

#[derive(Debug, clap::Args)]
pub(crate) struct RoutesArgs {
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[cfg(feature = "top")]
#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// The address of the running process's management API; the same as --admin
    #[arg(value_name = "PATH|HOST:PORT", conflicts_with = "admin")]
    pub(crate) address: Option<String>,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UpgradeArgs {
    /// The program to start, instead of the file that the running process was started from
    #[arg(value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManagerArgs {
    #[command(flatten)]
    pub(crate) log: super::LogArgs,
    /// Where commands are received: a loopback UDP port, or the path of a Unix socket
    #[arg(long, value_name = "HOST:PORT|PATH")]
    pub(crate) manager_address: String,
    /// Accept commands at an address that other machines can reach
    #[arg(long)]
    pub(crate) manager_insecure: bool,
    /// Address that the servers listen on, instead of all addresses; can be repeated
    #[arg(short = 's', long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Method of servers that do not name one
    #[arg(
        short,
        long,
        default_value = "chacha20-ietf-poly1305",
        value_name = "METHOD"
    )]
    pub(crate) method: String,
    /// Traffic of servers that do not specify a mode
    #[arg(long, value_enum, default_value = "tcp_only", value_name = "MODE")]
    pub(crate) mode: TrafficMode,
    /// Plugin of servers that do not name one
    #[arg(long, value_name = "NAME")]
    pub(crate) plugin: Option<String>,
    /// Options of that plugin
    #[arg(long, value_name = "OPTIONS", requires = "plugin")]
    pub(crate) plugin_opts: Option<String>,
    /// A plugin that servers may name; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_plugin: Vec<String>,
    /// Private destinations that clients may reach: CIDRs or `all` [default: none]
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
}

/// The traffic that a server carries, with ss-manager's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum TrafficMode {
    /// Connections
    TcpOnly,
    /// Datagrams
    UdpOnly,
    /// Both
    TcpAndUdp,
}
