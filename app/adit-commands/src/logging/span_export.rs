//! The spans of sessions and their steps, for the export of traces.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adit_admin::otlp::{FinishedSpan, SpanQueue, SpanValue};
use adit_net::system::ThreadRng;
use adit_wire::Entropy;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::log_filter::SESSION_TARGET;
use super::record::TRACE_PREFIX;

/// The fields that traces do not have: the address of a client.
const LEFT_OUT: [&str; 1] = ["client"];

/// The queue of an export, once there is one.
static QUEUE: OnceLock<SpanQueue> = OnceLock::new();

/// Passes the spans of sessions to the export.
pub(super) struct SpanLayer;

/// Starts to collect spans, and returns their queue.
pub(super) fn collect_spans() -> SpanQueue {
    QUEUE.get_or_init(SpanQueue::default).clone()
}

/// Returns true once spans are collected.
pub(super) fn is_collecting() -> bool {
    QUEUE.get().is_some()
}

/// A span that has not ended.
struct OpenSpan {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    parent_id: Option<[u8; 8]>,
    start: Duration,
    fields: SpanFields,
}

#[derive(Default)]
struct SpanFields(Vec<(&'static str, SpanValue)>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if !is_collecting() || attributes.metadata().target() != SESSION_TARGET {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let around = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            let known = extensions.get::<OpenSpan>()?;
            Some((known.trace_id, known.span_id))
        });
        let is_session = attributes.metadata().name() == "session";
        let (trace_id, parent_id) = match around {
            Some((trace, parent)) => (trace, Some(parent)),
            None if is_session => (random(), None),
            // A probe of a group, for example: a step without a session.
            None => return,
        };
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(OpenSpan {
            trace_id,
            span_id: random(),
            parent_id,
            start: now(),
            fields,
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<OpenSpan>()
        {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(queue) = QUEUE.get() else { return };
        let Some(span) = context.span(&id) else {
            return;
        };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else {
            return;
        };
        queue.push(FinishedSpan {
            trace_id: open.trace_id,
            span_id: open.span_id,
            parent_id: open.parent_id,
            name: span.name(),
            start: open.start,
            end: now(),
            fields: open.fields.0,
        });
    }
}

impl SpanFields {
    fn set(&mut self, field: &Field, value: SpanValue) {
        let name = field.name();
        if LEFT_OUT.contains(&name) {
            return;
        }
        let name = name.strip_prefix(TRACE_PREFIX).unwrap_or(name);
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Visit for SpanFields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.set(field, SpanValue::Text(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, SpanValue::Text(value.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, SpanValue::Truth(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, SpanValue::Number(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.set(field, SpanValue::Number(value));
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut id = [0; N];
    ThreadRng.fill(&mut id);
    id
}

/// Returns the time since 1970; none before.
fn now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tracing::field::Empty;
    use tracing::{debug_span, info_span};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn a_session_and_its_steps_are_one_trace_without_clients() {
        let queue = collect_spans();
        let subscriber = tracing_subscriber::registry().with(SpanLayer);
        tracing::subscriber::with_default(subscriber, || {
            let session = debug_span!(
                target: SESSION_TARGET, "session", session = 7_u64, client = "192.0.2.1:5",
                trace.listen = display("a"), trace.up = Empty
            );
            session.in_scope(|| {
                drop(debug_span!(target: SESSION_TARGET, "dial"));
                // That of another module.
                drop(info_span!("other"));
            });
            session.record("trace.up", 9_u64);
            drop(session);
            drop(debug_span!(target: SESSION_TARGET, "hop"));
        });
        let spans = queue.take_all();
        let names: Vec<_> = spans.iter().map(|span| span.name).collect();
        assert_eq!(names, ["dial", "session"]);
        let [dial, session] = &spans[..] else {
            panic!("{spans:?}");
        };
        assert_eq!(dial.trace_id, session.trace_id);
        assert_eq!(dial.parent_id, Some(session.span_id));
        assert_eq!(session.parent_id, None);
        let fields = [
            ("session", SpanValue::Number(7)),
            ("listen", SpanValue::Text("a".to_owned())),
            ("up", SpanValue::Number(9)),
        ];
        assert_eq!(session.fields, fields);
        assert!(session.start <= dial.start && dial.end <= session.end);
    }
}
