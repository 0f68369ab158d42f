//! Command-line arguments of `adit sshd`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use adit_ssh_proto::auth::DEFAULT_TRIES;

#[derive(Debug, clap::Args)]
pub struct SshdArgs {
    /// Address to listen on; a port alone is a port of all addresses; can be repeated
    #[arg(long, short, default_value = "[::]:2222", value_name = "[HOST:]PORT")]
    pub(crate) listen: Vec<String>,
    /// Host key file, instead of the one in the user's state folder; can be repeated. A missing file
    /// is created
    #[arg(long, value_name = "FILE")]
    pub(crate) host_key: Vec<PathBuf>,
    /// File of keys that may log in, instead of ~/.ssh/authorized_keys; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized_keys: Vec<PathBuf>,
    /// Run this command instead of the requested one; `internal-sftp` serves files only, and protects
    /// those that decide who may log in
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Allocate no terminals
    #[arg(long)]
    pub(crate) no_pty: bool,
    /// Forward no connections, sockets or agents
    #[arg(long)]
    pub(crate) no_forwarding: bool,
    /// Let other machines connect to the ports that clients forward (`-R`)
    #[arg(long)]
    pub(crate) gateway_ports: bool,
    /// Environment variables that clients may set; a trailing `*` matches anything
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "LANG,LC_*"
    )]
    pub(crate) accept_env: Vec<String>,
    /// Let `environment=` options of keys set variables with these names (a trailing `*` matches
    /// anything), but never those that change how programs start, such as LD_PRELOAD
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "*"
    )]
    pub(crate) permit_user_environment: Vec<String>,
    /// Ciphers, best first; a leading `+`, `-` or `^` changes the default list
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) ciphers: Option<String>,
    /// MACs, in the same form; `-umac-64*` keeps only tags of 128 bits and more
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) macs: Option<String>,
    /// Key exchange methods, in the same form
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) kex: Option<String>,
    /// Probe a client that has been silent for this long; 0 disables probes
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = time)]
    pub(crate) alive_interval: Duration,
    /// Close the connection after this many unanswered probes
    #[arg(long, default_value_t = 3, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) alive_count: u32,
    /// Close forwarded connections that have been silent for this long; 0 means never
    #[arg(long, default_value = "0", value_name = "TIME", value_parser = time)]
    pub(crate) idle: Duration,
    /// Time a client has to log in
    #[arg(long, default_value = "2m", value_name = "TIME", value_parser = time)]
    pub(crate) login_grace: Duration,
    /// Maximum number of keys that a client may try per connection
    #[arg(long, default_value_t = DEFAULT_TRIES, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) max_auth_tries: u32,
    /// Limits for unauthenticated connections: from the first number on, new ones are refused with
    /// this probability, from the last number on all are
    #[arg(long, default_value = "10:30:100", value_name = "N:PERCENT:N")]
    pub(crate) max_startups: String,
    /// Networks that failed logins bring no penalty
    #[arg(
        long,
        value_name = "CIDR,…",
        value_delimiter = ',',
        default_value = "127.0.0.0/8,::1"
    )]
    pub(crate) penalty_exempt: Vec<String>,
    /// Append the log to this file instead of standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

impl SshdArgs {
    /// Returns the file that the log goes to instead of standard error.
    #[must_use]
    pub fn log_file(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}

/// Parses a time, or `0`.
fn time(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    adit_cli::parse_time(text)
}
