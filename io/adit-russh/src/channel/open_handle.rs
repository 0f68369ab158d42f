//! Replies to requests to open a channel.

use adit_ssh::IncomingChannel;

use crate::ChannelOpenFailure;

/// The obligation to accept or reject a channel that the peer asks for. Dropping it rejects the
/// channel. You may keep it and reply from another task.
#[derive(Debug)]
pub struct ChannelOpenHandle(pub(crate) IncomingChannel);

#[allow(clippy::unused_async, reason = "same signature as in russh")]
impl ChannelOpenHandle {
    /// Opens the channel.
    pub async fn accept(self) {
        // No one waits for the reply once the session is over.
        let _ = self.0.accept_in_message_mode();
    }

    /// Rejects the channel.
    pub async fn reject(self, reason: ChannelOpenFailure) {
        let text = match &reason {
            ChannelOpenFailure::Other { reason, .. } => reason,
            _ => "",
        };
        self.0.refuse(reason.to_open_failure(), text);
    }
}
