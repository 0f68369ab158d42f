//! The lowest layer: texts, independent of their meaning.
//!
//! Positions in a text, escapes and base64, secrets, files and variables, the spelling of values that
//! belong to no scheme, and problems with their places. Nothing here depends on URLs, keys or schemes.

pub mod base64;
mod diagnostics;
mod duration;
pub mod escape;
mod excerpt;
mod memory;
mod network;
mod plugin;
mod problem;
mod secret;
mod source;
mod span;
mod suggest;

pub(crate) use diagnostics::{Diagnostics, Lookup};
pub use duration::{read_duration, write_duration};
pub(crate) use excerpt::{Document, Excerpt};
pub use memory::MemorySources;
pub use network::{is_this_machine, read_net, write_net, write_target};
pub use plugin::PluginText;
pub use problem::{Flaw, Origin, Place, Problem, Warning, WarningKind, printable};
pub use secret::{Secret, SecretText};
pub use source::{FileText, Machine, Sources, file_names, read_file};
pub use span::{Span, Spanned};
pub use suggest::{nearest, one_slip};
