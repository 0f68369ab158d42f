//! The state that all handles of a session share, before and after authentication.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use adit_ssh::messages::{MessageChannel, MessageSession, OutgoingMessage};
use adit_ssh::{RequestError, SessionEnd};
use adit_ssh_proto::connection::{
    ChannelId as Id, ChannelKind, DataKind, GlobalAnswer, GlobalRequest, WantReply,
};
use adit_wire::subslice;
use bytes::{Buf, Bytes};
use tokio::sync::Notify;

use crate::{Disconnect, Error};

/// The only type of extended data: standard error (RFC 4254 section 5.2).
pub(crate) const CHANNEL_STDERR: u32 = 1;

/// The state that all handles of a session share.
#[derive(Default)]
pub(crate) struct SessionCore {
    /// Set once the user is authenticated.
    session: OnceLock<MessageSession>,
    ended: AtomicBool,
    /// Notified when this end disconnects before the user is authenticated.
    pub(crate) leave_requested: Notify,
}

impl SessionCore {
    /// Stores the session once the user is authenticated.
    pub(crate) fn set_session(&self, speaker: MessageSession) {
        // Called only once for each session.
        let _ = self.session.set(speaker);
    }

    /// Returns true if the session is over.
    pub(crate) fn is_ended(&self) -> bool {
        let ended = self.session.get().and_then(MessageSession::end_reason);
        self.ended.load(Ordering::Acquire) || ended.is_some()
    }

    fn session(&self) -> Result<&MessageSession, Error> {
        if self.is_ended() {
            return Err(Error::Disconnect);
        }
        self.session.get().ok_or(Error::NotAuthenticated)
    }

    /// Returns a channel, or `None` if it has closed.
    pub(crate) fn find_channel(&self, id: Id) -> Result<Option<MessageChannel>, Error> {
        Ok(self.session()?.find_channel(id))
    }

    /// Queues a message in a channel without waiting. If the channel has closed, the message is
    /// dropped.
    pub(crate) fn send_message(&self, id: Id, what: OutgoingMessage<'_>) -> Result<(), Error> {
        match self.find_channel(id)? {
            Some(channel) => send_or_drop(&channel, what),
            None => Ok(()),
        }
    }

    /// Replies to the oldest request of the peer in a channel, if there is one.
    pub(crate) fn reply_to_oldest(&self, id: Id, ok: bool) -> Result<(), Error> {
        if let Some(channel) = self.find_channel(id)? {
            channel.reply_to_oldest(ok);
        }
        Ok(())
    }

    /// Opens a channel.
    pub(crate) async fn open_channel(&self, kind: ChannelKind) -> Result<MessageChannel, Error> {
        Ok(self.session()?.open_channel(kind).await?)
    }

    /// Sends a global request, and waits for the answer if it wants one.
    pub(crate) async fn send_global_request(
        &self,
        request: GlobalRequest,
    ) -> Result<GlobalAnswer, Error> {
        Ok(self.session()?.send_global_request(request).await?)
    }

    /// Ends the session once the queued data was sent, or immediately before authentication.
    pub(crate) fn disconnect(&self, reason: Disconnect, words: &str) -> Result<(), Error> {
        match self.session() {
            Ok(speaker) => Ok(speaker.disconnect_after_flush(reason.reason(), words)?),
            Err(Error::NotAuthenticated) => {
                self.leave_requested.notify_one();
                Ok(())
            }
            Err(why) => Err(why),
        }
    }

    /// Starts a key re-exchange.
    pub(crate) fn start_rekey(&self) -> Result<(), Error> {
        Ok(self.session()?.rekey()?)
    }
}

/// Queues a message without waiting. Like russh, it drops messages in a closed channel: the reader
/// learns of the close, and a caller that races with it loses nothing.
pub(crate) fn send_or_drop(
    channel: &MessageChannel,
    what: OutgoingMessage<'_>,
) -> Result<(), Error> {
    match channel.send_message(what) {
        Err(RequestError::Closed) => Ok(()),
        done => Ok(done?),
    }
}

/// Sends bytes as the peer's window allows, and removes those that were sent from `data`.
pub(crate) async fn send_bytes(
    channel: &MessageChannel,
    kind: DataKind,
    data: &mut Bytes,
) -> Result<(), Error> {
    while !data.is_empty() {
        let room = poll_fn(|cx| channel.poll_capacity(cx)).await?;
        let n = data.len().min(room);
        channel.send_message(OutgoingMessage::Data(kind, subslice(data, ..n)))?;
        data.advance(n);
    }
    Ok(())
}

pub(crate) const fn reply_wanted(reply: bool) -> WantReply {
    if reply { WantReply::Yes } else { WantReply::No }
}

/// Converts the reason why a session is over.
pub(crate) fn error_of_end(end: SessionEnd) -> Error {
    match end {
        SessionEnd::Closed => Error::Disconnect,
        SessionEnd::PeerClosed => Error::HUP,
        SessionEnd::Io(why) => Error::IO(std::io::Error::new(why.kind(), why.to_string())),
        SessionEnd::Ssh(why) => why.into(),
        SessionEnd::Idle(_) => Error::InactivityTimeout,
        SessionEnd::PeerSilent(_) => Error::KeepaliveTimeout,
        _ => Error::Disconnect,
    }
}

impl fmt::Debug for SessionCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Core")
    }
}

/// A guard that marks the session as over, also when the runtime drops the task.
pub(crate) struct EndGuard(pub(crate) Arc<SessionCore>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}
