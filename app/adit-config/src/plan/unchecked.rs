//! Routes before they are checked, and the endpoints in them.

use crate::grammar::Endpoint;
use crate::plan::{Match, Stage};
use crate::scheme::builder::KeyTable;
use crate::scheme::typed::{Hop, Listen};
use crate::scheme::{self, keys};
use crate::text::{Diagnostics, Excerpt, Lookup, Place};

/// A listener, and the places that checks between endpoints point at.
pub(super) struct UncheckedListen {
    pub(super) listen: Listen,
    pub(super) place: Place,
    /// Where `udp=true` is written.
    pub(super) udp_written: Option<Place>,
}

pub(super) struct UncheckedStage {
    pub(super) stage: Stage,
    pub(super) place: Place,
}

pub(super) struct UncheckedRule {
    pub(super) matches: Vec<Match>,
    pub(super) resolve: bool,
    pub(super) via: Vec<UncheckedStage>,
    pub(super) place: Place,
}

pub(super) struct UncheckedRoute {
    pub(super) name: String,
    pub(super) listen: Vec<UncheckedListen>,
    pub(super) via: Vec<UncheckedStage>,
    pub(super) rules: Vec<UncheckedRule>,
}

/// True for names that logs and metrics can carry as they are.
pub(super) fn is_route_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(good)
}

impl UncheckedRoute {
    pub(super) const fn new(name: String) -> Self {
        Self {
            name,
            listen: Vec::new(),
            via: Vec::new(),
            rules: Vec::new(),
        }
    }
}

/// Reads a listener and its `#name`. `table` holds keys that stand beside the URL.
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

/// Reads a hop and its place.
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

fn endpoint(diagnostics: &mut Diagnostics, excerpt: Excerpt<'_>, text: &str) -> Option<Endpoint> {
    match Endpoint::parse(text) {
        Ok(endpoint) => Some(endpoint),
        Err(flaw) => {
            diagnostics.flaw(&excerpt, flaw);
            None
        }
    }
}
