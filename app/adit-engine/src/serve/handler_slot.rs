//! The current handler of a listener's connections, which a reload replaces.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::ConnectionHandler;

/// The handler of the next connection of a listener. Connections keep the handler that accepted them.
#[derive(Clone)]
pub struct HandlerSlot(Arc<SlotState>);

struct SlotState {
    current: RwLock<Arc<ConnectionHandler>>,
    /// Closed when the listener has ended.
    listener_ended: Option<watch::Receiver<()>>,
}

impl HandlerSlot {
    /// Creates a slot for a listener whose connections are notified of its end through `ended`.
    pub(crate) fn new(mut handler: ConnectionHandler, ended: Option<watch::Receiver<()>>) -> Self {
        handler.listener_ended.clone_from(&ended);
        Self(Arc::new(SlotState {
            current: RwLock::new(Arc::new(handler)),
            listener_ended: ended,
        }))
    }

    /// Returns the handler for a new connection.
    pub(crate) fn current(&self) -> Arc<ConnectionHandler> {
        let current = self.0.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves new connections with `handler` from now on.
    pub(crate) fn replace(&self, mut handler: ConnectionHandler) {
        handler.listener_ended.clone_from(&self.0.listener_ended);
        let handler = Arc::new(handler);
        let mut current = self
            .0
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, handler);
        drop(current);
        // The last reference may be this one, and its drop needs no lock.
        drop(before);
    }
}
