//! Routing rules of proxies: compiled sets of names and networks, and readers of the usual lists.

#![forbid(unsafe_code)]

extern crate alloc;

mod builder;
mod condition;
mod glob;
mod keyword_set;
mod name;
mod name_table;
mod network_table;
mod pattern;
mod punycode;
mod request;
mod rule_list;
mod rule_set;

#[cfg(test)]
mod tests;

pub use builder::{AddError, RuleSetBuilder};
pub use condition::Condition;
pub use glob::Glob;
pub use pattern::NamePattern;
pub use request::{Addresses, Request, Transport};
pub use rule_list::{Decision, Rule, RuleList};
pub use rule_set::{Outcome, RuleSet};
