//! The log of the process, on standard error or in a file.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;

use adit_cli::out;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts the log. Destinations of connections are only logged with `-v` or more; with `quiet`, only
/// errors are logged. A log file is appended to.
pub(crate) fn start_log(verbose: u8, quiet: bool, file: Option<&Path>) -> io::Result<()> {
    let level = match verbose {
        _ if quiet => Level::ERROR,
        0 => Level::INFO,
        1 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let others = match verbose {
        _ if quiet => LevelFilter::ERROR,
        0..=2 => LevelFilter::WARN,
        _ => LevelFilter::TRACE,
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
    let targets = Targets::new()
        .with_default(others)
        .with_target("adit", level);
    let format = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(colours)
        .with_target(verbose > 2)
        // Such errors would be reported on standard error, with a panic if that is closed.
        .log_internal_errors(false)
        .with_timer(UtcTimeOfDay);
    tracing_subscriber::registry()
        .with(format)
        .with(targets)
        .init();
    Ok(())
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
