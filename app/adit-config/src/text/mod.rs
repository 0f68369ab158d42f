//! The lowest layer: texts, independent of their meaning.
//!
//! Positions in a text, escapes and base64, secrets, files and variables, the spelling of values that
//! belong to no scheme, and problems with their places. Nothing here depends on URLs, keys or schemes.

pub mod base64;
mod date;
mod diagnostics;
mod duration;
pub mod escape;
mod line_index;
mod memory;
mod network;
mod plugin;
mod problem;
mod redacted_line;
mod secret;
mod size;
mod snippet;
mod source;
mod span;
mod suggest;

pub use date::{format_date, parse_date};
pub(crate) use diagnostics::{Diagnostics, SecretLookup};
pub use duration::{duration_pattern, format_duration, parse_duration};
pub(crate) use line_index::LineIndex;
pub use memory::MemorySources;
pub use network::{format_network, format_target, is_this_machine, parse_network};
pub use plugin::PluginText;
pub use problem::{
    ConfigError, Origin, Problem, SourceLocation, Warning, WarningKind, sanitize_for_terminal,
};
#[cfg(test)]
pub(crate) use redacted_line::redact_line;
pub use secret::{Secret, SecretText};
pub use size::{format_size, parse_rate, parse_size};
pub(crate) use snippet::{Document, FindSecrets, UrlSnippet};
pub use source::{
    FileText, RecordingSources, Sources, SystemSources, decode_utf8, list_file_names, read_file,
};
pub use span::{Span, Spanned};
pub use suggest::{find_one_typo, nearest_word};
