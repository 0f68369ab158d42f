//! Errors of rule sets.

use std::io;

use adit_config::{Problem, RuleSetConfig, SourceLocation};
use adit_rules::read::{Format, ReadError};

/// The error of a rule set that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("rule set `{name}` ({list}): {why}")]
pub struct RuleSetError {
    /// Name of the set.
    pub name: String,
    /// The file, or the host of the URL.
    pub list: String,
    /// The place of the file name or the URL in the configuration.
    pub place: Box<SourceLocation>,
    /// The reason.
    pub why: RuleSetFailure,
}

/// The reason why a rule set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleSetFailure {
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Io(io::Error),
    /// The list has not been downloaded yet.
    #[error("it has not been downloaded yet")]
    NotDownloaded,
    /// The list cannot be downloaded.
    #[error("{0}")]
    Download(String),
    /// The digest is not the one in the configuration.
    #[error("its SHA-256 digest is {0}, and not that of `sha256`")]
    Digest(String),
    /// The format is unknown.
    #[error("its format is not known")]
    UnknownFormat,
    /// The format has categories, and none is selected.
    #[error("a list of the format `{0}` needs a `category`")]
    NoCategory(Format),
    /// The list has no category, and one is selected.
    #[error("a list of the format `{0}` has no categories")]
    Category(Format),
    /// The list is not of the format.
    #[error("{why}")]
    Read {
        /// The format.
        format: Format,
        /// The reason, with the place in the list.
        why: ReadError,
    },
    /// No entry of the list is one of the format.
    #[error("it has no entry of the format `{format}`{}", .first.as_deref().unwrap_or_default())]
    Empty {
        /// The format.
        format: Format,
        /// The first entry that was skipped, with its place.
        first: Option<String>,
    },
}

impl From<io::Error> for RuleSetFailure {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}

impl RuleSetError {
    /// Creates the error of a configured set.
    #[must_use]
    pub fn new(config: &RuleSetConfig, why: impl Into<RuleSetFailure>) -> Self {
        Self {
            name: config.name.clone(),
            list: config.source.to_string(),
            place: Box::new(config.place.clone()),
            why: why.into(),
        }
    }

    /// Converts the error into one that shows the place in the configuration.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        let help = match &self.why {
            RuleSetFailure::Io(_) => "is the file there, and may adit read it?".to_owned(),
            RuleSetFailure::NotDownloaded => "`adit run` downloads it".to_owned(),
            RuleSetFailure::Download(_) => {
                "is this machine online, and is the URL correct?".to_owned()
            }
            RuleSetFailure::Digest(_) => {
                "change `sha256` if the new list is the right one".to_owned()
            }
            RuleSetFailure::UnknownFormat
            | RuleSetFailure::Read { .. }
            | RuleSetFailure::Empty { .. } => {
                let names = Format::ALL.map(Format::name).join("`, `");
                format!("`format` names the format: `{names}`")
            }
            RuleSetFailure::NoCategory(_) => "such as `category = \"cn\"`".to_owned(),
            RuleSetFailure::Category(_) => "remove `category`".to_owned(),
        };
        Problem::at_place(self.to_string(), *self.place, help)
    }
}
