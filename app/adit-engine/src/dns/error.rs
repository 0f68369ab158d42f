//! Errors of DNS tables that cannot be used.

use adit_rules::AddError;

/// The error of DNS tables that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DnsStartError {
    /// A route, a rule or the process names a table that does not exist.
    #[error("no DNS table `{0}`: define `[dns.{0}]`")]
    NoTable(String),
    /// Rules lead back to their own table.
    #[error("the rules of DNS table `{0}` lead back to it: use another table in one of them")]
    Circle(String),
    /// The conditions of a rule are too many for one set.
    #[error("rule {number} of DNS table `{table}`: {why}")]
    Conditions {
        /// Name of the table.
        table: String,
        /// Number of the rule; the first is 1.
        number: usize,
        /// The reason.
        why: AddError,
    },
    /// The plan has no such rule set.
    #[error("rule {number} of DNS table `{table}`: no rule set `{name}`")]
    NoSet {
        /// Name of the table.
        table: String,
        /// Number of the rule; the first is 1.
        number: usize,
        /// Name of the set.
        name: String,
    },
    /// The networks of made-up addresses cannot be used.
    #[error(transparent)]
    FakeIp(#[from] adit_dns::FakeIpError),
}
