//! The plan: typed, complete, cross-checked. The engine builds from it and reads no text.

mod build;
mod chain;
mod check;
mod circle;
mod ends;
mod file;
mod rule;
mod unchecked;

pub use build::ArgItem;
pub use chain::{Chain, Stage};
pub use file::MAX_FILE_LEN;
pub use rule::{Match, NamePattern};

use crate::scheme::typed::Listen;
use crate::text::Warning;

/// All routes of a process.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// The routes, in the order of the text; at least one.
    pub routes: Vec<Route>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
}

/// Listeners, and the way their requests go.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The name: letters, digits, `-`, `_` and `.`; unique in the plan.
    pub name: String,
    /// The listeners; at least one.
    pub listen: Vec<Listen>,
    /// Where requests go that no rule matches.
    pub via: Chain,
    /// Exceptions; the first that matches decides.
    pub rules: Vec<Rule>,
}

/// Requests that go another way.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// One of these has to match; at least one.
    pub matches: Vec<Match>,
    /// Names are looked up, and match networks by any of their addresses.
    pub resolve: bool,
    /// Where they go.
    pub via: Chain,
}
