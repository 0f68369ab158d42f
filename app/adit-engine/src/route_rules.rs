//! The rules of a route for one of its listeners: compilation and explanation.

use std::net::IpAddr;

use adit_config::{AddressPreference, Condition, ListenerConfig, Route, RuleCondition};
use adit_net::dial::Family;
use adit_rules::{AddError, Addresses, Decision, Outcome, Rule, RuleList, RuleSet, SharedRuleSet};
use adit_wire::Target;

use crate::dns::NameResolver;
use crate::router::look_up;
use crate::{RequestContext, RuleSetTable};

/// The error of rules that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteRuleError {
    /// The conditions of a rule are too many for one set.
    #[error("rule {number} of route `{route}`: {why}")]
    Conditions {
        /// Name of the route.
        route: String,
        /// Number of the rule; the first is 1.
        number: usize,
        /// The reason.
        why: AddError,
    },
    /// The plan of the route has no such rule set.
    #[error("rule {number} of route `{route}`: no rule set `{name}`")]
    NoSet {
        /// Name of the route.
        route: String,
        /// Number of the rule; the first is 1.
        number: usize,
        /// Name of the set.
        name: String,
    },
}

/// Compiles the rules of a route for requests that `listen` accepts.
pub(crate) fn compile_rules(
    route: &Route,
    listen: &ListenerConfig,
    sets: &RuleSetTable,
) -> Result<Vec<Rule>, RouteRuleError> {
    let listener = listen.to_string();
    let mut rules = Vec::with_capacity(route.rules.len());
    for (at, rule) in route.rules.iter().enumerate() {
        let compile = |conditions: &[RuleCondition]| {
            compile_conditions(conditions, &listener, sets)
                .map_err(|why| why.of_rule(route, at + 1))
        };
        rules.push(Rule {
            sets: compile(&rule.matches)?,
            and: compile(&rule.and)?,
            resolve: rule.resolve,
        });
    }
    Ok(rules)
}

/// An error without the place of the rule.
pub(crate) enum CompileError {
    Conditions(AddError),
    NoSet(String),
}

impl CompileError {
    fn of_rule(self, route: &Route, number: usize) -> RouteRuleError {
        let route = route.name.clone();
        match self {
            Self::Conditions(why) => RouteRuleError::Conditions { route, number, why },
            Self::NoSet(name) => RouteRuleError::NoSet {
                route,
                number,
                name,
            },
        }
    }
}

/// Returns the sets of alternatives; none only if there is no condition.
pub(crate) fn compile_conditions(
    conditions: &[RuleCondition],
    listener: &str,
    sets: &RuleSetTable,
) -> Result<Vec<SharedRuleSet>, CompileError> {
    let mut own = Vec::new();
    let mut all = Vec::new();
    for condition in conditions {
        match condition {
            RuleCondition::Condition(condition) => own.extend(for_listener(condition, listener)),
            RuleCondition::Set(name) => {
                let set = sets.get(name).cloned();
                all.push(set.ok_or_else(|| CompileError::NoSet(name.clone()))?);
            }
        }
    }
    // Conditions on other listeners alone make a set that matches nothing.
    if !own.is_empty() || (all.is_empty() && !conditions.is_empty()) {
        let own = RuleSet::compile(own).map_err(CompileError::Conditions)?;
        all.insert(0, own.into());
    }
    Ok(all)
}

/// Decides conditions on the listener, which is the same for all requests of a router.
fn for_listener(condition: &Condition, listener: &str) -> Option<Condition> {
    match condition {
        Condition::Listener(part) => {
            contains_ignoring_case(listener, part).then_some(Condition::Any)
        }
        other => Some(other.clone()),
    }
}

fn contains_ignoring_case(text: &str, part: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains(&part.to_ascii_lowercase())
}

/// Returns the address families that a listener looks names up for.
pub(crate) const fn address_family(listen: &ListenerConfig) -> Family {
    match listen.prefer {
        AddressPreference::Auto => Family::Any,
        AddressPreference::V4 => Family::V4First,
        AddressPreference::V6 => Family::V6First,
        AddressPreference::V4Only => Family::V4Only,
        AddressPreference::V6Only => Family::V6Only,
    }
}

/// The rule that decides about a request, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Index of the rule; `None` if no rule matches, so that the request takes the chain of the route.
    pub rule: Option<usize>,
    /// The condition of `match` that the request meets, and that of `and` if the rule has one.
    pub reasons: Vec<MatchReason>,
    /// The addresses of the target's name, if a rule made it necessary to look them up.
    pub looked_up: Option<Vec<IpAddr>>,
}

/// A condition that a request meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchReason {
    /// The condition as configured.
    pub condition: RuleCondition,
    /// The entry of a rule set.
    pub entry: Option<adit_rules::Entry>,
}

/// Returns the rule of `route` that decides about a request of `listen`. Looks the target's name up with
/// `names` if a router would.
///
/// # Errors
///
/// [`RouteRuleError`] if a rule cannot be compiled.
pub async fn explain_request(
    route: &Route,
    listen: &ListenerConfig,
    sets: &RuleSetTable,
    target: &Target,
    context: &RequestContext<'_>,
    names: &NameResolver,
) -> Result<Explanation, RouteRuleError> {
    let list = RuleList::new(compile_rules(route, listen, sets)?);
    let request = context.request(target);
    let (decision, looked_up) = match list.decide(&request) {
        Decision::Lookup(first) => {
            let found = look_up(target, address_family(listen), names).await;
            let decision = list.decide_with_addresses(first, &request, &found);
            (decision, Some(found))
        }
        decision => (decision, None),
    };
    let mut explanation = Explanation {
        rule: None,
        reasons: Vec::new(),
        looked_up,
    };
    if let Decision::Rule(at) = decision
        && let Some(rule) = route.rules.get(at)
    {
        let known = explanation.looked_up.as_deref().unwrap_or_default();
        let known = if rule.resolve { known } else { &[] };
        let listener = listen.to_string();
        let reason = |conditions: &[RuleCondition]| {
            conditions.iter().find_map(|condition| {
                let one = core::slice::from_ref(condition);
                let compiled = compile_conditions(one, &listener, sets).ok()?;
                let set = compiled.first()?.current();
                let addresses = Addresses::Known(known);
                let matches = set.evaluate(&request, addresses) == Outcome::Match;
                matches.then(|| MatchReason {
                    condition: condition.clone(),
                    entry: match condition {
                        RuleCondition::Set(_) => set.find_entry(&request, addresses),
                        RuleCondition::Condition(_) => None,
                    },
                })
            })
        };
        let reasons = [&rule.matches, &rule.and].into_iter();
        explanation.reasons = reasons.filter_map(|part| reason(part)).collect();
        explanation.rule = Some(at);
    }
    Ok(explanation)
}
