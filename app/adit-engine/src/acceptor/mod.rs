//! Server sides of the protocols that clients use, one module per protocol.
//!
//! An acceptor reads a request and returns it as an [`InboundRequest`]; it does not connect to targets.
//! The verdict comes back once, through [`PendingRequest`].

mod closing_reply;
mod fixed_target;
mod header;
mod http;
mod obfs_handshake;
mod proxy;
mod reject_policy;
mod relay;
mod shadowsocks;
mod shadowsocksr;
mod socks;
mod transparent;
mod unconfirmed;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_stream::BoxStream;

pub use fixed_target::FixedTarget;
pub(crate) use header::ConnectionProgress;
pub(crate) use http::{HttpRules, LateFailure};
pub(crate) use obfs_handshake::accept_obfs;
pub use proxy::ProxyAcceptor;
pub use reject_policy::RejectHandler;
pub use relay::RelayAcceptor;
pub use shadowsocks::{CHECK_NAME, ShadowsocksAcceptor};
pub use shadowsocksr::{ShadowsocksRAcceptor, SsrAccounts};
pub(crate) use socks::SocksRules;
pub use socks::{BindRequest, UdpAssociateRequest};
pub use transparent::InterceptedAcceptor;
pub(crate) use transparent::is_own_listener;

use crate::handshake_limiter::HandshakeSlot;
use crate::udp::UdpOverTcp;
use crate::user_account::UserAccount;
use crate::{AcceptError, BoxFuture, ConnectionAddrs, DialError, Request};

/// Reads requests of clients.
pub trait RequestAcceptor: Send + Sync {
    /// Reads the request of one connection. Enforces its own deadline, and closes the connection when its
    /// slot is lost.
    fn accept_request(
        &self,
        io: BoxStream,
        peer: ConnectionAddrs,
        place: HandshakeSlot,
    ) -> BoxFuture<'_, Result<InboundRequest, AcceptError>>;
}

/// The request of a client, by kind.
pub enum InboundRequest {
    /// A stream to a target.
    Stream(PendingRequest),
    /// Many streams, for as long as the connection lasts.
    Multiplexed(Box<dyn RequestStream>),
    /// One incoming connection (SOCKS BIND).
    Bind(BindRequest),
    /// Datagrams (SOCKS UDP ASSOCIATE).
    Datagrams(UdpAssociateRequest),
    /// Datagrams within the stream itself (UDP over TCP).
    UdpOverTcp(UdpOverTcpRequest),
    /// Nothing further: the acceptor has answered the request itself.
    Answered,
    /// An unauthenticated peer of a keyed listener. Handling it may take minutes.
    Rejected(PendingRejection),
}

/// A connection on which streams are requested one after another.
pub trait RequestStream: Send {
    /// Returns the next request; `None` if the client has closed the connection.
    fn next_request(&mut self) -> BoxFuture<'_, Option<PendingRequest>>;

    /// Returns the name of the user that has logged in.
    fn user(&self) -> Option<&str> {
        None
    }

    /// Ends the connection with all of its streams, and tells the client why, if its protocol can.
    fn end_connection(&mut self, why: &str) {
        let _ = why;
    }
}

/// A stream that carries datagrams to any target.
pub struct UdpOverTcpRequest {
    /// The datagrams in the stream.
    pub datagrams: UdpOverTcp,
    /// The account of the client.
    pub account: Option<Arc<UserAccount>>,
}

/// The handling of an unauthenticated peer, and the reason (for the log only).
#[must_use]
pub struct PendingRejection {
    /// The reason, which is never revealed to the peer.
    pub why: AcceptError,
    reaction: BoxFuture<'static, ()>,
}

impl PendingRejection {
    /// Handles the peer according to the reject policy.
    pub async fn apply_policy(self) {
        self.reaction.await;
    }
}

/// A request that waits for its verdict: call [`reply_success`](Self::reply_success) or `refuse`.
#[must_use]
pub struct PendingRequest {
    /// The request.
    pub request: Request,
    reply: Box<dyn RequestReply>,
}

impl PendingRequest {
    pub(crate) fn new(request: Request, reply: impl RequestReply + 'static) -> Self {
        Self {
            request,
            reply: Box::new(reply),
        }
    }

    /// Returns true unless other nodes of a fleet still have to decide whether the request is a replay. Until then the
    /// target may be dialled, but no byte of the client may be sent to it.
    pub(crate) fn is_settled(&self) -> bool {
        self.reply.is_settled()
    }

    /// Waits until the request is settled; returns false if it is a replay, which has to be
    /// [rejected](Self::reject). Replies settle it themselves.
    ///
    /// # Cancel safety
    ///
    /// The future can be dropped; the next one continues to wait.
    pub(crate) fn settle(&mut self) -> BoxFuture<'_, bool> {
        self.reply.settle()
    }

    /// Handles the client of a replay according to the reject policy. This may take minutes.
    pub(crate) async fn reject(self) {
        self.reply.reject().await;
    }

    /// Returns the client's stream, to check that it is still open; `None` if there is no stream before the
    /// verdict.
    pub fn client_stream(&mut self) -> Option<&mut BoxStream> {
        self.reply.client_stream()
    }

    /// Returns the further requests of this connection, if its protocol allows more than one. Has to be
    /// called before the verdict; waits for the end of the stream that [`reply_success`](Self::reply_success) returns.
    pub(crate) fn further_requests(&mut self) -> Option<Box<dyn FurtherRequests>> {
        self.reply.further_requests()
    }

    /// Returns the place of the client's first bytes.
    pub(crate) fn first_bytes_place(&self) -> FirstBytesPlace {
        self.reply.first_bytes_place()
    }

    /// Returns the response for a server that ends the stream without an answer, if the protocol has one.
    pub(crate) fn late_failure(&self) -> Option<LateFailure> {
        self.reply.late_failure()
    }

    /// Returns true if [`reply_success`](Self::reply_success) reveals the address that the target sees to the client.
    pub fn reveals_bound_addr(&self) -> bool {
        self.reply.reveals_bound_addr()
    }

    /// Reports success to the client and returns its stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn reply_success(self, bound: Option<SocketAddr>) -> io::Result<BoxStream> {
        self.reply.reply_success(bound).await
    }

    /// Reports the failure to the client, as precisely as its protocol can.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn reply_failure(self, why: &DialError) -> io::Result<()> {
        self.reply.reply_failure(why).await
    }
}

/// The place of a client's first bytes, for those who read them before the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstBytesPlace {
    /// The client sends them after the success reply.
    AfterReply,
    /// The client sends them without waiting: they are in its stream, after those of the request.
    InStream,
    /// They are not for the target alone: a head and a body, or the ciphertext of another protocol.
    Elsewhere,
}

/// A connection on which the next request follows the end of the last exchange.
pub(crate) trait FurtherRequests: Send {
    /// Returns the next request; `None` if the client has closed the connection or was idle for too long.
    fn next_request(self: Box<Self>) -> BoxFuture<'static, Option<PendingRequest>>;
}

/// The replies of a protocol to a request.
pub(crate) trait RequestReply: Send {
    /// See [`PendingRequest::is_settled`].
    fn is_settled(&self) -> bool {
        true
    }
    /// See [`PendingRequest::settle`].
    fn settle(&mut self) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }
    /// See [`PendingRequest::reject`].
    fn reject(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
    /// See [`PendingRequest::client_stream`].
    fn client_stream(&mut self) -> Option<&mut BoxStream>;
    /// See [`PendingRequest::further_requests`].
    fn further_requests(&mut self) -> Option<Box<dyn FurtherRequests>> {
        None
    }
    /// See [`PendingRequest::first_bytes_place`].
    fn first_bytes_place(&self) -> FirstBytesPlace {
        FirstBytesPlace::AfterReply
    }
    /// See [`PendingRequest::late_failure`].
    fn late_failure(&self) -> Option<LateFailure> {
        None
    }
    /// See [`PendingRequest::reveals_bound_addr`].
    fn reveals_bound_addr(&self) -> bool {
        false
    }
    fn reply_success(
        self: Box<Self>,
        bound: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>>;
    fn reply_failure<'a>(self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>>;
}
