//! The state that the handles, the streams and the task of a session share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use adit_crypto::packet::qpp::PermutationPads;
use adit_smux_proto::{Event, Session, StreamId};
use tokio::sync::Notify;

use super::EndReason;

/// A session.
#[derive(Debug)]
pub(super) struct SharedSession {
    state: Mutex<SessionState>,
    /// The pads that all streams use, if any.
    pub(super) pads: Option<Arc<PermutationPads>>,
    /// Notified when the session is over.
    pub(super) ended: Notify,
}

/// The state behind the lock.
#[derive(Debug)]
pub(super) struct SessionState {
    pub(super) core: Session,
    waiters: HashMap<StreamId, StreamWaiters>,
    acceptor: Option<Waker>,
    /// The waker of the task, while it sleeps.
    pub(super) driver: Option<Waker>,
    /// The core did not accept all input.
    pub(super) input_blocked: bool,
    /// The stream below does not accept more output.
    pub(super) output_blocked: bool,
    pub(super) end: Option<EndReason>,
    /// The peer has sent a valid frame.
    pub(super) has_valid_input: bool,
    /// Number of handles to the session.
    pub(super) handles: usize,
}

/// The wakers of the tasks that wait for a stream.
#[derive(Debug, Default)]
struct StreamWaiters {
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// A direction of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamSide {
    Reader,
    Writer,
}

impl SharedSession {
    pub(super) fn new(core: Session, pads: Option<Arc<PermutationPads>>) -> Self {
        Self {
            state: Mutex::new(SessionState {
                core,
                waiters: HashMap::new(),
                acceptor: None,
                driver: None,
                input_blocked: false,
                output_blocked: false,
                end: None,
                has_valid_input: false,
                handles: 1,
            }),
            pads,
            ended: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionState {
    /// True if the task had something to do.
    pub(super) fn wants_driver(&self) -> bool {
        let over = self.end.is_some() || self.is_unused();
        let input = self.input_blocked && self.core.wants_input();
        over || input || (!self.output_blocked && self.core.wants_output())
    }

    /// True if there is no handle to open or accept a stream, and no stream.
    pub(super) fn is_unused(&self) -> bool {
        self.handles == 0 && self.core.stream_count() == 0
    }

    /// Returns the task's waker, if the task sleeps and should not.
    pub(super) fn driver_to_wake(&mut self) -> Option<Waker> {
        if self.driver.is_some() && self.wants_driver() {
            self.driver.take()
        } else {
            None
        }
    }

    pub(super) fn add_stream(&mut self, id: StreamId) {
        self.waiters.insert(id, StreamWaiters::default());
    }

    pub(super) fn remove_stream(&mut self, id: StreamId) {
        self.waiters.remove(&id);
    }

    /// Stores the waker of a waiting task.
    pub(super) fn wait_for_stream(&mut self, id: StreamId, side: StreamSide, cx: &Context<'_>) {
        if let Some(waiters) = self.waiters.get_mut(&id) {
            match side {
                StreamSide::Reader => store_waker(&mut waiters.reader, cx),
                StreamSide::Writer => store_waker(&mut waiters.writer, cx),
            }
        }
    }

    pub(super) fn wait_for_stream_open(&mut self, cx: &Context<'_>) {
        store_waker(&mut self.acceptor, cx);
    }

    /// Collects the wakers for the core's events.
    pub(super) fn collect_wakers(&mut self, wake: &mut Vec<Waker>) {
        while let Some(event) = self.core.poll_event() {
            let mut of = |id, reader: bool, writer: bool| {
                if let Some(waiters) = self.waiters.get_mut(&id) {
                    wake.extend(waiters.reader.take_if(|_| reader));
                    wake.extend(waiters.writer.take_if(|_| writer));
                }
            };
            match event {
                Event::Opened(_) => wake.extend(self.acceptor.take()),
                Event::Readable(id) | Event::Finished(id) => of(id, true, false),
                Event::Writable(id) => of(id, false, true),
                Event::Failed(id) => of(id, true, true),
                _ => {}
            }
        }
    }

    /// Ends the session, and collects all wakers.
    pub(super) fn end_session(&mut self, why: EndReason, wake: &mut Vec<Waker>) {
        self.end.get_or_insert(why);
        wake.extend(self.acceptor.take());
        for waiters in self.waiters.values_mut() {
            wake.extend(waiters.reader.take());
            wake.extend(waiters.writer.take());
        }
    }
}

fn store_waker(place: &mut Option<Waker>, cx: &Context<'_>) {
    if !place.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
        *place = Some(cx.waker().clone());
    }
}
