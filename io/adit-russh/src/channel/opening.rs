//! The answer to a channel that the peer wants.

use adit_ssh::Opening;

use crate::ChannelOpenFailure;

/// The duty to answer whether a channel is opened; dropped, it refuses. It may be kept, and
/// answered from another task.
#[derive(Debug)]
pub struct ChannelOpenHandle(pub(crate) Opening);

#[allow(clippy::unused_async, reason = "as russh has it")]
impl ChannelOpenHandle {
    /// Opens it.
    pub async fn accept(self) {
        // Without a session nobody waits.
        let _ = self.0.accept_messages();
    }

    /// Refuses it.
    pub async fn reject(self, reason: ChannelOpenFailure) {
        let text = match &reason {
            ChannelOpenFailure::Other { reason, .. } => reason,
            _ => "",
        };
        self.0.refuse(reason.below(), text);
    }
}
