//! Changes to a running table of associations.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::{AssociationTtl, PacketCodec};

/// Changes a running table of associations; clones belong to the same table.
#[derive(Clone, Default)]
pub(crate) struct AssociationTableUpdater(Arc<Mailbox>);

#[derive(Default)]
struct Mailbox {
    next: Mutex<Option<TableUpdate>>,
    /// Also wakes the table when an association has ended.
    wakeup: Arc<Notify>,
}

/// The changes of a reload.
pub(crate) struct TableUpdate {
    /// Timeouts of associations, open ones included.
    pub(crate) ttl: AssociationTtl,
    /// The codec of all further packets, if it changes.
    pub(crate) codec: Option<Box<dyn PacketCodec>>,
    /// True if open associations end, because their clients have another key now.
    pub(crate) ends_associations: bool,
}

impl TableUpdate {
    /// Changes the timeouts alone.
    pub(crate) const fn timeouts(ttl: AssociationTtl) -> Self {
        Self {
            ttl,
            codec: None,
            ends_associations: false,
        }
    }
}

impl AssociationTableUpdater {
    /// Applies `update` before the next packet is received. An update that has not been applied yet stays in
    /// force as far as `update` changes something else.
    pub(crate) fn update(&self, update: TableUpdate) {
        let mut next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next = Some(match next.take() {
            None => update,
            Some(before) => TableUpdate {
                ttl: update.ttl,
                codec: update.codec.or(before.codec),
                ends_associations: update.ends_associations || before.ends_associations,
            },
        });
        drop(next);
        self.0.wakeup.notify_one();
    }

    /// Returns the update to apply.
    pub(super) fn take_update(&self) -> Option<TableUpdate> {
        let mut next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.take()
    }

    /// Returns the notification of updates and ended associations.
    pub(super) fn wakeup(&self) -> Arc<Notify> {
        self.0.wakeup.clone()
    }
}
