//! Channels of application-defined types: bytes, and requests in both directions.

use std::sync::Arc;

use adit_ssh_proto::connection::{
    ChannelKind, CustomMessage, OpenFailureReason, SshChannelRequest, WantReply,
};

use crate::channel::{Channel, ChannelHandle};
use crate::error::{RequestError, SessionEnd};
use crate::incoming_channel::IncomingChannel;
use crate::server::RequestReply;
use crate::shared_channel::SharedChannel;

/// A request of the peer to open a channel of an application-defined type. Dropping it without an
/// answer refuses the channel as unknown.
#[derive(Debug)]
pub struct IncomingCustomChannel(IncomingChannel);

/// An open channel of an application-defined type. It closes when its [`Channel`], or both halves of
/// that, are dropped. Extended data from the peer is discarded.
#[derive(Debug)]
pub struct CustomChannel {
    channel: Channel,
    control: ChannelControl,
    requests: ChannelRequests,
}

/// A handle that sends requests in a channel. It does not keep the channel open.
#[derive(Debug, Clone)]
pub struct ChannelControl(Arc<SharedChannel>);

/// A queue of the peer's requests in a channel. Dropping it refuses all of them. It does not keep the
/// channel open.
#[derive(Debug)]
pub struct ChannelRequests(Arc<SharedChannel>);

/// A request or a notification of the peer in a channel.
#[derive(Debug)]
pub struct ChannelRequest {
    /// The request's name, any valid name.
    pub name: String,
    /// The request's data.
    pub data: Vec<u8>,
    /// The reply; dropping it refuses the request. Later replies in this channel wait for it.
    pub reply: RequestReply,
}

impl IncomingCustomChannel {
    /// Returns `None` for other channel types, which are refused by the drop.
    pub(crate) fn from_incoming(opening: IncomingChannel) -> Option<Self> {
        matches!(opening.kind(), ChannelKind::Custom(_)).then_some(Self(opening))
    }

    /// Returns the name of the channel type.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.kind().name()
    }

    /// Returns the data of the channel type.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        match self.0.kind() {
            ChannelKind::Custom(own) => own.data(),
            _ => &[],
        }
    }

    /// Opens the channel.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn accept(self) -> Result<CustomChannel, SessionEnd> {
        Ok(CustomChannel::new(self.0.open_channel()?))
    }

    /// Refuses the channel, with an explanation for the peer.
    pub fn refuse(self, why: OpenFailureReason, text: impl Into<String>) {
        self.0.refuse(why, text);
    }
}

impl CustomChannel {
    pub(super) fn new(handle: ChannelHandle) -> Self {
        Self {
            control: ChannelControl(Arc::clone(handle.pipe())),
            requests: ChannelRequests(Arc::clone(handle.pipe())),
            channel: Channel::new(handle),
        }
    }

    /// Returns the channel's byte stream.
    pub const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Returns the handle that sends requests, for other tasks.
    #[must_use]
    pub const fn control(&self) -> &ChannelControl {
        &self.control
    }

    /// Returns the queue of the peer's requests.
    pub const fn requests(&mut self) -> &mut ChannelRequests {
        &mut self.requests
    }

    /// Converts this into the byte stream alone; requests of the peer are refused.
    #[must_use]
    pub fn into_channel(self) -> Channel {
        self.channel
    }

    /// Splits this into the byte stream, the handle that sends requests, and the peer's requests.
    #[must_use]
    pub fn into_parts(self) -> (Channel, ChannelControl, ChannelRequests) {
        (self.channel, self.control, self.requests)
    }
}

impl ChannelControl {
    /// Sends a request and waits for the answer. The request may overtake bytes that were written
    /// before.
    ///
    /// # Errors
    /// The name or the data are malformed, the name is [reserved](crate::custom#names), the peer refused
    /// the request, or the channel is closed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn send_request(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<(), RequestError> {
        self.send_custom(CustomMessage::new(name, data)?, WantReply::Yes)
            .await
    }

    /// Sends a request that wants no answer. It may overtake bytes that were written before.
    ///
    /// # Errors
    /// The name or the data are malformed, the name is [reserved](crate::custom#names), or the channel is
    /// closed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn send_notification(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<(), RequestError> {
        self.send_custom(CustomMessage::new(name, data)?, WantReply::No)
            .await
    }

    async fn send_custom(&self, own: CustomMessage, want: WantReply) -> Result<(), RequestError> {
        self.0
            .send_request(SshChannelRequest::Custom(own), want)
            .await
    }

    /// Waits until the channel has closed, at either end.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn wait_closed(&self) {
        self.0.wait_until(|_| None::<()>).await;
    }
}

impl ChannelRequests {
    /// Returns the peer's next request; `None` once the channel has closed.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn next_request(&mut self) -> Option<ChannelRequest> {
        loop {
            let (request, to) = self
                .0
                .wait_until(|state| state.requests.pop_front())
                .await?;
            let reply = RequestReply::new(to, Arc::clone(&self.0.mail));
            if let SshChannelRequest::Custom(own) = request {
                let (name, data) = own.into_parts();
                return Some(ChannelRequest { name, data, reply });
            }
            debug_assert!(false, "unexpected kind of request: {request:?}");
        }
    }
}

impl Drop for ChannelRequests {
    fn drop(&mut self) {
        let left = self.0.lock().refuse_requests();
        for (_, to) in left {
            drop(RequestReply::new(to, Arc::clone(&self.0.mail)));
        }
    }
}
