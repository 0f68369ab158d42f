//! Rules in their order.

use crate::request::{Addresses, Request};
use crate::rule_set::Outcome;
use crate::shared_set::SharedRuleSet;

/// A rule: a request matches it if it matches one of its sets, and one of a second list.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The sets. Several rules can share one.
    pub sets: Vec<SharedRuleSet>,
    /// Further sets, of which one has to match too. An empty list is no condition.
    pub and: Vec<SharedRuleSet>,
    /// True if names are looked up and match networks by any of their addresses.
    pub resolve: bool,
}

/// Rules of which the first match decides.
#[derive(Debug, Clone, Default)]
pub struct RuleList(Vec<Rule>);

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The rule at this index matches, and none before.
    Rule(usize),
    /// No rule before this index matches, and the rule depends on the addresses of the target's name. Look
    /// them up and call [`RuleList::decide_with_addresses`] with the index.
    Lookup(usize),
    /// No rule matches.
    NoRule,
}

impl RuleList {
    /// Creates a list from rules, the first one first.
    #[must_use]
    pub const fn new(rules: Vec<Rule>) -> Self {
        Self(rules)
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.0
    }

    /// Decides by which rule a request goes.
    #[must_use]
    pub fn decide(&self, request: &Request<'_>) -> Decision {
        self.find(0, request, Addresses::Unknown)
    }

    /// Decides after a lookup, from the rule at index `first` on. A name without addresses is in no network.
    #[must_use]
    pub fn decide_with_addresses(
        &self,
        first: usize,
        request: &Request<'_>,
        addresses: &[core::net::IpAddr],
    ) -> Decision {
        self.find(first, request, Addresses::Known(addresses))
    }

    /// True if a name could change the decision about a request for an address.
    #[must_use]
    pub fn depends_on_name(&self, request: &Request<'_>) -> bool {
        if request.has_name() {
            return false;
        }
        let decisive = match self.decide(request) {
            Decision::Rule(at) | Decision::Lookup(at) => at + 1,
            Decision::NoRule => self.0.len(),
        };
        self.0.iter().take(decisive).any(Rule::has_names)
    }

    fn find(&self, first: usize, request: &Request<'_>, addresses: Addresses<'_>) -> Decision {
        for (at, rule) in self.0.iter().enumerate().skip(first) {
            let known = if rule.resolve {
                addresses
            } else {
                Addresses::Known(&[])
            };
            match rule.evaluate(request, known) {
                Outcome::Match => return Decision::Rule(at),
                Outcome::NeedsLookup => return Decision::Lookup(at),
                Outcome::NoMatch => {}
            }
        }
        Decision::NoRule
    }
}

impl Rule {
    fn has_names(&self) -> bool {
        let mut sets = self.sets.iter().chain(&self.and);
        sets.any(|set| set.current().has_names())
    }

    fn evaluate(&self, request: &Request<'_>, addresses: Addresses<'_>) -> Outcome {
        let outcome = evaluate_any(&self.sets, request, addresses);
        if self.and.is_empty() || outcome == Outcome::NoMatch {
            return outcome;
        }
        outcome.and(evaluate_any(&self.and, request, addresses))
    }
}

fn evaluate_any(
    sets: &[SharedRuleSet],
    request: &Request<'_>,
    addresses: Addresses<'_>,
) -> Outcome {
    let mut outcome = Outcome::NoMatch;
    for set in sets {
        outcome = outcome.or(set.evaluate(request, addresses));
        if outcome == Outcome::Match {
            break;
        }
    }
    outcome
}
