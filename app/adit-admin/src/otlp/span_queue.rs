//! The spans that wait for their export.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// Maximum number of spans that wait. One takes about 500 bytes.
const MAX_SPANS: usize = 4096;
/// Number of spans that are exported before the interval ends.
const MANY_SPANS: usize = MAX_SPANS / 4;

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    /// Text.
    Text(String),
    /// A number.
    Number(i64),
    /// True or false.
    Truth(bool),
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedSpan {
    /// The trace, which a session and all of its steps share.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
    /// The span around it.
    pub parent_id: Option<[u8; 8]>,
    /// The name.
    pub name: &'static str,
    /// The start, since 1970.
    pub start: Duration,
    /// The end, since 1970.
    pub end: Duration,
    /// The fields.
    pub fields: Vec<(&'static str, SpanValue)>,
}

/// A bounded queue of spans. Adding never waits.
#[derive(Debug, Clone, Default)]
pub struct SpanQueue(Arc<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    spans: Mutex<VecDeque<FinishedSpan>>,
    many: Notify,
    dropped: AtomicU64,
}

impl SpanQueue {
    /// Adds a span. If the queue is full, its oldest span is dropped.
    pub fn push(&self, span: FinishedSpan) {
        let mut spans = self.lock();
        if spans.len() >= MAX_SPANS {
            spans.pop_front();
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
        spans.push_back(span);
        if spans.len() == MANY_SPANS {
            self.0.many.notify_one();
        }
    }

    /// Takes at most `limit` spans, the oldest first.
    pub(super) fn take(&self, limit: usize) -> Vec<FinishedSpan> {
        let mut spans = self.lock();
        let count = spans.len().min(limit);
        spans.drain(..count).collect()
    }

    /// Takes all spans.
    #[must_use]
    pub fn take_all(&self) -> Vec<FinishedSpan> {
        self.take(usize::MAX)
    }

    /// Puts spans back that could not be exported. Those for which there is no room are dropped.
    pub(super) fn put_back(&self, batch: Vec<FinishedSpan>) {
        let mut spans = self.lock();
        let room = MAX_SPANS.saturating_sub(spans.len());
        let lost = batch.len().saturating_sub(room);
        for span in batch.into_iter().skip(lost).rev() {
            spans.push_front(span);
        }
        let lost = u64::try_from(lost).unwrap_or(u64::MAX);
        self.0.dropped.fetch_add(lost, Ordering::Relaxed);
    }

    /// Returns the number of spans that were dropped since the last call.
    pub(super) fn take_dropped(&self) -> u64 {
        self.0.dropped.swap(0, Ordering::Relaxed)
    }

    /// Waits until there are many spans.
    pub(super) async fn wait_many(&self) {
        self.0.many.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<FinishedSpan>> {
        self.0.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(number: i64) -> FinishedSpan {
        FinishedSpan {
            trace_id: [1; 16],
            span_id: [2; 8],
            parent_id: None,
            name: "session",
            start: Duration::ZERO,
            end: Duration::ZERO,
            fields: vec![("session", SpanValue::Number(number))],
        }
    }

    #[test]
    fn a_full_queue_drops_the_oldest() {
        let queue = SpanQueue::default();
        let all = i64::try_from(MAX_SPANS).unwrap();
        (0..all + 10).for_each(|number| queue.push(span(number)));
        assert_eq!(queue.take_dropped(), 10);
        let batch = queue.take(3);
        assert_eq!(batch, [span(10), span(11), span(12)]);
        // There is room for two of them.
        queue.push(span(-1));
        queue.put_back(batch);
        assert_eq!(queue.take_dropped(), 1);
        assert_eq!(queue.take(3), [span(11), span(12), span(13)]);
        assert_eq!(queue.take(usize::MAX).last(), Some(&span(-1)));
        assert_eq!((queue.take(1).len(), queue.take_dropped()), (0, 0));
    }
}
