//! What may be typed behind `adit sshd`.

use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Sshd {
    /// Address to listen on; can be repeated
    #[arg(long, short, default_value = "[::]:2222", value_name = "ADDR:PORT")]
    pub(crate) listen: Vec<String>,
    /// The key that this host is known by, instead of one in the user's state folder; can be
    /// repeated. A file that is not there is made
    #[arg(long, value_name = "FILE")]
    pub(crate) host_key: Vec<PathBuf>,
    /// Whose keys get in, instead of ~/.ssh/authorized_keys; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized_keys: Vec<PathBuf>,
    /// Run this instead of whatever is asked for; `internal-sftp` gives files alone, but for those
    /// that say who gets in
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Give nobody a terminal
    #[arg(long)]
    pub(crate) no_pty: bool,
    /// Forward nothing: no connections, no sockets, no agents
    #[arg(long)]
    pub(crate) no_forwarding: bool,
    /// Let other machines reach the ports that clients have forwarded (`-R`)
    #[arg(long)]
    pub(crate) gateway_ports: bool,
    /// Variables that clients may set; `*` at the end is anything
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "LANG,LC_*"
    )]
    pub(crate) accept_env: Vec<String>,
    /// Let `environment=` in front of keys set variables, those of these names (`*` at the end is
    /// anything); never those that change how programs start, such as LD_PRELOAD
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "*"
    )]
    pub(crate) permit_user_environment: Vec<String>,
    /// Ciphers, the best first; `+`, `-` and `^` in front change the usual list
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) ciphers: Option<String>,
    /// MACs, likewise; `-umac-64*` keeps those with tags of 128 bits and more
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) macs: Option<String>,
    /// Methods of key exchange, likewise
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) kex: Option<String>,
    /// Ask a client that is silent for so long for a sign of life; 0 asks nobody
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = time)]
    pub(crate) alive_interval: Duration,
    /// So many questions without an answer end the connection
    #[arg(long, default_value_t = 3, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) alive_count: u32,
    /// Close forwarded connections that are silent for so long; 0 is never
    #[arg(long, default_value = "0", value_name = "TIME", value_parser = time)]
    pub(crate) idle: Duration,
    /// How long a client may take to log in
    #[arg(long, default_value = "2m", value_name = "TIME", value_parser = time)]
    pub(crate) login_grace: Duration,
    /// Keys that a client may try in one connection
    #[arg(long, default_value_t = 6, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) max_auth_tries: u32,
    /// Connections that have not logged in: from the first number on some percent are turned away,
    /// from the last on all
    #[arg(long, default_value = "10:30:100", value_name = "N:PERCENT:N")]
    pub(crate) max_startups: String,
    /// Whom failed logins are not held against
    #[arg(
        long,
        value_name = "CIDR,…",
        value_delimiter = ',',
        default_value = "127.0.0.0/8,::1"
    )]
    pub(crate) penalty_exempt: Vec<String>,
    /// Append the log to this file instead of writing it on standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

impl Sshd {
    /// The file that the log goes to, instead of standard error.
    #[must_use]
    pub fn log_file(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}

/// A time, or 0.
fn time(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    adit_cli::read_time(text)
}
