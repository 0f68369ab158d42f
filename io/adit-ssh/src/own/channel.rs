//! A channel of an own type: its bytes, and requests both ways.

use std::sync::Arc;

use adit_ssh_proto::connection::{ChannelKind, OpenFailure, Own, Request, WantReply};

use crate::channel::{Channel, Handle};
use crate::error::{End, RequestError};
use crate::opening::Opening;
use crate::pipe::Pipe;
use crate::server::Reply;

/// A channel of an own type that the peer wants. Dropped without an answer, it is refused as
/// unknown.
#[derive(Debug)]
pub struct OwnOpening(Opening);

/// An open channel of an own type. It closes when its [`Channel`], or both halves of that, are
/// dropped; extended data of the peer are thrown away.
#[derive(Debug)]
pub struct OwnChannel {
    channel: Channel,
    control: ChannelControl,
    requests: ChannelRequests,
}

/// Asks the peer for something in a channel. It does not keep the channel open.
#[derive(Debug, Clone)]
pub struct ChannelControl(Arc<Pipe>);

/// What the peer asks for in a channel. Once this is dropped all of it is refused. It does not keep
/// the channel open.
#[derive(Debug)]
pub struct ChannelRequests(Arc<Pipe>);

/// Something that the peer asks for, or tells, in a channel.
#[derive(Debug)]
pub struct ChannelRequest {
    /// Its name, any one with the [form](Own) of names.
    pub name: String,
    /// Its data.
    pub data: Vec<u8>,
    /// To be answered; dropped, it refuses. Later answers of this channel wait for it.
    pub reply: Reply,
}

impl OwnOpening {
    /// `None` for other types, which are refused by that.
    pub(crate) fn of(opening: Opening) -> Option<Self> {
        matches!(opening.kind(), ChannelKind::Own(_)).then_some(Self(opening))
    }

    /// The name of the type.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.kind().name()
    }

    /// The data of the type.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        match self.0.kind() {
            ChannelKind::Own(own) => own.data(),
            _ => &[],
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// The session is over.
    pub fn accept(self) -> Result<OwnChannel, End> {
        Ok(OwnChannel::new(self.0.confirm()?))
    }

    /// Refuses it, with words for the peer.
    pub fn refuse(self, why: OpenFailure, text: impl Into<String>) {
        self.0.refuse(why, text);
    }
}

impl OwnChannel {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            control: ChannelControl(Arc::clone(handle.pipe())),
            requests: ChannelRequests(Arc::clone(handle.pipe())),
            channel: Channel::new(handle),
        }
    }

    /// Its bytes.
    pub const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// What asks the peer, for other tasks.
    #[must_use]
    pub const fn control(&self) -> &ChannelControl {
        &self.control
    }

    /// What the peer asks for.
    pub const fn requests(&mut self) -> &mut ChannelRequests {
        &mut self.requests
    }

    /// Returns its bytes alone; what the peer asks for is refused.
    #[must_use]
    pub fn into_channel(self) -> Channel {
        self.channel
    }

    /// All of it apart: bytes, what asks the peer, what the peer asks for.
    #[must_use]
    pub fn into_parts(self) -> (Channel, ChannelControl, ChannelRequests) {
        (self.channel, self.control, self.requests)
    }
}

impl ChannelControl {
    /// Asks for something and waits for the answer. It may arrive before bytes that were written
    /// before.
    ///
    /// # Errors
    /// The name or the data have not the form, the name is one of the
    /// [library's](crate::own#names), the peer refused it, or the channel is gone.
    pub async fn request(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<(), RequestError> {
        self.send(Own::new(name, data)?, WantReply::Yes).await
    }

    /// Tells something without an answer. It may arrive before bytes that were written before.
    ///
    /// # Errors
    /// The name or the data have not the form, the name is one of the
    /// [library's](crate::own#names), or the channel is gone.
    pub async fn tell(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<(), RequestError> {
        self.send(Own::new(name, data)?, WantReply::No).await
    }

    async fn send(&self, own: Own, want: WantReply) -> Result<(), RequestError> {
        self.0.ask(Request::Own(own), want).await
    }

    /// Waits until the channel has closed, whoever closed it.
    pub async fn closed(&self) {
        self.0.until(|_| None::<()>).await;
    }
}

impl ChannelRequests {
    /// What the peer asks for next; `None` once the channel has closed. Cancel-safe.
    pub async fn next(&mut self) -> Option<ChannelRequest> {
        loop {
            let (request, to) = self.0.until(|state| state.requests.pop_front()).await?;
            let reply = Reply::new(to, Arc::clone(&self.0.mail));
            if let Request::Own(own) = request {
                let (name, data) = own.into_parts();
                return Some(ChannelRequest { name, data, reply });
            }
            debug_assert!(false, "a request of another kind: {request:?}");
        }
    }
}

impl Drop for ChannelRequests {
    fn drop(&mut self) {
        let left = self.0.lock().serve_no_more();
        for (_, to) in left {
            drop(Reply::new(to, Arc::clone(&self.0.mail)));
        }
    }
}
