//! The state that all handles of a session share, before and after authentication.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use adit_ssh::messages::{MessageChannel, Say, Speaker};
use adit_ssh::{End, RequestError};
use adit_ssh_proto::connection::{
    ChannelId as Id, ChannelKind, GlobalAnswer, GlobalRequest, Kind, WantReply,
};
use adit_wire::held;
use bytes::{Buf, Bytes};
use tokio::sync::Notify;

use crate::{Disconnect, Error};

/// The only type of extended data: standard error (RFC 4254 section 5.2).
pub(crate) const CHANNEL_STDERR: u32 = 1;

/// The state that all handles of a session share.
#[derive(Default)]
pub(crate) struct Core {
    /// Set once the user is authenticated.
    speaker: OnceLock<Speaker>,
    over: AtomicBool,
    /// Notified when this end disconnects before the user is authenticated.
    pub(crate) left: Notify,
}

impl Core {
    /// Stores the session once the user is authenticated.
    pub(crate) fn begin(&self, speaker: Speaker) {
        // Called only once for each session.
        let _ = self.speaker.set(speaker);
    }

    /// Returns true if the session is over.
    pub(crate) fn is_over(&self) -> bool {
        let ended = self.speaker.get().and_then(Speaker::end);
        self.over.load(Ordering::Acquire) || ended.is_some()
    }

    fn speaker(&self) -> Result<&Speaker, Error> {
        if self.is_over() {
            return Err(Error::Disconnect);
        }
        self.speaker.get().ok_or(Error::NotAuthenticated)
    }

    /// Returns a channel, or `None` if it has closed.
    pub(crate) fn channel(&self, id: Id) -> Result<Option<MessageChannel>, Error> {
        Ok(self.speaker()?.channel(id))
    }

    /// Queues a message in a channel without waiting. If the channel has closed, the message is
    /// dropped.
    pub(crate) fn say(&self, id: Id, what: Say<'_>) -> Result<(), Error> {
        match self.channel(id)? {
            Some(channel) => say(&channel, what),
            None => Ok(()),
        }
    }

    /// Replies to the oldest request of the peer in a channel, if there is one.
    pub(crate) fn answer(&self, id: Id, ok: bool) -> Result<(), Error> {
        if let Some(channel) = self.channel(id)? {
            channel.answer(ok);
        }
        Ok(())
    }

    /// Opens a channel.
    pub(crate) async fn open(&self, kind: ChannelKind) -> Result<MessageChannel, Error> {
        Ok(self.speaker()?.open(kind).await?)
    }

    /// Sends a global request, and waits for the answer if it wants one.
    pub(crate) async fn global(&self, request: GlobalRequest) -> Result<GlobalAnswer, Error> {
        Ok(self.speaker()?.global(request).await?)
    }

    /// Ends the session once the queued data was sent, or immediately before authentication.
    pub(crate) fn disconnect(&self, reason: Disconnect, words: &str) -> Result<(), Error> {
        match self.speaker() {
            Ok(speaker) => Ok(speaker.leave(reason.reason(), words)?),
            Err(Error::NotAuthenticated) => {
                self.left.notify_one();
                Ok(())
            }
            Err(why) => Err(why),
        }
    }

    /// Starts a key re-exchange.
    pub(crate) fn rekey(&self) -> Result<(), Error> {
        Ok(self.speaker()?.rekey()?)
    }
}

/// Queues a message without waiting. Like russh, it drops messages in a closed channel: the reader
/// learns of the close, and a caller that races with it loses nothing.
pub(crate) fn say(channel: &MessageChannel, what: Say<'_>) -> Result<(), Error> {
    match channel.say(what) {
        Err(RequestError::Closed) => Ok(()),
        done => Ok(done?),
    }
}

/// Sends bytes as the peer's window allows, and removes those that were sent from `data`.
pub(crate) async fn pour(
    channel: &MessageChannel,
    kind: Kind,
    data: &mut Bytes,
) -> Result<(), Error> {
    while !data.is_empty() {
        let room = poll_fn(|cx| channel.poll_room(cx)).await?;
        let n = data.len().min(room);
        channel.say(Say::Data(kind, held(data, ..n)))?;
        data.advance(n);
    }
    Ok(())
}

pub(crate) const fn want(reply: bool) -> WantReply {
    if reply { WantReply::Yes } else { WantReply::No }
}

/// Converts the reason why a session is over.
pub(crate) fn reason(end: End) -> Error {
    match end {
        End::Closed => Error::Disconnect,
        End::Ended => Error::HUP,
        End::Below(why) => Error::IO(std::io::Error::new(why.kind(), why.to_string())),
        End::Ssh(why) => why.into(),
        End::Idle(_) => Error::InactivityTimeout,
        End::Silent(_) => Error::KeepaliveTimeout,
        _ => Error::Disconnect,
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Core")
    }
}

/// A guard that marks the session as over, also when the runtime drops the task.
pub(crate) struct Over(pub(crate) Arc<Core>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
    }
}
