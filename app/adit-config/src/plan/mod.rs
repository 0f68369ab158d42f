//! The plan: typed, complete and cross-checked. The engine is built from it and parses no text.

mod build;
mod chain;
mod check;
mod group;
mod loops;
mod remote_targets;
mod rule;
mod run_settings;
mod short_listener;
mod toml_file;
mod unchecked_route;

pub use build::RouteOption;
pub use chain::{Chain, Stage};
pub use group::{GroupKind, NamedGroup};
pub use rule::{Condition, NamePattern};
pub use run_settings::RunSettings;
pub use short_listener::expand_short_listener;
pub use toml_file::MAX_FILE_LEN;

use crate::scheme::endpoint_types::ListenerConfig;
use crate::text::Warning;

/// All routes of a process.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// The routes, in the order of the text; at least one.
    pub routes: Vec<Route>,
    /// Notices about a configuration that works.
    pub warnings: Vec<Warning>,
    /// Settings of the process.
    pub run: RunSettings,
}

/// Listeners, with the rules and the chain for their requests.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The name: letters, digits, `-`, `_` and `.`; unique in the plan.
    pub name: String,
    /// The listeners; at least one.
    pub listen: Vec<ListenerConfig>,
    /// The chain for requests that no rule matches.
    pub via: Chain,
    /// Exceptions. The first rule that matches is used.
    pub rules: Vec<Rule>,
}

/// An exception: requests that use another chain.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The conditions, at least one. The rule matches if any of them does.
    pub matches: Vec<Condition>,
    /// True if names are resolved, and match networks by any of their addresses.
    pub resolve: bool,
    /// The chain of these requests.
    pub via: Chain,
}
