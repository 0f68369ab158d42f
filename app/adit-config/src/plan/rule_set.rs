//! Rule sets: lists of conditions in the formats of other programs.

use core::fmt;
use core::time::Duration;
use std::path::PathBuf;

use adit_rules::Condition;
use adit_rules::read::Format;

use crate::text::SourceLocation;

/// The interval of downloads, unless `refresh` says otherwise.
pub(super) const DEFAULT_REFRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// A list that rules can use as a condition.
#[derive(Debug, Clone)]
pub struct RuleSetConfig {
    /// The name; unique in the plan.
    pub name: String,
    /// Where the list is.
    pub source: RuleSetSource,
    /// The format; `None` if it is detected.
    pub format: Option<Format>,
    /// The category of a list that has several.
    pub category: Option<String>,
    /// The interval of downloads.
    pub refresh: Duration,
    /// The SHA-256 digest that the list must have.
    pub sha256: Option<[u8; 32]>,
    /// The place of the file name or the URL in the configuration.
    pub place: SourceLocation,
}

/// The same set at another place is equal.
impl PartialEq for RuleSetConfig {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.source == other.source
            && self.format == other.format
            && self.category == other.category
            && self.refresh == other.refresh
            && self.sha256 == other.sha256
    }
}

impl Eq for RuleSetConfig {}

/// Where a list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSetSource {
    /// In a file.
    File(PathBuf),
    /// At an HTTPS URL, or an HTTP URL of this machine.
    Url(String),
}

/// The host alone of a URL: its path can contain a secret.
impl fmt::Display for RuleSetSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(url) => {
                let end = url
                    .match_indices('/')
                    .nth(2)
                    .map_or(url.len(), |(at, _)| at);
                write!(f, "{}/…", url.get(..end).unwrap_or_default())
            }
        }
    }
}

/// A condition of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleCondition {
    /// A condition of its own.
    Condition(Condition),
    /// `set:NAME`: a rule set of the plan.
    Set(String),
}

impl From<Condition> for RuleCondition {
    fn from(condition: Condition) -> Self {
        Self::Condition(condition)
    }
}

impl fmt::Display for RuleCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition(condition) => condition.fmt(f),
            Self::Set(name) => write!(f, "set:{name}"),
        }
    }
}
