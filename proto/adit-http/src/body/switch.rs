//! The origin's answer to an upgrade request, shared by the two directions of an exchange.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The state of the upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Waiting,
    Accepted,
    Declined,
}

/// Set once by the response, read by the request.
#[derive(Debug, Clone, Default)]
pub(super) struct Switch(Arc<AtomicU8>);

impl Switch {
    pub(super) fn accept(&self) {
        self.0.store(1, Ordering::Release);
    }

    pub(super) fn decline(&self) {
        self.0.store(2, Ordering::Release);
    }

    pub(super) fn turn(&self) -> Turn {
        match self.0.load(Ordering::Acquire) {
            0 => Turn::Waiting,
            1 => Turn::Accepted,
            _ => Turn::Declined,
        }
    }
}
