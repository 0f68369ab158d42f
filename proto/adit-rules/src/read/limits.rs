//! Bounds of readers, and their results.

use core::fmt;

use crate::bounds::AddError;
use crate::rule_set::RuleSet;

/// Bounds of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of the document, and of its decompressed content, in bytes.
    pub bytes: usize,
    /// Maximum number of entries, skipped ones included.
    pub entries: usize,
    /// Maximum levels of values inside of values.
    pub depth: usize,
    /// Maximum number of notes that are returned; more are counted.
    pub notes: usize,
}

impl Default for Limits {
    /// 64 MiB, two million entries, 16 levels and 100 notes.
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            entries: 2_000_000,
            depth: 16,
            notes: 100,
        }
    }
}

/// A set that was read.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The set.
    pub set: RuleSet,
    /// The number of entries in the document that the set has.
    pub accepted: usize,
    /// Entries that the set does not have, in their order.
    pub notes: Vec<Note>,
    /// The number of further notes, above [`Limits::notes`].
    pub omitted_notes: usize,
}

/// An entry that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where the entry is.
    pub place: Place,
    /// Why it was skipped.
    pub kind: NoteKind,
}

/// A place in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line of a text; the first is 1.
    Line(usize),
    /// An entry of a binary document; the first is 1. In a `.srs` file it is the rule.
    Entry(usize),
}

/// Why an entry was skipped. Texts of the document are shortened to 80 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoteKind {
    /// The entry has a wrong value.
    #[error("`{text}`: {why}")]
    Value {
        /// The value.
        text: String,
        /// The error.
        why: AddError,
    },
    /// A kind of condition that adit does not have.
    #[error("conditions of the kind `{0}` are not supported")]
    Unsupported(String),
    /// An entry that is not of the format.
    #[error("`{0}` is not an entry of this format")]
    Syntax(String),
    /// A rule without conditions.
    #[error("the rule has no conditions")]
    Empty,
    /// A rule that would match more requests without the values that were noted.
    #[error("the rule is skipped: without its wrong values it would match more")]
    Incomplete,
    /// Bytes that are not UTF-8.
    #[error("the line is not UTF-8")]
    Encoding,
}

/// An error that makes a document unreadable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The document, or its decompressed content, is longer than [`Limits::bytes`].
    #[error("the list is longer than {0} bytes")]
    TooLong(usize),
    /// The document has more entries than [`Limits::entries`].
    #[error("the list has more than {0} entries")]
    TooManyEntries(usize),
    /// The document has more levels than [`Limits::depth`].
    #[error("the list has more than {0} levels")]
    TooDeep(usize),
    /// The document is not of the format.
    #[error("{place}: expected {expected}")]
    Syntax {
        /// Where.
        place: Place,
        /// The form that is required there.
        expected: &'static str,
    },
    /// The document is not of the format, or is cut off or damaged.
    #[error("not {0}, or it is damaged")]
    Format(&'static str),
    /// A version that is not supported.
    #[error("version {0} of the format is not supported")]
    Version(u64),
    /// The document has no such category or country.
    #[error("the list has no category `{0}`")]
    Category(String),
    /// A set of the document is larger than a [`RuleSet`] can be.
    #[error(transparent)]
    Set(#[from] AddError),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Entry(number) => write!(f, "entry {number}"),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)
    }
}
