//! The plan: typed, complete and cross-checked. The engine is built from it and parses no text.

mod api_address;
mod build;
mod chain;
mod check;
mod dns;
mod fleet_settings;
mod group;
mod loops;
mod remote_targets;
mod rule_set;
mod run_settings;
mod short_listener;
pub(crate) mod toml_file;
mod unchecked_route;

pub use api_address::{ApiAddress, ApiAddressError};
pub use build::RouteOption;
pub use chain::{Chain, Stage};
pub use dns::{DnsAction, DnsConfig, DnsRule, DnsServer, RemoteDnsServer, SYSTEM_DNS};
pub use fleet_settings::{FleetSettings, OutagePolicy};
pub use group::{GroupKind, NamedGroup};
pub use rule_set::{RuleCondition, RuleSetConfig, RuleSetSource};
pub use run_settings::{
    AdminSettings, LogFileSettings, LogFormat, LogLevel, LogSettings, OtlpTarget, RunSettings,
    StoreSettings, WebhookEventKind, WebhookSettings,
};
pub use short_listener::expand_short_listener;
pub use toml_file::MAX_FILE_LEN;

use crate::scheme::endpoint_types::ListenerConfig;
use crate::text::{SourceLocation, Warning};

/// All routes of a process.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// The routes, in the order of the text; at least one.
    pub routes: Vec<Route>,
    /// The rule sets that rules of the routes can use.
    pub sets: Vec<RuleSetConfig>,
    /// The tables of DNS servers that routes can use.
    pub dns: Vec<DnsConfig>,
    /// The table that looks up the names of hops' servers in the chains of the tables, and those of routes without
    /// `dns`; `None` is the system's resolver.
    pub default_dns: Option<String>,
    /// Notices about a configuration that works.
    pub warnings: Vec<Warning>,
    /// Settings of the process.
    pub run: RunSettings,
    /// The level of the log, if the file sets it.
    pub log: LogSettings,
    /// The management API, if the file has one.
    pub admin: Option<AdminSettings>,
    /// The fleet that the process is a node of, if the file has one.
    pub fleet: Option<FleetSettings>,
    /// The receivers of events.
    pub webhooks: Vec<WebhookSettings>,
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
    /// The table of [`Plan::dns`] that looks up names for this route: its own, or the default. `None` is the system's
    /// resolver.
    pub dns: Option<String>,
}

/// An exception: requests that use another chain.
#[derive(Debug)]
pub struct Rule {
    /// The conditions, at least one, of which one has to match.
    pub matches: Vec<RuleCondition>,
    /// Further conditions, of which one has to match, too. Empty if there are none.
    pub and: Vec<RuleCondition>,
    /// True if names are resolved, and match networks by any of their addresses.
    pub resolve: bool,
    /// The chain of these requests.
    pub via: Chain,
    /// The place of the rule in the configuration.
    pub place: SourceLocation,
}

/// The same rule at another place is equal.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.matches == other.matches
            && self.and == other.and
            && self.resolve == other.resolve
            && self.via == other.via
    }
}

impl Eq for Rule {}
