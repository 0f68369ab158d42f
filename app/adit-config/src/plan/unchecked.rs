//! Routes before the checks between endpoints.

use crate::grammar::Endpoint;
use crate::plan::{Match, Stage};
use crate::scheme::builder::KeyTable;
use crate::scheme::typed::{Hop, Listen};
use crate::scheme::{self, keys};
use crate::text::{Diagnostics, Excerpt, Lookup, Place};

/// A listener, with the places for errors between endpoints.
pub(super) struct UncheckedListen {
    /// The listener.
    pub(super) listen: Listen,
    /// The place of its address.
    pub(super) place: Place,
    /// The place of `udp`, if it is written.
    pub(super) udp_written: Option<Place>,
}

/// A stage of a chain with its place.
pub(super) struct UncheckedStage {
    /// The stage.
    pub(super) stage: Stage,
    /// The place of its first hop.
    pub(super) place: Place,
}

/// A rule with its place.
pub(super) struct UncheckedRule {
    /// The conditions.
    pub(super) matches: Vec<Match>,
    /// True if names are resolved.
    pub(super) resolve: bool,
    /// The chain.
    pub(super) via: Vec<UncheckedStage>,
    /// The place of the rule.
    pub(super) place: Place,
}

/// A route before it is checked.
pub(super) struct UncheckedRoute {
    /// The name.
    pub(super) name: String,
    /// The listeners.
    pub(super) listen: Vec<UncheckedListen>,
    /// The chain for requests that no rule matches.
    pub(super) via: Vec<UncheckedStage>,
    /// The rules.
    pub(super) rules: Vec<UncheckedRule>,
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
        }
    }
}

/// Parses a listener and its `#name`. `table` contains keys that a file has beside the URL.
pub(super) fn listen(
    diagnostics: &mut Diagnostics,
    lookup: Lookup<'_>,
    excerpt: Excerpt<'_>,
    text: &str,
    table: Option<KeyTable>,
) -> Option<(UncheckedListen, Option<String>)> {
    let endpoint = endpoint(diagnostics, excerpt, text)?;
    let listen = scheme::listen(diagnostics, lookup, &endpoint, excerpt, table)?;
    let udp_written = endpoint
        .param(keys::UDP.name)
        .map(|pair| excerpt.place(pair.key.span.join(pair.value.span)));
    let draft = UncheckedListen {
        listen,
        place: excerpt.place(endpoint.address),
        udp_written,
    };
    Some((draft, endpoint.name.map(|name| name.value)))
}

/// Parses a hop, and returns it with its place.
pub(super) fn hop(
    diagnostics: &mut Diagnostics,
    lookup: Lookup<'_>,
    excerpt: Excerpt<'_>,
    text: &str,
) -> Option<(Hop, Place)> {
    let endpoint = endpoint(diagnostics, excerpt, text)?;
    let hop = scheme::hop(diagnostics, lookup, &endpoint, excerpt)?;
    Some((hop, excerpt.place(endpoint.scheme.span)))
}

/// Parses a URL, and reports its error.
fn endpoint(diagnostics: &mut Diagnostics, excerpt: Excerpt<'_>, text: &str) -> Option<Endpoint> {
    match Endpoint::parse(text) {
        Ok(endpoint) => Some(endpoint),
        Err(flaw) => {
            diagnostics.flaw(&excerpt, flaw);
            None
        }
    }
}
