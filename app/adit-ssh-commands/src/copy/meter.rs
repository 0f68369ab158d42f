//! Progress display and bandwidth limit.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use adit_cli::blocking_stream::stderr;
use adit_wire::u64_from;

/// Minimum time between redraws of a line.
const REDRAW_INTERVAL: Duration = Duration::from_millis(150);
/// Width of a terminal that does not report it, in columns.
const DEFAULT_WIDTH: usize = 80;

/// A progress display on the terminal, with an optional bandwidth limit.
#[derive(Debug)]
pub(crate) struct ProgressMeter {
    /// True if progress is shown; requires that standard error is a terminal.
    visible: Cell<bool>,
    drawn: RefCell<Instant>,
    /// True if the current line of the terminal is not empty.
    dirty: Cell<bool>,
    limit: Option<RateLimit>,
}

/// A bandwidth limit.
#[derive(Debug)]
struct RateLimit {
    /// Rate, in bytes per second.
    rate: u64,
    /// Time at which the data so far is within the limit.
    due: Cell<Option<Instant>>,
}

/// The progress of one file.
#[derive(Debug)]
pub(crate) struct ProgressLine<'a> {
    meter: &'a ProgressMeter,
    name: String,
    size: Option<u64>,
    first: u64,
    at: u64,
    began: Instant,
}

impl ProgressMeter {
    /// Creates a meter. It shows nothing if `quiet` is true or there is no terminal; `rate` is the limit in bytes
    /// per second.
    pub(crate) fn new(quiet: bool, rate: Option<u64>) -> Self {
        Self {
            visible: Cell::new(!quiet && io::stderr().is_terminal()),
            drawn: RefCell::new(Instant::now()),
            dirty: Cell::new(false),
            limit: rate.map(|rate| RateLimit {
                rate: rate.max(1),
                due: Cell::new(None),
            }),
        }
    }

    /// Toggles the display, and returns true if it is on now. It stays off without a terminal.
    pub(crate) fn toggle(&self) -> bool {
        self.visible
            .set(!self.visible.get() && io::stderr().is_terminal());
        self.visible.get()
    }

    /// Prints an error message.
    pub(crate) fn print_message(&self, text: &str) {
        let clear = if self.dirty.take() { "\r\x1b[K" } else { "" };
        // A missing reader is not a failure.
        let _ = writeln!(stderr(), "{clear}{text}");
    }

    /// Starts the display of a file that is copied from offset `first` on.
    pub(crate) fn start_file(
        &self,
        name: String,
        size: Option<u64>,
        first: u64,
    ) -> ProgressLine<'_> {
        ProgressLine {
            meter: self,
            name,
            size,
            first,
            at: first,
            began: Instant::now(),
        }
    }
}

impl ProgressLine<'_> {
    /// Adds copied bytes, and waits if the bandwidth limit requires it.
    pub(crate) async fn add_bytes(&mut self, octets: usize) {
        let octets = u64_from(octets);
        self.at = self.at.saturating_add(octets);
        let meter = self.meter;
        if meter.visible.get() && meter.drawn.borrow().elapsed() >= REDRAW_INTERVAL {
            self.draw_line();
        }
        if let Some(limit) = &meter.limit
            && octets > 0
        {
            let now = Instant::now();
            let due = limit.due.get().map_or(now, |due| due.max(now));
            let due = due + Duration::from_secs_f64(octets as f64 / limit.rate as f64);
            limit.due.set(Some(due));
            tokio::time::sleep_until(due.into()).await;
        }
    }

    /// Finishes the line of a file.
    pub(crate) fn finish(self) {
        if self.meter.visible.get() {
            self.draw_line();
            let _ = writeln!(stderr());
            self.meter.dirty.set(false);
        }
    }

    /// Draws the line.
    fn draw_line(&self) {
        *self.meter.drawn.borrow_mut() = Instant::now();
        self.meter.dirty.set(true);
        let width =
            rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let width = if width == 0 { DEFAULT_WIDTH } else { width };
        let text = self.render(self.began.elapsed(), width.saturating_sub(1));
        let _ = write!(stderr(), "\r\x1b[K{text}");
    }

    /// Returns the line after a time of `spent`, up to `width` columns.
    fn render(&self, spent: Duration, width: usize) -> String {
        let rate = (self.at - self.first) as f64 / spent.as_secs_f64().max(0.001);
        let part = match self.size {
            Some(0) => "100%".to_owned(),
            Some(size) => format!(
                "{:3}%",
                (self.at.min(size) as f64 / size as f64 * 100.0) as u8
            ),
            None => "    ".to_owned(),
        };
        let left = self.size.map(|size| size.saturating_sub(self.at));
        let time = match left {
            Some(0) | None => spent.as_secs(),
            Some(left) => (left as f64 / rate.max(1.0)).min(359_999.0) as u64,
        };
        let (amount, speed) = (format_size(self.at as f64), format_size(rate));
        let (minutes, seconds) = (time / 60, time % 60);
        let figures = format!("  {part} {amount:>8} {speed:>8}/s {minutes:02}:{seconds:02}");
        let room = width.saturating_sub(figures.len());
        let name: String = match self.name.chars().count() {
            len if len <= room => format!("{:<room$}", self.name),
            // The end of a path is more useful than its start.
            len => self.name.chars().skip(len - room).collect(),
        };
        format!("{name}{figures}")
    }
}

/// Formats bytes, or bytes per second, with a unit.
fn format_size(octets: f64) -> String {
    let mut value = octets;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1000.0 {
            let digits = usize::from(unit != "B" && value < 100.0);
            return format!("{value:.digits$}{unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1}TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_the_terminal() {
        let meter = ProgressMeter::new(true, None);
        let mut line = meter.start_file("a/long/path/of/a/file".to_owned(), Some(4 << 20), 0);
        line.at = 1 << 20;
        let whole = line.render(Duration::from_secs(2), 60);
        let wanted = "a/long/path/of/a/file          25%   1.0MiB   512KiB/s 00:06";
        assert_eq!((whole.as_str(), whole.len()), (wanted, 60));
        let short = line.render(Duration::from_secs(2), 40);
        assert_eq!(short.chars().count(), 40);
        assert!(short.starts_with("f/a/file "), "{short}");
    }

    #[test]
    fn amounts() {
        for (octets, text) in [
            (0.0, "0B"),
            (999.0, "999B"),
            (1024.0, "1.0KiB"),
            (150.0 * 1024.0, "150KiB"),
            (5.5 * 1_099_511_627_776.0, "5.5TiB"),
        ] {
            assert_eq!(format_size(octets), text);
        }
    }
}
