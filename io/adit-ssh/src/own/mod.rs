//! Channels and global requests of a program's own types (RFC 4254 sections 4 and 5.1).
//!
//! Both ends open channels by [`Peer::open_channel`] and ask by [`Peer::request`] and
//! [`Peer::tell`]. What the other end opens and asks for comes to a client by
//! [`Session::own_channels`](super::client::Session::own_channels) and
//! [`Session::own_requests`](super::client::Session::own_requests), to a server as
//! [`Incoming::OwnChannel`](super::server::Incoming::OwnChannel) and
//! [`Incoming::OwnRequest`](super::server::Incoming::OwnRequest). What nobody takes is refused:
//! channels with SSH_OPEN_UNKNOWN_CHANNEL_TYPE, requests with REQUEST_FAILURE or CHANNEL_FAILURE.
//!
//! # Names
//!
//! A name has 1 to 64 printable characters of US-ASCII, without space and comma. Names without `@`
//! are IANA's: one of your own ends in `@` and a domain of yours (RFC 4251 section 6). These are
//! handled by the library and not for programs, which get
//! [`CallError::Reserved`](adit_ssh_proto::connection::CallError::Reserved):
//!
//! * types of channels: `session`, `direct-tcpip`, `forwarded-tcpip`, `x11`,
//!   `direct-streamlocal@openssh.com`, `forwarded-streamlocal@openssh.com`,
//!   `auth-agent@openssh.com`, `tun@openssh.com`;
//! * global requests: `tcpip-forward`, `cancel-tcpip-forward`, `streamlocal-forward@openssh.com`,
//!   `cancel-streamlocal-forward@openssh.com`, `keepalive@openssh.com`, `hostkeys-00@openssh.com`,
//!   `hostkeys-prove-00@openssh.com`, `no-more-sessions@openssh.com`;
//! * requests in a channel of an own type: `keepalive@openssh.com` alone. Others, such as `exec`,
//!   mean there what the program says.
//!
//! # Bounds
//!
//! Data have [`Own::MAX_DATA`] octets at most, in either direction. Channels that wait for an answer
//! are bounded by [`Limits`](adit_ssh_proto::connection::Limits): `pending_opens`, and `queue` for the
//! octets of their names and data. Global requests that wait hold 256 KiB at most, and so do the
//! requests of a channel, of which 128 wait.

mod channel;
mod global;

pub use adit_ssh_proto::connection::{Own, OwnError};
pub use channel::{ChannelControl, ChannelRequest, ChannelRequests, OwnChannel, OwnOpening};
pub use global::OwnRequest;

use adit_ssh_proto::connection::{ChannelKind, GlobalAnswer, GlobalRequest, WantReply};

use super::about::Peer;
use super::error::{OpenError, RequestError};

impl Peer {
    /// Opens a channel of an [own type](self). `data` follow the fields that all types have.
    ///
    /// # Errors
    /// The name or the data have not the form, the name is one of the library's, the peer refused
    /// it, there are too many, or the session is over.
    pub async fn open_channel(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<OwnChannel, OpenError> {
        let kind = ChannelKind::Own(Own::new(name, data)?);
        self.mail.open(kind).await.map(OwnChannel::new)
    }

    /// Asks for something outside of channels by a name of [one's own](self). Returns the data of
    /// the answer, mostly none. Answers come in the order of the requests (RFC 4254 section 4).
    ///
    /// # Errors
    /// The name or the data have not the form, the name is one of the library's, the peer refused
    /// it, there are too many without an answer, or the session is over.
    pub async fn request(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<Vec<u8>, RequestError> {
        let own = Own::new(name, data)?;
        match self.ask_global(own, WantReply::Yes).await? {
            GlobalAnswer::Granted { data } => Ok(data),
            GlobalAnswer::Bound { .. } | GlobalAnswer::Refused => Ok(Vec::new()),
        }
    }

    /// Tells something outside of channels by a name of [one's own](self), without an answer.
    ///
    /// # Errors
    /// The name or the data have not the form, the name is one of the library's, or the session is
    /// over.
    pub async fn tell(
        &self,
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<(), RequestError> {
        let own = Own::new(name, data)?;
        self.ask_global(own, WantReply::No).await.map(drop)
    }

    async fn ask_global(&self, own: Own, want: WantReply) -> Result<GlobalAnswer, RequestError> {
        let request = GlobalRequest::Own { own, want };
        self.mail.global(request, None).await
    }
}
