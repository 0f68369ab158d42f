//! Routing rules of proxies: compiled sets of names and networks, and readers of the usual lists.
//!
//! A [`RuleSet`] has conditions on a request, of which one has to match: names (exact, with all names
//! below, by a part, by wildcards or a regular expression), networks, ports, the transport, the client, its
//! user and the listener, and groups in which all have to match or none may. It is immutable, and does not
//! grow slow with its size: with 100,000 names and 20,000 networks it takes about 2 MiB and a decision a
//! fraction of a microsecond. A [`RuleList`] has several sets in an order; the first match decides.
//!
//! ```
//! use adit_rules::{Condition, Decision, Request, Rule, RuleList, RuleSet, read};
//!
//! // A list of another program, and conditions of a configuration.
//! let list = b"payload:\n  - '+.ads.example'\n  - 'tracker.example'\n";
//! let limits = read::Limits::default();
//! let blocked = read::read_clash(list, read::ClashBehavior::Domain, &limits)?;
//! assert_eq!(blocked.accepted, 2);
//! let local = ["*.lan", "10.0.0.0/8"].map(Condition::parse);
//! let local = RuleSet::compile(local.into_iter().collect::<Result<Vec<_>, _>>()?)?;
//!
//! let rule = |set: RuleSet, resolve| Rule { sets: vec![set.into()], and: Vec::new(), resolve };
//! let rules = RuleList::new(vec![rule(blocked.set, false), rule(local, true)]);
//!
//! let target = "www.ADS.example.:443".parse()?;
//! assert_eq!(rules.decide(&Request::new(&target)), Decision::Rule(0));
//! // The second rule depends on the addresses of other names.
//! let target = "db.example:443".parse()?;
//! let request = Request::new(&target);
//! assert_eq!(rules.decide(&request), Decision::Lookup(1));
//! let found = ["10.1.2.3".parse()?];
//! assert_eq!(rules.decide_with_addresses(1, &request, &found), Decision::Rule(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Lists
//!
//! [`read`] has readers of the lists of sing-box, mihomo and Clash, v2ray, MaxMind, Adblock and of hosts
//! files. Each takes the document as bytes, is bounded by [`read::Limits`], and returns the number of
//! accepted entries and a note with the line of each one that is not understood. [`RuleSet::to_cache`]
//! returns a compiled set as bytes, which [`RuleSet::from_cache`] loads in milliseconds.
//!
//! # Names
//!
//! Names are compared in lower-case ASCII without the dot at their end: labels that are not ASCII become
//! Punycode (`xn--…`), in requests and in rules, without the tables of IDNA. Keywords, wildcards and regular
//! expressions see this form, too.
//!
//! A request for an address can have a name too: [`sniff`] finds it in the first bytes of the client, and
//! [`RuleList::depends_on_name`] decides if it is worth the wait.
//!
//! There is no socket, no clock and no file here.

#![forbid(unsafe_code)]

extern crate alloc;

mod bounds;
mod builder;
mod cache;
mod condition;
mod entry;
mod glob;
mod keyword_set;
mod name;
mod name_table;
mod network_table;
mod pattern;
mod punycode;
pub mod read;
mod request;
mod rule_list;
mod rule_set;
mod shared_set;
pub mod sniff;

#[cfg(test)]
mod tests;

pub use bounds::AddError;
pub use builder::RuleSetBuilder;
pub use cache::CacheError;
pub use condition::Condition;
pub use entry::Entry;
pub use glob::Glob;
pub use pattern::NamePattern;
pub use request::{Addresses, Request, Transport};
pub use rule_list::{Decision, Rule, RuleList};
pub use rule_set::{Outcome, RuleSet};
pub use shared_set::SharedRuleSet;
