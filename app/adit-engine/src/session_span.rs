//! The span of a session, with its ID, for all messages about it.

use std::net::SocketAddr;

use tracing::{Span, debug_span};

/// The target of the spans. A log enables it if it shows anything below `info`.
const TARGET: &str = "adit::session";

/// Creates the span of a session; `None` if nothing is logged that would be in it, so that the session costs no more.
pub(crate) fn session_span(id: u64, client: SocketAddr) -> Option<Box<Span>> {
    let span = debug_span!(target: TARGET, "session", session = id, %client);
    (!span.is_disabled()).then(|| Box::new(span))
}
