//! What is said while it runs, on standard error.

use std::io::IsTerminal;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts the log. Destinations appear from `-v` on, not before.
pub(crate) fn start(verbose: u8) {
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
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
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
