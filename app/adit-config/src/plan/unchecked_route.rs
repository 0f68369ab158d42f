//! Routes before the checks between endpoints.

use adit_rules::Condition;

use crate::grammar::Endpoint;
use crate::plan::{RuleCondition, Stage};
use crate::scheme::builder::KeyTable;
use crate::scheme::endpoint_types::{Hop, ListenerConfig};
use crate::scheme::{self, shared_keys};
use crate::text::{Diagnostics, SecretLookup, SourceLocation, UrlSnippet};

/// A listener, with the places for errors between endpoints.
pub(super) struct UncheckedListener {
    /// The listener.
    pub(super) listen: ListenerConfig,
    /// The place of its address.
    pub(super) place: SourceLocation,
    /// The place of `udp`, if it is written.
    pub(super) udp_written: Option<SourceLocation>,
}

/// A stage of a chain with its place.
pub(super) struct UncheckedStage {
    /// The stage.
    pub(super) stage: Stage,
    /// The place of its first hop.
    pub(super) place: SourceLocation,
}

/// A rule with its place.
pub(super) struct UncheckedRule {
    /// The conditions.
    pub(super) matches: Vec<RuleCondition>,
    /// Further conditions.
    pub(super) and: Vec<RuleCondition>,
    /// True if names are resolved.
    pub(super) resolve: bool,
    /// The chain.
    pub(super) via: Vec<UncheckedStage>,
    /// The place of the rule.
    pub(super) place: SourceLocation,
}

impl UncheckedRule {
    /// True if every request matches.
    pub(super) fn catches_all(&self) -> bool {
        let any = RuleCondition::Condition(Condition::Any);
        self.and.is_empty() && self.matches.contains(&any)
    }

    /// Returns the first condition about names.
    pub(super) fn name_condition(&self) -> Option<&Condition> {
        self.matches
            .iter()
            .chain(&self.and)
            .find_map(|condition| match condition {
                RuleCondition::Condition(condition) => {
                    Some(condition).filter(|c| c.concerns_names())
                }
                RuleCondition::Set(_) => None,
            })
    }

    /// True if it has a rule set, which may have conditions about names.
    pub(super) fn has_set(&self) -> bool {
        let mut conditions = self.matches.iter().chain(&self.and);
        conditions.any(|condition| matches!(condition, RuleCondition::Set(_)))
    }
}

/// A route before it is checked.
pub(super) struct UncheckedRoute {
    /// The name.
    pub(super) name: String,
    /// The listeners.
    pub(super) listen: Vec<UncheckedListener>,
    /// The chain for requests that no rule matches.
    pub(super) via: Vec<UncheckedStage>,
    /// The rules.
    pub(super) rules: Vec<UncheckedRule>,
    /// The name of its DNS table.
    pub(super) dns: Option<String>,
}

/// True if logs and metrics can contain the name unchanged.
pub(super) fn is_route_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(good)
}

impl UncheckedRoute {
    /// Creates an empty route.
    pub(super) const fn new(name: String) -> Self {
        Self {
            name,
            listen: Vec::new(),
            via: Vec::new(),
            rules: Vec::new(),
            dns: None,
        }
    }
}

/// Parses a listener and its `#name`. `table` contains keys that a file has beside the URL.
pub(super) fn parse_listener(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    excerpt: UrlSnippet<'_>,
    text: &str,
    table: Option<KeyTable>,
) -> Option<(UncheckedListener, Option<String>)> {
    let endpoint = parse_endpoint(diagnostics, excerpt, text)?;
    let listen = scheme::build_listener(diagnostics, lookup, &endpoint, excerpt, table)?;
    let udp_written = endpoint
        .param(shared_keys::UDP.name)
        .map(|pair| excerpt.place_of(pair.key.span.join(pair.value.span)));
    let draft = UncheckedListener {
        listen,
        place: excerpt.place_of(endpoint.address),
        udp_written,
    };
    Some((draft, endpoint.name.map(|name| name.value)))
}

/// Parses a hop, and returns it with its place.
pub(super) fn parse_hop(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    excerpt: UrlSnippet<'_>,
    text: &str,
) -> Option<(Hop, SourceLocation)> {
    let (hop, place, _) = parse_named_hop(diagnostics, lookup, excerpt, text)?;
    Some((hop, place))
}

/// Parses a hop, and returns it with its place and its `#name`.
pub(super) fn parse_named_hop(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    excerpt: UrlSnippet<'_>,
    text: &str,
) -> Option<(Hop, SourceLocation, Option<String>)> {
    let endpoint = parse_endpoint(diagnostics, excerpt, text)?;
    let hop = scheme::build_hop(diagnostics, lookup, &endpoint, excerpt)?;
    let place = excerpt.place_of(endpoint.scheme.span);
    Some((hop, place, endpoint.name.map(|name| name.value)))
}

/// Parses a URL, and reports its error.
fn parse_endpoint(
    diagnostics: &mut Diagnostics,
    excerpt: UrlSnippet<'_>,
    text: &str,
) -> Option<Endpoint> {
    match Endpoint::parse(text) {
        Ok(endpoint) => Some(endpoint),
        Err(flaw) => {
            diagnostics.add_url_error(&excerpt, flaw);
            None
        }
    }
}
