//! The answer to a channel that the peer wants.

use std::fmt;
use std::sync::Arc;

use adit_ssh_proto::connection::ChannelId as Id;

use crate::ChannelOpenFailure;
use crate::engine::Core;

/// The duty to answer whether a channel is opened; dropped, it refuses. It may be kept, and
/// answered from another task.
pub struct ChannelOpenHandle {
    core: Arc<Core>,
    id: Option<Id>,
}

impl ChannelOpenHandle {
    pub(crate) const fn new(core: Arc<Core>, id: Id) -> Self {
        Self { core, id: Some(id) }
    }

    /// Opens it.
    #[allow(clippy::unused_async, reason = "as russh has it")]
    pub async fn accept(mut self) {
        if let Some(id) = self.id.take() {
            // Without a session nobody waits.
            let _ = self.core.confirm(id);
        }
    }

    /// Refuses it.
    #[allow(clippy::unused_async, reason = "as russh has it")]
    pub async fn reject(mut self, reason: ChannelOpenFailure) {
        self.refuse(&reason);
    }

    fn refuse(&mut self, why: &ChannelOpenFailure) {
        if let Some(id) = self.id.take() {
            self.core.with(|state| {
                let text = match why {
                    ChannelOpenFailure::Other { reason, .. } => reason,
                    _ => "",
                };
                // The peer may have left meanwhile.
                let _ = state.connection.refuse(id, why.below(), text);
                if let Some(live) = state.lives.remove(&id) {
                    live.mailbox.close();
                }
            });
        }
    }
}

impl Drop for ChannelOpenHandle {
    fn drop(&mut self) {
        self.refuse(&ChannelOpenFailure::AdministrativelyProhibited);
    }
}

impl fmt::Debug for ChannelOpenHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChannelOpenHandle").field(&self.id).finish()
    }
}
