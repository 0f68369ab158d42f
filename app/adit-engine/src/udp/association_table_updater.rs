//! Changes to a running table of associations.

#[cfg(target_os = "linux")]
use std::io;
#[cfg(target_os = "linux")]
use std::sync::MutexGuard;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(target_os = "linux")]
use adit_net::handover::HandedOverUdp;
use tokio::sync::Notify;
#[cfg(target_os = "linux")]
use tokio::sync::oneshot;

use super::{AssociationTtl, PacketCodec};

/// Changes a running table of associations; clones belong to the same table.
#[derive(Clone, Default)]
pub(crate) struct AssociationTableUpdater(Arc<Mailbox>);

#[derive(Default)]
struct Mailbox {
    next: Mutex<Option<TableUpdate>>,
    /// A request to hand the socket over to the next process.
    #[cfg(target_os = "linux")]
    handover: Mutex<Option<HandoverReply>>,
    /// Also wakes the table when an association has ended.
    wakeup: Arc<Notify>,
}

/// The recipient of a socket that is handed over.
#[cfg(target_os = "linux")]
pub(super) type HandoverReply = oneshot::Sender<io::Result<HandedOverUdp>>;

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

    /// Hands the socket of the table over to the next process, which forwards the datagrams of the associations here.
    /// They go on until they end. If the result, or the socket of the next process, is dropped, the table receives
    /// on the socket again.
    ///
    /// # Errors
    ///
    /// `Unsupported` for intercepted datagrams, `AlreadyExists` if the socket has been handed over, `NotConnected` if
    /// the table has ended, and errors of the system.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: if the future is dropped, the table receives on the socket again.
    #[cfg(target_os = "linux")]
    pub(crate) async fn hand_over(&self) -> io::Result<HandedOverUdp> {
        let (reply, answer) = oneshot::channel();
        *self.lock_handover() = Some(reply);
        self.0.wakeup.notify_one();
        let answer = answer.await;
        answer.unwrap_or_else(|_| Err(io::ErrorKind::NotConnected.into()))
    }

    /// Returns the request to answer.
    #[cfg(target_os = "linux")]
    pub(super) fn take_handover_request(&self) -> Option<HandoverReply> {
        self.lock_handover().take()
    }

    #[cfg(target_os = "linux")]
    fn lock_handover(&self) -> MutexGuard<'_, Option<HandoverReply>> {
        let handover = self.0.handover.lock();
        handover.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the notification of updates and ended associations.
    pub(super) fn wakeup(&self) -> Arc<Notify> {
        self.0.wakeup.clone()
    }
}
