//! What the handles, the streams and the task of a session share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use adit_crypto::packet::qpp::PermutationPads;
use adit_smux_proto::{Event, Session, StreamId};
use tokio::sync::Notify;

use super::End;

/// A session.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// What every stream goes through besides.
    pub(super) pads: Option<Arc<PermutationPads>>,
    /// Told when the session is over.
    pub(super) over: Notify,
}

/// What is behind the lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) core: Session,
    waiters: HashMap<StreamId, Waiters>,
    acceptor: Option<Waker>,
    /// The task, while it sleeps.
    pub(super) driver: Option<Waker>,
    /// The core took less in than there was.
    pub(super) blocked: bool,
    /// The stream below takes nothing more.
    pub(super) stuck: bool,
    pub(super) end: Option<End>,
    /// The peer has sent something that was understood.
    pub(super) understood: bool,
    /// Handles to the session.
    pub(super) handles: usize,
}

/// Who waits for a stream.
#[derive(Debug, Default)]
struct Waiters {
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Which side of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Reader,
    Writer,
}

impl Shared {
    pub(super) fn new(core: Session, pads: Option<Arc<PermutationPads>>) -> Self {
        Self {
            state: Mutex::new(State {
                core,
                waiters: HashMap::new(),
                acceptor: None,
                driver: None,
                blocked: false,
                stuck: false,
                end: None,
                understood: false,
                handles: 1,
            }),
            pads,
            over: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the task could do something if it were awake.
    pub(super) fn wants_driver(&self) -> bool {
        let over = self.end.is_some() || self.is_deserted();
        let input = self.blocked && self.core.wants_input();
        over || input || (!self.stuck && self.core.wants_output())
    }

    /// Nobody can open or accept a stream, and none is left.
    pub(super) fn is_deserted(&self) -> bool {
        self.handles == 0 && self.core.streams() == 0
    }

    /// The task's waker, if it sleeps and should not.
    pub(super) fn driver_to_wake(&mut self) -> Option<Waker> {
        if self.driver.is_some() && self.wants_driver() {
            self.driver.take()
        } else {
            None
        }
    }

    pub(super) fn add_stream(&mut self, id: StreamId) {
        self.waiters.insert(id, Waiters::default());
    }

    pub(super) fn remove_stream(&mut self, id: StreamId) {
        self.waiters.remove(&id);
    }

    /// Remembers who waits.
    pub(super) fn wait(&mut self, id: StreamId, side: Side, cx: &Context<'_>) {
        if let Some(waiters) = self.waiters.get_mut(&id) {
            match side {
                Side::Reader => keep(&mut waiters.reader, cx),
                Side::Writer => keep(&mut waiters.writer, cx),
            }
        }
    }

    pub(super) fn wait_accept(&mut self, cx: &Context<'_>) {
        keep(&mut self.acceptor, cx);
    }

    /// Collects those whom the core's events concern.
    pub(super) fn collect(&mut self, wake: &mut Vec<Waker>) {
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

    /// Ends the session; collects everybody.
    pub(super) fn end(&mut self, why: End, wake: &mut Vec<Waker>) {
        self.end.get_or_insert(why);
        wake.extend(self.acceptor.take());
        for waiters in self.waiters.values_mut() {
            wake.extend(waiters.reader.take());
            wake.extend(waiters.writer.take());
        }
    }
}

fn keep(place: &mut Option<Waker>, cx: &Context<'_>) {
    if !place.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
        *place = Some(cx.waker().clone());
    }
}
