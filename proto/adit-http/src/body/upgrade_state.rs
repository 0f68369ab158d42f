//! The origin's answer to an upgrade request, shared by the two directions of an exchange.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The state of the upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpgradeState {
    Waiting,
    Accepted,
    Declined,
}

/// Set once by the response, read by the request.
#[derive(Debug, Clone, Default)]
pub(super) struct UpgradeSwitch(Arc<AtomicU8>);

impl UpgradeSwitch {
    pub(super) fn accept(&self) {
        self.0.store(1, Ordering::Release);
    }

    pub(super) fn decline(&self) {
        self.0.store(2, Ordering::Release);
    }

    pub(super) fn upgrade_state(&self) -> UpgradeState {
        match self.0.load(Ordering::Acquire) {
            0 => UpgradeState::Waiting,
            1 => UpgradeState::Accepted,
            _ => UpgradeState::Declined,
        }
    }
}
