//! `[dns.NAME]`: the servers that names are looked up with.

mod check;
mod server;

pub use server::{DnsServer, RemoteDnsServer};

pub(super) use check::{UncheckedDns, check_dns};

use crate::plan::{Chain, RuleCondition};
use crate::text::SourceLocation;

/// The name of the system's resolver, which needs no table.
pub const SYSTEM_DNS: &str = "system";
/// The action of a rule that answers with NXDOMAIN.
pub(super) const REJECT_DNS: &str = "reject";
/// The number of cached answers, unless `cache` says otherwise.
pub(super) const DEFAULT_CACHE: u32 = 4096;
/// The maximum number of cached answers.
pub(super) const MAX_CACHE: u32 = 1 << 20;

/// Servers that names are looked up with, and the exceptions.
#[derive(Debug)]
pub struct DnsConfig {
    /// The name; unique in the plan, never [`SYSTEM_DNS`].
    pub name: String,
    /// The servers; at least one. The first that answers is used.
    pub servers: Vec<DnsServer>,
    /// The chain that queries pass.
    pub via: Chain,
    /// The maximum number of cached answers; 0 turns the cache off.
    pub cache: u32,
    /// Exceptions. The first rule that matches is used.
    pub rules: Vec<DnsRule>,
    /// The place of the table in the configuration.
    pub place: SourceLocation,
}

/// The same table at another place is equal.
impl PartialEq for DnsConfig {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.servers == other.servers
            && self.via == other.via
            && self.cache == other.cache
            && self.rules == other.rules
    }
}

impl Eq for DnsConfig {}

impl DnsConfig {
    /// Returns the names of the tables that its rules refer to.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(|rule| match &rule.action {
            DnsAction::Use(name) => Some(name.as_str()),
            DnsAction::Reject => None,
        })
    }
}

/// An exception: names that are looked up elsewhere, or not at all.
#[derive(Debug)]
pub struct DnsRule {
    /// The conditions, at least one, of which one has to match.
    pub matches: Vec<RuleCondition>,
    /// Further conditions, of which one has to match, too. Empty if there are none.
    pub and: Vec<RuleCondition>,
    /// The way that these names are looked up.
    pub action: DnsAction,
    /// The place of the rule in the configuration.
    pub place: SourceLocation,
}

/// The same rule at another place is equal.
impl PartialEq for DnsRule {
    fn eq(&self, other: &Self) -> bool {
        self.matches == other.matches && self.and == other.and && self.action == other.action
    }
}

impl Eq for DnsRule {}

/// The way that the names of a rule are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsAction {
    /// With the servers of another table, or [`SYSTEM_DNS`].
    Use(String),
    /// Not at all: the name does not exist (NXDOMAIN).
    Reject,
}
