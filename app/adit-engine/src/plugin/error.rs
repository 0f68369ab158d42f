//! Why a plugin does not run.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a plugin does not run. No text holds its options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// It takes the arguments of Tor's pluggable transports and not SIP003's environment.
    #[error("plugin `{0}`: obfsproxy is not a SIP003 plugin and is not supported")]
    Obfsproxy(String),
    /// Neither an absolute path nor a plain name.
    #[error("plugin `{0}`: a plain name or an absolute path is needed")]
    Relative(String),
    /// There is no such program.
    #[error("plugin `{program}` was not found in {places}")]
    NotFound {
        /// As it was configured.
        program: String,
        /// Where it was looked for.
        places: String,
    },
    /// There is such a file, but it cannot be executed.
    #[error("plugin {} is not executable", .0.display())]
    NotExecutable(PathBuf),
    /// A character that no environment variable can hold.
    #[error("plugin `{0}`: its options hold a NUL character")]
    Options(String),
    /// A plugin cannot choose the public port by itself.
    #[error("plugin `{0}`: the public port must be given, not 0")]
    NoPort(String),
    /// Another program listens at the public address.
    #[error("plugin `{program}`: {addr} is in use by another program")]
    InUse {
        /// As it was configured.
        program: String,
        /// The public address.
        addr: SocketAddr,
    },
    /// No loopback port could be had.
    #[error("no free loopback port for plugin `{program}`: {why}")]
    Port {
        /// As it was configured.
        program: String,
        /// What the system said.
        why: io::Error,
    },
    /// The system did not start it.
    #[error("plugin `{program}` could not be started: {why}")]
    Start {
        /// As it was configured.
        program: String,
        /// What the system said.
        why: io::Error,
    },
    /// It ended before it was ready.
    #[error("plugin `{program}` {}{}", ending(.status), said(.last))]
    Exited {
        /// As it was configured.
        program: String,
        /// How it ended; None if the system does not know.
        status: Option<ExitStatus>,
        /// The last line it printed, preferably on standard error.
        last: Option<String>,
    },
    /// It runs, but nothing accepts connections where it should listen.
    #[error("plugin `{program}` did not listen on {addr} within {} s", .waited.as_secs())]
    Silent {
        /// As it was configured.
        program: String,
        /// Where it should listen.
        addr: SocketAddr,
        /// How long it had.
        waited: Duration,
    },
}

/// How a process ended, in words.
pub(super) fn ending(status: &Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("exited with code {code}"),
        Some((None, Some(signal))) => format!("was ended by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

fn said(last: &Option<String>) -> String {
    last.as_ref()
        .map_or_else(String::new, |line| format!(": {line}"))
}
