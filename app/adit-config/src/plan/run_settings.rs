//! Settings of the process that runs a plan.

use core::time::Duration;
use std::path::PathBuf;

use adit_wire::Host;

use crate::text::Secret;

/// Time that open connections have to end after SIGTERM, unless the file says otherwise.
const DEFAULT_DRAIN: Duration = Duration::from_secs(30);
/// Interval at which usage is stored, unless the file says otherwise.
pub(super) const DEFAULT_STORE_INTERVAL: Duration = Duration::from_secs(10);

/// Interval of exports over OTLP, unless the file says otherwise.
pub(super) const DEFAULT_OTLP_INTERVAL: Duration = Duration::from_secs(10);

/// The settings of `[run]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSettings {
    /// True if changes of the file, and of files that it refers to, are applied without a signal.
    pub watch: bool,
    /// Time that open connections have to end after SIGTERM.
    pub drain: Duration,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            watch: false,
            drain: DEFAULT_DRAIN,
        }
    }
}

/// The settings of `[admin]`: the management API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminSettings {
    /// `HOST:PORT`, or `unix:` and the path of a socket.
    pub listen: String,
    /// The file of tokens; a port has one.
    pub tokens: Option<PathBuf>,
    /// Host name or address of the servers for the subscriptions of their users.
    pub public_host: Option<Host>,
    /// The file of the limits and the usage of users.
    pub store: Option<StoreSettings>,
    /// True if metrics contain the names and the usage of users.
    pub metrics_users: bool,
    /// The file that records changes through the API.
    pub audit: Option<PathBuf>,
}

/// The store of the limits and the usage of users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// The file, which is created if it does not exist.
    pub path: PathBuf,
    /// The interval at which usage is written.
    pub interval: Duration,
}

/// The settings of `[log]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSettings {
    /// The least important messages that are logged.
    pub level: Option<LogLevel>,
    /// The format of lines.
    pub format: Option<LogFormat>,
    /// The file, instead of standard error.
    pub file: Option<LogFileSettings>,
    /// The collector of metrics and traces.
    pub otlp: Option<OtlpTarget>,
}

/// The collector that metrics and traces are exported to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpTarget {
    /// Its URL, of HTTP or HTTPS.
    pub url: String,
    /// The interval of exports.
    pub interval: Duration,
    /// Headers of the requests, whose values may be secret.
    pub headers: Vec<(String, Secret)>,
}

impl OtlpTarget {
    /// Creates a collector with the default interval, and without headers.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            interval: DEFAULT_OTLP_INTERVAL,
            headers: Vec::new(),
        }
    }
}

/// The log file, and the limits of its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFileSettings {
    /// The path.
    pub path: PathBuf,
    /// Size in bytes after which a new file begins.
    pub max_size: u64,
    /// Number of earlier files that are kept; with 0, the file grows until another program renames it.
    pub keep: usize,
}

/// The format of lines in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people: local time, level, message, fields.
    #[default]
    Human,
    /// One object of JSON per line.
    Json,
    /// `key=value` pairs.
    Logfmt,
}

/// All formats with their names.
const FORMATS: [(&str, LogFormat); 3] = [
    ("human", LogFormat::Human),
    ("json", LogFormat::Json),
    ("logfmt", LogFormat::Logfmt),
];

impl LogFormat {
    /// Returns the names of all formats.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().map(|(name, _)| *name)
    }

    /// Returns the format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = FORMATS.iter().find(|(known, _)| *known == name);
        found.map(|(_, format)| *format)
    }
}

/// The `level` of `[log]`: the least important messages that are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLevel {
    /// Errors.
    Error,
    /// Warnings too.
    Warn,
    /// Starts, changes and ends of adit itself, without connections.
    #[default]
    Info,
    /// Connections and their destinations; `-v`.
    Debug,
    /// Every datagram and retry; `-vv`.
    Trace,
    /// The libraries too; `-vvv`.
    All,
}

/// All levels with their names.
const LEVELS: [(&str, LogLevel); 6] = [
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
    ("all", LogLevel::All),
];

impl LogLevel {
    /// Returns the names of all levels.
    pub fn names() -> impl Iterator<Item = &'static str> {
        LEVELS.iter().map(|(name, _)| *name)
    }

    /// Returns the level with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = LEVELS.iter().find(|(known, _)| *known == name);
        found.map(|(_, level)| *level)
    }
}

/// A receiver of events: `[[webhook]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// The URL, which can contain a secret.
    pub url: Secret,
    /// The key that signs events.
    pub secret: Secret,
    /// The events that are sent; at least one, each once.
    pub events: Vec<WebhookEventKind>,
}

/// An event that receivers are informed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WebhookEventKind {
    /// A user was added through the API or a command.
    UserAdded,
    /// A user was removed through the API or a command.
    UserRemoved,
    /// A user has used up the quota.
    UserQuota,
    /// The time of a user has expired.
    UserExpired,
    /// A node of the fleet has not reported for some time.
    NodeDown,
    /// A node of the fleet reports again.
    NodeUp,
}

/// All events with their names.
const EVENTS: [(&str, WebhookEventKind); 6] = [
    ("user.added", WebhookEventKind::UserAdded),
    ("user.removed", WebhookEventKind::UserRemoved),
    ("user.quota", WebhookEventKind::UserQuota),
    ("user.expired", WebhookEventKind::UserExpired),
    ("node.down", WebhookEventKind::NodeDown),
    ("node.up", WebhookEventKind::NodeUp),
];

impl WebhookEventKind {
    /// Returns all events.
    pub fn all() -> impl Iterator<Item = Self> {
        EVENTS.iter().map(|(_, kind)| *kind)
    }

    /// Returns the names of all events.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        EVENTS.iter().map(|(name, _)| *name)
    }

    /// Returns the event with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = EVENTS.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind)
    }

    /// Returns the name, such as `user.quota`.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = EVENTS.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(name, _)| name)
    }
}
