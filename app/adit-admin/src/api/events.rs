//! The body of a response that is a stream of events.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};

use crate::api::reply::BoxFuture;

/// The newest event: `None` once there are no more.
type Newest = watch::Receiver<Option<Bytes>>;

/// A stream of events, each of which replaces the one before if that was not read in time.
pub(crate) struct EventStream {
    first: Option<Bytes>,
    next: BoxFuture<(Newest, Option<Bytes>)>,
    /// Notified for each event that the connection takes.
    progress: Option<Arc<Notify>>,
    _slot: OwnedSemaphorePermit,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

impl EventStream {
    /// Creates a stream that starts with `first`.
    pub(super) fn new(first: Option<Bytes>, newest: Newest, slot: OwnedSemaphorePermit) -> Self {
        Self {
            first,
            next: Box::pin(next_event(newest)),
            progress: None,
            _slot: slot,
        }
    }

    /// Notifies `progress` whenever the connection takes an event.
    pub(super) fn notify_progress(&mut self, progress: Arc<Notify>) {
        self.progress = Some(progress);
    }
}

async fn next_event(mut newest: Newest) -> (Newest, Option<Bytes>) {
    let event = match newest.changed().await {
        Ok(()) => newest.borrow_and_update().clone(),
        Err(_) => None,
    };
    (newest, event)
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = match self.first.take() {
            Some(first) => Some(first),
            None => {
                let (newest, event) = ready!(self.next.as_mut().poll(cx));
                self.next = Box::pin(next_event(newest));
                event
            }
        };
        if let Some(progress) = &self.progress {
            progress.notify_one();
        }
        Poll::Ready(event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_slow_reader_skips_events_and_the_end_is_the_end() {
        let sender = watch::Sender::new(Some(Bytes::from_static(b"old")));
        let slots = Arc::new(Semaphore::new(1));
        let slot = slots.clone().try_acquire_owned().unwrap();
        let mut newest = sender.subscribe();
        newest.mark_unchanged();
        let mut stream = EventStream::new(Some(Bytes::from_static(b"first")), newest, slot);
        for event in 0..1000 {
            sender.send_replace(Some(event.to_string().into()));
        }
        let mut read = Vec::new();
        for _ in 0..2 {
            let frame = stream.frame().await.unwrap().unwrap();
            read.push(frame.into_data().unwrap());
        }
        assert_eq!(read, ["first", "999"]);
        assert_eq!(slots.available_permits(), 0);
        sender.send_replace(None);
        assert!(stream.frame().await.is_none());
        drop(stream);
        assert_eq!(slots.available_permits(), 1);
    }
}
