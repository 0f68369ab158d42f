//! Channels and global requests of application-defined types (RFC 4254 sections 4 and 5.1).
//!
//! Both ends open channels with [`Peer::open_custom_channel`] and send requests with [`Peer::send_request`] and
//! [`Peer::send_notification`]. A client receives the peer's channels and requests from
//! [`Session::custom_channels`](super::client::Session::custom_channels) and
//! [`Session::custom_requests`](super::client::Session::custom_requests), a server as
//! [`Incoming::OwnChannel`](super::server::Incoming::OwnChannel) and
//! [`Incoming::OwnRequest`](super::server::Incoming::OwnRequest). Without a handler
//! they are refused: channels with SSH_OPEN_UNKNOWN_CHANNEL_TYPE, requests with REQUEST_FAILURE or
//! CHANNEL_FAILURE.
//!
//! # Names
//!
//! A name has 1 to 64 printable US-ASCII characters, without space and comma. Names without `@` belong
//! to IANA: end yours in `@` and a domain that you own (RFC 4251 section 6). The library handles the
//! following names; applications get
//! [`ChannelCallError::Reserved`](adit_ssh_proto::connection::ChannelCallError::Reserved) for them:
//!
//! * channel types: `session`, `direct-tcpip`, `forwarded-tcpip`, `x11`,
//!   `direct-streamlocal@openssh.com`, `forwarded-streamlocal@openssh.com`, `auth-agent@openssh.com`,
//!   `tun@openssh.com`;
//! * global requests: `tcpip-forward`, `cancel-tcpip-forward`, `streamlocal-forward@openssh.com`,
//!   `cancel-streamlocal-forward@openssh.com`, `keepalive@openssh.com`, `hostkeys-00@openssh.com`,
//!   `hostkeys-prove-00@openssh.com`, `no-more-sessions@openssh.com`;
//! * requests in a channel of an application-defined type: only `keepalive@openssh.com`. Others, such
//!   as `exec`, have the meaning that the application defines there.
//!
//! # Bounds
//!
//! Data are at most `CustomMessage::MAX_DATA` bytes, in either direction. Channels that wait for an answer are
//! bounded by `Limits`: `pending_opens`, and `queue` for the
//! bytes of their names and data. Waiting global requests hold at most 256 KiB, and so do the requests
//! of a channel, of which at most 128 wait.

mod channel;
mod global;

pub use adit_ssh_proto::connection::{CustomMessage, CustomMessageError};
pub use channel::{
    ChannelControl, ChannelRequest, ChannelRequests, CustomChannel, IncomingCustomChannel,
};
pub use global::CustomRequest;

use adit_ssh_proto::connection::{ChannelKind, GlobalAnswer, GlobalRequest, WantReply};

use super::error::{OpenError, RequestError};
use super::peer::Peer;

impl Peer {
    /// Opens a channel of an [application-defined type](self). `data` follow the fields that all types
    /// have.
    ///
    /// # Errors
    /// The name or the data are malformed, the name is reserved for the library, the peer refused the
    /// channel, too many channels are open, or the session is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, a channel that opens nevertheless is closed.
    pub async fn open_custom_channel(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<CustomChannel, OpenError> {
        let kind = ChannelKind::Custom(CustomMessage::new(name, data)?);
        self.shared.open_channel(kind).await.map(CustomChannel::new)
    }

    /// Sends a global request with an [application-defined name](self) and waits for the answer.
    /// Returns the answer's data, which is usually empty. Answers arrive in the order of the requests
    /// (RFC 4254 section 4).
    ///
    /// # Errors
    /// The name or the data are malformed, the name is reserved for the library, the peer refused the
    /// request, too many requests wait for an answer, or the session is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn send_request(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<Vec<u8>, RequestError> {
        let own = CustomMessage::new(name, data)?;
        match self.send_custom_global(own, WantReply::Yes).await? {
            GlobalAnswer::Granted { data } => Ok(data),
            GlobalAnswer::Bound { .. } | GlobalAnswer::Refused => Ok(Vec::new()),
        }
    }

    /// Sends a global request with an [application-defined name](self) that wants no answer.
    ///
    /// # Errors
    /// The name or the data are malformed, the name is reserved for the library, or the session is
    /// over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn send_notification(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<(), RequestError> {
        let own = CustomMessage::new(name, data)?;
        self.send_custom_global(own, WantReply::No).await.map(drop)
    }

    async fn send_custom_global(
        &self,
        own: CustomMessage,
        want: WantReply,
    ) -> Result<GlobalAnswer, RequestError> {
        let request = GlobalRequest::Custom { own, want };
        self.shared.send_global_request(request, None).await
    }
}
