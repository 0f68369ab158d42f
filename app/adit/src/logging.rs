//! What is said while it runs, on standard error or in a file.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Mutex;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts the log on standard error. Destinations appear from `-v` on, not before.
pub(crate) fn start(verbose: u8) {
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    start_with(verbose, BoxMakeWriter::new(io::stderr), colour);
}

/// Starts the log at the end of a file, which is made if it is not there, for its owner alone.
pub(crate) fn start_in(verbose: u8, file: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(file)?;
    start_with(verbose, BoxMakeWriter::new(Mutex::new(file)), false);
    Ok(())
}

fn start_with(verbose: u8, writer: BoxMakeWriter, colour: bool) {
    let level = match verbose {
        0 => Level::INFO,
        1 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let others = if verbose > 2 {
        LevelFilter::TRACE
    } else {
        LevelFilter::WARN
    };
    let targets = Targets::new()
        .with_default(others)
        .with_target("adit", level);
    let format = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(colour)
        .with_target(verbose > 2)
        .with_timer(Clock);
    tracing_subscriber::registry()
        .with(format)
        .with(targets)
        .init();
}

/// The time of day in UTC.
struct Clock;

impl tracing_subscriber::fmt::time::FormatTime for Clock {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        let seconds = adit_net::ambient::unix().0 % 86_400;
        write!(
            w,
            "{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    }
}
