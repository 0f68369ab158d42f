//! The log of the process: on standard error, in the journal, or in a file.
//!
//! ```text
//! tracing ─▶ Targets (level, modules) ─▶ RecordLayer: message + fields of its spans ─▶ LogOutput: format, place
//! ```

mod journal;
mod log_file;
mod log_filter;
mod record;
#[cfg(feature = "otlp")]
mod span_export;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use adit_cli::out;
use adit_config::{LogFileSettings, LogFormat, LogLevel, LogSettings};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber, warn};
#[cfg(not(feature = "otlp"))]
use tracing_subscriber::layer::Identity;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use self::journal::Journal;
use self::log_file::{LogFile, Rotation};
pub(crate) use self::log_filter::ModuleFilter;
use self::log_filter::targets_of;
use self::record::{Fields, HumanStyle, LogRecord};

/// The log, which a configuration file can change.
static LOG: OnceLock<Log> = OnceLock::new();

/// The log of the process.
struct Log {
    filter: Handle<tracing_subscriber::filter::Targets, Registry>,
    output: Arc<Mutex<LogOutput>>,
    /// The level of the command line.
    level: Option<LogLevel>,
    /// The level that applies.
    current_level: Mutex<LogLevel>,
    modules: Option<ModuleFilter>,
    /// The format of the command line.
    format: Option<LogFormat>,
}

impl Log {
    /// Applies the current level.
    fn reload_filter(&self) {
        let level = *lock(&self.current_level);
        let targets = targets_of(level, self.modules.as_ref(), has_traces());
        // Fails only after the end of the log.
        let _ = self.filter.reload(targets);
    }
}

#[cfg(feature = "otlp")]
const fn span_layer() -> span_export::SpanLayer {
    span_export::SpanLayer
}

/// Returns no layer: nothing is exported.
#[cfg(not(feature = "otlp"))]
fn span_layer() -> Identity {
    Identity::new()
}

/// Returns true if the spans of sessions are exported.
#[cfg(feature = "otlp")]
fn has_traces() -> bool {
    span_export::is_collecting()
}

/// Returns false: nothing is exported.
#[cfg(not(feature = "otlp"))]
const fn has_traces() -> bool {
    false
}

/// Starts to collect the spans of sessions, and returns their queue.
#[cfg(feature = "otlp")]
pub(crate) fn export_spans() -> adit_admin::otlp::SpanQueue {
    let queue = span_export::collect_spans();
    if let Some(log) = LOG.get() {
        log.reload_filter();
    }
    queue
}

/// The log as the command line describes it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogOptions<'a> {
    /// Number of `-v`.
    pub(crate) verbose: u8,
    /// True if only errors are logged.
    pub(crate) quiet: bool,
    /// The file, instead of standard error.
    pub(crate) file: Option<&'a Path>,
    /// `--log`.
    pub(crate) modules: Option<&'a ModuleFilter>,
    /// `--log-format`.
    pub(crate) format: Option<LogFormat>,
}

/// Starts the log. Destinations of connections are only logged with `-v` or more. A log file is appended to.
pub(crate) fn start_log(options: &LogOptions<'_>) -> io::Result<()> {
    let level = match options.verbose {
        _ if options.quiet => Some(LogLevel::Error),
        0 => None,
        1 => Some(LogLevel::Debug),
        2 => Some(LogLevel::Trace),
        _ => Some(LogLevel::All),
    };
    let place = match options.file {
        // Without limits the day has no effect.
        Some(path) => LogPlace::File(Box::new(LogFile::open(path, None, Date::default())?)),
        None => LogPlace::of_stderr(options.format),
    };
    let output = Arc::new(Mutex::new(LogOutput {
        format: options.format.unwrap_or_default(),
        shows_target: options.verbose > 2 || options.modules.is_some(),
        place,
        zone: None,
    }));
    let targets = targets_of(level.unwrap_or_default(), options.modules, false);
    let (targets, filter) = reload::Layer::new(targets);
    tracing_subscriber::registry()
        .with(targets)
        .with(span_layer())
        .with(RecordLayer(output.clone()))
        .init();
    let _ = LOG.set(Log {
        filter,
        output,
        level,
        current_level: Mutex::new(level.unwrap_or_default()),
        modules: options.modules.cloned(),
        format: options.format,
    });
    Ok(())
}

/// Applies the settings of the configuration file. Options of the command line take precedence. A log file is opened
/// again, because another program may have renamed it.
///
/// # Errors
///
/// Returns the error of opening the log file; the log continues as before.
pub(crate) fn apply_settings(settings: &LogSettings) -> io::Result<()> {
    let Some(log) = LOG.get() else {
        return Ok(());
    };
    let level = log.level.or(settings.level).unwrap_or_default();
    *lock(&log.current_level) = level;
    log.reload_filter();
    let format = log.format.or(settings.format);
    let mut output = lock(&log.output);
    output.use_place(settings.file.as_ref(), format)?;
    output.format = format.unwrap_or_default();
    Ok(())
}

/// Does the same as [`apply_settings`], with a warning in the log instead of an error.
pub(crate) fn apply_settings_or_warn(settings: &LogSettings) {
    if let Err(why) = apply_settings(settings) {
        let path = settings.file.as_ref().map(|file| file.path.display());
        let path = path.map(|path| path.to_string()).unwrap_or_default();
        warn!("the log stays where it is: cannot open {path}: {why}");
    }
}

/// Collects the fields of messages and of the spans around them.
struct RecordLayer(Arc<Mutex<LogOutput>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for RecordLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flatten() {
            // From the inside out: a field of an inner span is there already.
            if let Some(outer) = span.extensions().get::<Fields>() {
                let known = std::mem::replace(&mut fields, outer.clone());
                known
                    .0
                    .into_iter()
                    .for_each(|(name, value)| fields.set(name, value));
            }
        }
        event.record(&mut fields);
        let record = LogRecord::new(event.metadata(), fields);
        lock(&self.0).write(&record);
    }
}

/// The place and the format of messages.
#[derive(Debug)]
struct LogOutput {
    format: LogFormat,
    /// True if lines for people name the module.
    shows_target: bool,
    place: LogPlace,
    /// The local time zone. Looked up for the first line: that reads a list of all zones, and at `info` most
    /// commands log nothing.
    zone: Option<TimeZone>,
}

/// The place of messages.
#[derive(Debug)]
enum LogPlace {
    Stderr { colours: bool },
    Journal(Journal),
    File(Box<LogFile>),
}

impl LogPlace {
    /// Returns the journal if standard error leads to it, and the format is not chosen.
    fn of_stderr(format: Option<LogFormat>) -> Self {
        match Journal::of_stderr().filter(|_| format.is_none()) {
            Some(journal) => Self::Journal(journal),
            None => Self::Stderr {
                colours: std::env::var_os("NO_COLOR").is_none() && io::stderr().is_terminal(),
            },
        }
    }
}

impl LogOutput {
    /// Uses a file, or standard error.
    fn use_place(
        &mut self,
        file: Option<&LogFileSettings>,
        format: Option<LogFormat>,
    ) -> io::Result<()> {
        let Some(file) = file else {
            // `-E FILE` of `adit ssh` has no settings.
            self.place = LogPlace::of_stderr(format);
            return Ok(());
        };
        let rotation = (file.keep > 0).then_some(Rotation {
            max_size: file.max_size,
            keep: file.keep,
        });
        let today = Timestamp::now().to_zoned_datetime(self.zone()).date();
        let opened = LogFile::open(&file.path, rotation, today)?;
        self.place = LogPlace::File(Box::new(opened));
        Ok(())
    }

    fn zone(&mut self) -> TimeZone {
        self.zone.get_or_insert_with(TimeZone::system).clone()
    }

    /// Writes a message. One that cannot be written where it belongs is written to standard error.
    fn write(&mut self, record: &LogRecord) {
        let (now, zone) = (Timestamp::now(), self.zone());
        let style = HumanStyle {
            colours: matches!(self.place, LogPlace::Stderr { colours: true }),
            shows_target: self.shows_target,
        };
        let line = || record.to_line(self.format, style, now, &zone);
        let is_written = match &mut self.place {
            LogPlace::Stderr { .. } => false,
            LogPlace::Journal(journal) => journal.send(record).is_ok(),
            LogPlace::File(file) => {
                let today = now.to_zoned_datetime(zone.clone()).date();
                file.write_line(line().as_bytes(), today).is_ok()
            }
        };
        if !is_written {
            // Standard error may be closed.
            let _ = out::stderr().write_all(line().as_bytes());
        }
    }
}

/// Locks `mutex` and ignores poisoning: a panic of another thread leaves the output intact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
