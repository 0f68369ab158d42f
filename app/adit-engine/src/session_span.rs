//! The span of a session, with its ID, for all messages about it; and the spans of its steps, for traces.
//!
//! ```text
//! session ─┬─ dial ── hop ── hop … ── connect
//!          └─ (the relay)
//! ```
//!
//! Fields whose names begin with `trace.` are for traces alone: a log leaves them out. None of them has a destination.

use std::net::SocketAddr;

use tracing::field::{Empty, display};
use tracing::{Instrument, Level, Span, debug_span, span_enabled};

use crate::failure_cause::FailureCause;
use crate::session_table::{ListenerSessions, SessionEntry, SessionKind};

/// The target of the spans. A log enables it if it shows anything below `info`, and the export of traces does.
const TARGET: &str = "adit::session";

/// Creates the span of a session; `None` if neither a log nor a trace has it, so that the session costs no more.
pub(crate) fn session_span(
    id: u64,
    kind: SessionKind,
    client: SocketAddr,
    listener: &ListenerSessions,
) -> Option<Box<Span>> {
    let span = debug_span!(
        target: TARGET,
        "session",
        session = id,
        %client,
        trace.kind = kind.name(),
        trace.route = Empty,
        trace.listen = Empty,
        trace.up = Empty,
        trace.down = Empty,
        trace.end = Empty,
    );
    if span.is_disabled() {
        return None;
    }
    if let Some((route, addr)) = listener.listening() {
        span.record("trace.route", route);
        span.record("trace.listen", display(addr));
    }
    Some(Box::new(span))
}

/// Runs `work` in the span of a session, if there is one.
pub(crate) async fn run_in_span<T>(
    span: Option<Box<Span>>,
    work: impl Future<Output = T> + Send,
) -> T {
    let work = Box::pin(work);
    match span {
        Some(span) => work.instrument(*span).await,
        None => work.await,
    }
}

/// Records in the span of a session, which is the current one, what the session has carried, and how it has ended.
pub(crate) fn record_end(session: &SessionEntry, end: &str) {
    if has_spans() {
        let span = Span::current();
        span.record("trace.up", session.up());
        span.record("trace.down", session.down());
        span.record("trace.end", end);
    }
}

/// Records in the span of a session, which is the current one, that its request was refused.
pub(crate) fn record_refusal(cause: FailureCause) {
    if has_spans() {
        Span::current().record("trace.end", cause.label());
    }
}

/// Returns true if sessions may have spans. Asking for the current one takes longer, whether there is one or not.
fn has_spans() -> bool {
    span_enabled!(target: TARGET, Level::DEBUG)
}

/// Creates the span of the step that opens the path to a destination.
pub(crate) fn dial_span() -> Span {
    debug_span!(target: TARGET, "dial", trace.failure = Empty)
}

/// Creates the span of the connection to a hop's server, and the handshake with it.
pub(crate) fn hop_span(name: &str) -> Span {
    debug_span!(target: TARGET, "hop", trace.hop = name, trace.failure = Empty)
}

/// Creates the span of a connection without further hops, name resolution included.
pub(crate) fn connect_span() -> Span {
    debug_span!(target: TARGET, "connect", trace.failure = Empty)
}

/// Runs a step in its span, where it records the cause of its failure.
pub(crate) async fn run_step<T>(
    span: Span,
    step: impl Future<Output = Result<T, crate::DialError>> + Send,
) -> Result<T, crate::DialError> {
    if span.is_disabled() {
        return step.await;
    }
    let done = step.instrument(span.clone()).await;
    if let Err(why) = &done {
        span.record("trace.failure", why.cause.label());
    }
    done
}
