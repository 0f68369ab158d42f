//! The log of the process, on standard error or in a file.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use adit_cli::out;
use adit_config::LogLevel;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;

/// The filter of the log, which a configuration file can change.
static FILTER: OnceLock<LogFilter> = OnceLock::new();

/// The filter of the log.
struct LogFilter {
    handle: Handle<Targets, Registry>,
    /// True if the command line sets the level.
    is_fixed: bool,
}

/// Starts the log. Destinations of connections are only logged with `-v` or more; with `quiet`, only
/// errors are logged. A log file is appended to.
pub(crate) fn start_log(verbose: u8, quiet: bool, file: Option<&Path>) -> io::Result<()> {
    let level = match verbose {
        _ if quiet => LogLevel::Error,
        0 => LogLevel::Info,
        1 => LogLevel::Debug,
        2 => LogLevel::Trace,
        _ => LogLevel::All,
    };
    let colours = std::env::var_os("NO_COLOR").is_none();
    let (writer, colours) = match file {
        None => (
            BoxMakeWriter::new(out::stderr),
            colours && io::stderr().is_terminal(),
        ),
        Some(path) => {
            let mut options = OpenOptions::new();
            options.append(true).create(true);
            // The log tells which client connected to which destination.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            (BoxMakeWriter::new(Arc::new(options.open(path)?)), false)
        }
    };
    let (targets, handle) = reload::Layer::new(targets_of(level));
    let format = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(colours)
        .with_target(verbose > 2)
        // Such errors would be reported on standard error, with a panic if that is closed.
        .log_internal_errors(false)
        .with_timer(UtcTimeOfDay);
    tracing_subscriber::registry()
        .with(targets)
        .with(format)
        .init();
    let is_fixed = quiet || verbose > 0;
    let _ = FILTER.set(LogFilter { handle, is_fixed });
    Ok(())
}

/// Sets the level of the configuration file; without one, it is that of the start. Options of the command line take
/// precedence.
pub(crate) fn set_file_level(level: Option<LogLevel>) {
    if let Some(filter) = FILTER.get()
        && !filter.is_fixed
    {
        // Fails only after the end of the log.
        let _ = filter.handle.reload(targets_of(level.unwrap_or_default()));
    }
}

/// Returns the targets of a level: adit's, and the libraries'.
fn targets_of(level: LogLevel) -> Targets {
    let (adit, others) = match level {
        LogLevel::Error => (LevelFilter::ERROR, LevelFilter::ERROR),
        LogLevel::Warn => (LevelFilter::WARN, LevelFilter::WARN),
        LogLevel::Info => (LevelFilter::INFO, LevelFilter::WARN),
        LogLevel::Debug => (LevelFilter::DEBUG, LevelFilter::WARN),
        LogLevel::Trace => (LevelFilter::TRACE, LevelFilter::WARN),
        LogLevel::All => (LevelFilter::TRACE, LevelFilter::TRACE),
    };
    Targets::new()
        .with_default(others)
        .with_target("adit", adit)
}

/// Formats the time of day in UTC.
struct UtcTimeOfDay;

impl tracing_subscriber::fmt::time::FormatTime for UtcTimeOfDay {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        let seconds = adit_net::system::unix_now().0 % 86_400;
        write!(
            w,
            "{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    }
}
