//! Errors of starting a plugin.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::system;

/// The error of a plugin that cannot run. No message contains its options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// The plugin uses the arguments of Tor's pluggable transports, not the environment of SIP003.
    #[error("plugin `{0}`: obfsproxy is not a SIP003 plugin and is not supported")]
    Obfsproxy(String),
    /// The program is neither an absolute path nor a plain name.
    #[error("plugin `{0}`: a plain name or an absolute path is needed")]
    Relative(String),
    /// The program does not exist.
    #[error("plugin `{program}` was not found in {places}")]
    NotFound {
        /// The program as configured.
        program: String,
        /// The places that were searched.
        places: String,
    },
    /// The file exists, but is not executable.
    #[error("plugin {} is not executable", .0.display())]
    NotExecutable(PathBuf),
    /// The options contain a character that environment variables cannot contain.
    #[error("plugin `{0}`: its options contain a NUL character")]
    Options(String),
    /// The public port is 0, but a plugin cannot choose it.
    #[error("plugin `{0}`: the public port cannot be 0")]
    NoPort(String),
    /// Another program listens on the public address.
    #[error("plugin `{program}`: {addr} is in use by another program")]
    InUse {
        /// The program as configured.
        program: String,
        /// The public address.
        addr: SocketAddr,
    },
    /// No loopback port was free.
    #[error("no free loopback port for plugin `{program}`: {why}")]
    Port {
        /// The program as configured.
        program: String,
        /// The error of the system.
        why: io::Error,
    },
    /// The system could not start it.
    #[error("cannot start plugin `{program}`: {why}")]
    Start {
        /// The program as configured.
        program: String,
        /// The error of the system.
        why: io::Error,
    },
    /// The name of its server cannot be looked up.
    #[error("plugin `{program}`: the lookup of its server `{name}` failed: {why}")]
    Lookup {
        /// The program as configured.
        program: String,
        /// The name.
        name: String,
        /// The error of the lookup.
        why: io::Error,
    },
    /// It ended before it was ready.
    #[error("plugin `{program}` {}{}", system::describe_exit(.status), last_line_suffix(.last))]
    Exited {
        /// The program as configured.
        program: String,
        /// The exit status; `None` if the system does not report it.
        status: Option<ExitStatus>,
        /// The last line it printed, preferably on standard error.
        last: Option<String>,
    },
    /// It runs, but accepts no connections on its address.
    #[error("plugin `{program}` did not listen on {addr} within {} s", .waited.as_secs())]
    Silent {
        /// The program as configured.
        program: String,
        /// The address that it should listen on.
        addr: SocketAddr,
        /// The time that it had.
        waited: Duration,
    },
}

fn last_line_suffix(last: &Option<String>) -> String {
    last.as_ref()
        .map_or_else(String::new, |line| format!(": {line}"))
}
