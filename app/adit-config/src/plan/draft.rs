//! Routes before they are checked, and the endpoints in them.

use crate::grammar::Endpoint;
use crate::plan::{Match, Stage};
use crate::scheme::draft::KeyTable;
use crate::scheme::typed::{Hop, Listen};
use crate::scheme::{self, keys};
use crate::text::{Desk, Lookup, Place, Quote};

/// A listener, and the places that checks between endpoints point at.
pub(super) struct ListenDraft {
    pub(super) listen: Listen,
    pub(super) place: Place,
    /// Where `udp=true` is written.
    pub(super) udp_written: Option<Place>,
}

pub(super) struct StageDraft {
    pub(super) stage: Stage,
    pub(super) place: Place,
}

pub(super) struct RuleDraft {
    pub(super) matches: Vec<Match>,
    pub(super) resolve: bool,
    pub(super) via: Vec<StageDraft>,
    pub(super) place: Place,
}

pub(super) struct RouteDraft {
    pub(super) name: String,
    pub(super) listen: Vec<ListenDraft>,
    pub(super) via: Vec<StageDraft>,
    pub(super) rules: Vec<RuleDraft>,
}

/// True for names that logs and metrics can carry as they are.
pub(super) fn is_route_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(good)
}

impl RouteDraft {
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
    desk: &mut Desk,
    lookup: Lookup<'_>,
    quote: Quote<'_>,
    text: &str,
    table: Option<KeyTable>,
) -> Option<(ListenDraft, Option<String>)> {
    let endpoint = endpoint(desk, quote, text)?;
    let listen = scheme::listen(desk, lookup, &endpoint, quote, table)?;
    let udp_written = endpoint
        .param(keys::UDP.name)
        .map(|pair| quote.place(pair.key.span.join(pair.value.span)));
    let draft = ListenDraft {
        listen,
        place: quote.place(endpoint.address),
        udp_written,
    };
    Some((draft, endpoint.name.map(|name| name.value)))
}

/// Reads a hop and its place.
pub(super) fn hop(
    desk: &mut Desk,
    lookup: Lookup<'_>,
    quote: Quote<'_>,
    text: &str,
) -> Option<(Hop, Place)> {
    let endpoint = endpoint(desk, quote, text)?;
    let hop = scheme::hop(desk, lookup, &endpoint, quote)?;
    Some((hop, quote.place(endpoint.scheme.span)))
}

fn endpoint(desk: &mut Desk, quote: Quote<'_>, text: &str) -> Option<Endpoint> {
    match Endpoint::parse(text) {
        Ok(endpoint) => Some(endpoint),
        Err(flaw) => {
            desk.flaw(&quote, flaw);
            None
        }
    }
}
